// SPDX-License-Identifier: Apache-2.0
//
// vta_dma_read with short bursts and little room: it keeps AXI's rules at its port, hands on as
// many beats as the block has, never asks for more than it has room for, and names the address of a
// beat with an error.

module dma_read_proof
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  parameter int unsigned MaxBurstBeats = 4,
  parameter int unsigned MaxBursts = 2,
  parameter int unsigned MaxBeats = 8,
  parameter int unsigned MostBeats = 6,  // of a row
  parameter int unsigned MostRows = 2,
  // For the induction: that no burst of the last block is known at start_i, which the bounded proof
  // shows, is an assumption.
  parameter bit Ended = 1'b0,
  `include "vta_parameters.svh"
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic                    drain_i,
  input logic                    start_i,
  input address_t                address_i,
  input logic [RowBeatsBits-1:0] row_last_i,
  input logic [            15:0] rows_i,
  input address_t                stride_i,
  input logic                    beat_ready_i,
  input logic                    taken_i,
  input axi_read_rsp_t           axi_rsp_i,
  input logic [     BusBits-1:0] axi_rdata_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  logic idle_o, beat_valid_o, fault_o;
  axi_read_req_t axi_req_o;
  fault_e fault_code_o;
  address_t fault_address_o;
  logic [BusBits-1:0] beat_data_o;
  logic [RowBeatsBits-1:0] row_last_q;
  logic [15:0] rows_q;
  address_t stride_q;
  always_ff @(posedge clk_i) begin
    if (start_i) {row_last_q, rows_q, stride_q} <= {row_last_i, rows_i, stride_i};
    if (!rst_ni) stride_q <= '0;
  end

  vta_dma_read #(
    .MaxBurstBeats(MaxBurstBeats),
    .MaxBursts(MaxBursts),
    .MaxBeats(MaxBeats),
    `include "vta_passed.svh"
  ) dut (
    .clk_i,
    .rst_ni,
    .drain_i,
    .idle_o,
    .start_i,
    .address_i,
    .row_last_i(start_i ? row_last_i : row_last_q),
    .rows_i(start_i ? rows_i : rows_q),
    .stride_i(start_i ? stride_i : stride_q),
    .planes_i(16'd1),
    .plane_stride_i('0),
    .beat_valid_o,
    .beat_ready_i,
    .beat_data_o,
    .beat_taken_i(taken_i),
    .fault_o,
    .fault_code_o,
    .fault_address_o,
    .axi_req_o,
    .axi_rsp_i,
    .axi_rdata_i
  );

  axi4_read_checker #(
    .AddrBits(AddrBits),
    .DataBits(BusBits),
    .MaxBeats(MaxBurstBeats),
    .MaxBursts(MaxBursts),
    .AssumeSlave(1'b1)
  ) u_port (
    .clk_i,
    .rst_ni,
    .araddr_i(axi_req_o.araddr),
    .arlen_i(axi_req_o.arlen),
    .arsize_i(3'(LogBusBytes)),
    .arburst_i(2'b01),
    .arvalid_i(axi_req_o.arvalid),
    .arready_i(axi_rsp_i.arready),
    .rdata_i(axi_rdata_i),
    .rresp_i(axi_rsp_i.rresp),
    .rlast_i(axi_rsp_i.rlast),
    .rvalid_i(axi_rsp_i.rvalid),
    .rready_i(axi_req_o.rready)
  );

  // What the block still has, where the next beat is, and the beats that came and were not taken.
  logic [15:0] rows_left_q;
  logic [RowBeatsBits-1:0] row_left_q;
  address_t beat_address_q, row_q;
  logic [15:0] pending_q;
  address_t last_address_q;  // of the beat in the last cycle
  logic beat;
  assign beat = beat_valid_o && beat_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || drain_i) begin
      rows_left_q <= '0;
      pending_q <= '0;
    end else begin
      pending_q <= pending_q + 16'(beat) - 16'(taken_i);
      if (start_i) begin
        rows_left_q <= rows_i;
        row_left_q <= row_last_i;
        {beat_address_q, row_q} <= {address_i, address_i};
      end else if (beat && row_left_q == '0) begin
        rows_left_q <= rows_left_q - 1'b1;
        row_left_q <= row_last_q;
        {beat_address_q, row_q} <= {row_q + stride_q, row_q + stride_q};
      end else if (beat) begin
        row_left_q <= row_left_q - 1'b1;
        beat_address_q <= beat_address_q + AddrBits'(BusBytes);
      end
    end
  end

  // Beats on the way: of the address on the bus, of the oldest burst, of the other one.
  logic [31:0] asked;
  logic [7:0] oldest, other;
  logic drained_q, failed_q;  // failed_q: an error response was taken in the last cycle
  assign oldest = u_port.bursts_q == '0 ? '0 : u_port.lengths[u_port.read_q];
  assign other = u_port.lengths[!u_port.read_q];
  assign asked = (axi_req_o.arvalid ? 32'(axi_req_o.arlen) + 1 : 0)
      + (u_port.bursts_q == '0 ? 0 : 32'(oldest) + 1 - 32'(u_port.beat_q))
      + (u_port.bursts_q == 2'd2 ? 32'(other) + 1 : 0);
  always_ff @(posedge clk_i) begin
    {drained_q, last_address_q} <= {drain_i, beat_address_q};
    failed_q <= rst_ni && axi_rsp_i.rvalid && axi_req_o.rready && axi_rsp_i.rresp[1];
  end

  // The contract: one block after another, small ones here; a beat is taken when it has come.
  // Draining lasts until all has come.
  logic drain_q;
  always_ff @(posedge clk_i) drain_q <= rst_ni && drain_i && !idle_o;
  always_comb begin
    if (!started_q) assume (!rst_ni);
    if (drain_q) assume (drain_i);
    if (start_i) begin
      assume (rst_ni && !drain_i && idle_o && rows_left_q == '0 && pending_q == '0);
      assume (rows_i != '0 && 32'(rows_i) <= MostRows && row_last_i < RowBeatsBits'(MostBeats));
      assume (address_i[LogBusBytes-1:0] == '0 && stride_i[LogBusBytes-1:0] == '0);
    end
    if (Ended && start_i) assume (!dut.ask_valid && !dut.unused_valid);
    if (taken_i) assume (pending_q != '0 || beat);
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      a_no_more : assert (!beat_valid_o || rows_left_q != '0);
      a_idle : assert (!idle_o || !axi_req_o.arvalid);
      a_fault : assert (drain_i || fault_o == failed_q);
      a_fault_address : assert (drain_i || !fault_o || fault_address_o == last_address_q);
      // How the master's counts stand to those of the port, for the induction.
      i_bursts : assert (32'(dut.bursts_q)
          == 32'(u_port.bursts_q) + 32'(axi_req_o.arvalid) + 32'(dut.burst_ends_1_q));
      i_beats : assert (drained_q
          || 32'(dut.beats) == 32'(pending_q) + asked + 32'(dut.taken_1_q));
      i_held : assert (16'(dut.held_q) == pending_q);
      i_few : assert (pending_q <= 16'(MaxBeats) && u_port.beat_q <= oldest);
      i_places : assert (u_port.write_q == (u_port.read_q ^ u_port.bursts_q[0])
          && u_port.bursts_q <= 2'(MaxBursts));
      i_stride : assert (stride_q[LogBusBytes-1:0] == '0);
    end
    c_block : cover (started_q && rst_ni && rows_left_q == 16'd1 && rows_q == 16'd2 && beat
        && row_left_q == '0);
    c_drained : cover (started_q && rst_ni && drain_i && axi_rsp_i.rvalid && axi_rsp_i.rlast);
  end

endmodule
