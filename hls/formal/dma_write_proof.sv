// SPDX-License-Identifier: Apache-2.0
//
// vta_dma_write with short bursts and few outstanding: it keeps AXI's rules at its port, takes as
// many beats as the block has, is done when all are answered and not before, and names the address
// of a burst with an error.

module dma_write_proof
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  parameter int unsigned MaxBurstBeats = 4,
  parameter int unsigned MaxBursts = 2,
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
  input logic                    beat_valid_i,
  input logic [     BusBits-1:0] beat_data_i,
  input axi_write_rsp_t          axi_rsp_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  logic idle_o, done_o, beat_ready_o, fault_o;
  axi_write_req_t axi_req_o;
  fault_e fault_code_o;
  address_t fault_address_o;
  logic [RowBeatsBits-1:0] row_last_q;
  logic [15:0] rows_q;
  address_t stride_q;
  always_ff @(posedge clk_i) begin
    if (start_i) {row_last_q, rows_q, stride_q} <= {row_last_i, rows_i, stride_i};
    if (!rst_ni) stride_q <= '0;
  end

  vta_dma_write #(
    .MaxBurstBeats(MaxBurstBeats),
    .MaxBursts(MaxBursts),
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
    .done_o,
    .beat_valid_i,
    .beat_ready_o,
    .beat_data_i,
    .fault_o,
    .fault_code_o,
    .fault_address_o,
    .axi_req_o,
    .axi_rsp_i
  );

  axi4_write_checker #(
    .AddrBits(AddrBits),
    .DataBits(BusBits),
    .MaxBeats(MaxBurstBeats),
    .MaxBursts(MaxBursts),
    .AssumeSlave(1'b1)
  ) u_port (
    .clk_i,
    .rst_ni,
    .awaddr_i(axi_req_o.awaddr),
    .awlen_i(axi_req_o.awlen),
    .awsize_i(3'(LogBusBytes)),
    .awburst_i(2'b01),
    .awvalid_i(axi_req_o.awvalid),
    .awready_i(axi_rsp_i.awready),
    .wdata_i(axi_req_o.wdata),
    .wstrb_i(axi_req_o.wstrb),
    .wlast_i(axi_req_o.wlast),
    .wvalid_i(axi_req_o.wvalid),
    .wready_i(axi_rsp_i.wready),
    .bresp_i(axi_rsp_i.bresp),
    .bvalid_i(axi_rsp_i.bvalid),
    .bready_i(axi_req_o.bready)
  );

  // Beats that the block still needs, and those on the bus with their strobes high.
  logic [15:0] left_q, unsent_q;
  logic open_q, drained_q;  // a block is not done; it was ended by drain_i
  logic beat, sent;
  assign beat = beat_valid_i && beat_ready_o;
  assign sent = axi_req_o.wvalid && axi_rsp_i.wready && axi_req_o.wstrb != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= '0;
      unsent_q <= '0;
      open_q <= 1'b0;
      drained_q <= 1'b0;
    end else begin
      unsent_q <= unsent_q + 16'(beat) - 16'(sent);
      if (start_i) left_q <= 16'(row_last_i + 1'b1) * rows_i;
      else if (beat) left_q <= left_q - 1'b1;
      if (start_i) {open_q, drained_q} <= 2'b10;
      else if (drain_i) drained_q <= 1'b1;
      else if (done_o) open_q <= 1'b0;
    end
  end

  // The contract: one block after another, small ones here. Draining lasts until all is answered.
  logic drain_q;
  always_ff @(posedge clk_i) drain_q <= rst_ni && drain_i && !idle_o;
  always_comb begin
    if (!started_q) assume (!rst_ni);
    if (drain_q) assume (drain_i);
    if (start_i) begin
      assume (rst_ni && !drain_i && idle_o && done_o && (!open_q || drained_q));
      assume (rows_i != '0 && 32'(rows_i) <= MostRows && row_last_i < RowBeatsBits'(MostBeats));
      assume (address_i[LogBusBytes-1:0] == '0 && stride_i[LogBusBytes-1:0] == '0);
      if (Ended) assume (!dut.ask_valid && !dut.send_valid && !dut.unused_answer_valid);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      a_no_more : assert (!beat || left_q != '0);
      a_done : assert (!(open_q && !drained_q && done_o) || (left_q == '0 && unsent_q == '0));
      a_written : assert (!sent || unsent_q != '0);
      a_strobes : assert (!axi_req_o.wvalid || axi_req_o.wstrb == '0 || axi_req_o.wstrb == '1);
      a_idle : assert (!idle_o || (!axi_req_o.awvalid && !axi_req_o.wvalid));
      // How the master's counts stand to those of the port, for the induction.
      i_unsent : assert (unsent_q == 16'(axi_req_o.wvalid && axi_req_o.wstrb != '0));
      i_stride : assert (stride_q[LogBusBytes-1:0] == '0);
      i_addressed : assert (32'(u_port.unanswered_q)
          == 32'(u_port.addressed_q) + 32'(u_port.waits_q));
      i_waits : assert (!u_port.waits_q || axi_req_o.awvalid);
      i_unanswered : assert (32'(dut.unanswered_q)
          == 32'(u_port.unanswered_q) + 32'(axi_req_o.awvalid && !u_port.waits_q));
    end
    c_block : cover (started_q && rst_ni && open_q && !drained_q && done_o && row_last_q != '0);
    c_drained : cover (started_q && rst_ni && drain_i && axi_req_o.wvalid && axi_req_o.wstrb == '0);
  end

endmodule
