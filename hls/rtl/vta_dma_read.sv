// SPDX-License-Identifier: Apache-2.0
//
// Reads a two-dimensional block of memory over AXI4 and hands its beats on in order.
//
// Addresses run ahead of data: bursts are asked for, one a cycle, until MaxBursts are outstanding
// or there is no room for a whole burst among the MaxBeats beats that may be on their way or not
// yet taken (beat_taken_i). The first address is on the bus two cycles after start_i. Beats pass
// straight from the bus: beat_ready_i must not depend on them.
//
// An error response ends the transfer: fault_o for one cycle, with the address of the beat. While
// drain_i is high nothing new is asked for, arriving data is thrown away, and fault_o means nothing;
// idle_o says when nothing is outstanding any more.

module vta_dma_read
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  parameter int unsigned MaxBurstBeats = 256,
  parameter int unsigned MaxBursts     = 32,
  // Enough for a beat a cycle from a memory of a thousand cycles; more would only make a soft reset
  // take longer.
  parameter int unsigned MaxBeats      = 1024,
  parameter bit          Planes        = 1'b0,
  parameter bit          Rows          = 1'b1,
  `include "vta_parameters.svh"
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    drain_i,
  output logic                    idle_o,
  // The block; see vta_burst_splitter.
  input  logic                    start_i,
  input  address_t                address_i,
  input  logic [RowBeatsBits-1:0] row_last_i,
  input  logic [            15:0] rows_i,
  input  address_t                stride_i,
  input  logic [            15:0] planes_i,
  input  address_t                plane_stride_i,
  // Its beats.
  output logic                    beat_valid_o,
  input  logic                    beat_ready_i,
  output logic [     BusBits-1:0] beat_data_o,
  input  logic                    beat_taken_i,
  output logic                    fault_o,
  output fault_e                  fault_code_o,
  output address_t                fault_address_o,
  // AXI4.
  output axi_read_req_t           axi_req_o,
  input  axi_read_rsp_t           axi_rsp_i,
  input  logic [BusBits-1:0]      axi_rdata_i
);

  localparam int unsigned BurstsBits = $clog2(MaxBursts + 1);
  localparam int unsigned BeatsBits = $clog2(MaxBeats + 1);
  typedef logic signed [BeatsBits:0] level_t;

  // An address that is not aligned to the bus is taken to be aligned.
  address_t aligned;
  assign aligned = {address_i[AddrBits-1:LogBusBytes], {LogBusBytes{1'b0}}};
  logic [LogBusBytes-1:0] unused_address;
  assign unused_address = address_i[LogBusBytes-1:0];

  // ---- Addresses --------------------------------------------------------------------------------
  logic ask_valid, may_ask, ask, unused_ask_single;
  address_t ask_address;
  logic [7:0] ask_last;

  vta_burst_splitter #(
    .MaxBurstBeats(MaxBurstBeats),
    .Planes(Planes),
    .Rows(Rows),
    `include "vta_passed.svh"
  ) u_ask (
    .clk_i,
    .rst_ni,
    .clear_i(drain_i),
    .start_i,
    .address_i(aligned),
    .row_last_i,
    .rows_i,
    .stride_i,
    .planes_i,
    .plane_stride_i,
    .valid_o(ask_valid),
    .address_o(ask_address),
    .last_beat_o(ask_last),
    .single_o(unused_ask_single),
    .next_i(may_ask)  // drain_i clears it
  );

  logic arvalid_q, free_q;  // free_q: the other one of the two
  address_t araddr_q;
  logic [7:0] arlen_q;
  // Outstanding bursts, and beats asked for and not taken; whether there is room for another burst.
  logic [BurstsBits-1:0] bursts_q;
  // The beats count from Empty on: below zero while there is room, which their sign says.
  localparam level_t Empty = -level_t'(MaxBeats - MaxBurstBeats + 1);
  level_t beats_q, beats_asked, beats_kept;  // the next count if ask, and if not
  logic room_q, bursts_fit;

  // What arrives and what is taken counts a cycle later.
  logic beat_1_q, burst_ends_1_q, taken_1_q;
  always_ff @(posedge clk_i) begin
    beat_1_q <= rst_ni && axi_rsp_i.rvalid && axi_req_o.rready;
    burst_ends_1_q <= rst_ni && axi_rsp_i.rvalid && axi_req_o.rready && axi_rsp_i.rlast;
    taken_1_q <= rst_ni && !drain_i && beat_taken_i;
  end
  always_comb begin
    may_ask = 1'b0;
    if (ask_valid) may_ask = (!arvalid_q || axi_rsp_i.arready) && room_q;
  end
  assign ask = may_ask && !drain_i;

  // Whether there will be room is known beside ask, which comes late.
  assign beats_asked = beats_q + level_t'({1'b0, ask_last}) + level_t'({1'b0, !taken_1_q});
  assign beats_kept = beats_q - level_t'({1'b0, taken_1_q});
  assign bursts_fit = burst_ends_1_q || bursts_q != BurstsBits'(ask ? MaxBursts - 1 : MaxBursts);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {arvalid_q, free_q} <= 2'b01;
    end else if (ask) begin
      {arvalid_q, free_q} <= 2'b10;
    end else if (axi_rsp_i.arready) begin
      {arvalid_q, free_q} <= 2'b01;
    end
    // Whether a burst is asked for or not: that goes to few registers.
    if (free_q || axi_rsp_i.arready) begin
      araddr_q <= ask_address;
      arlen_q <= ask_last;
    end
    if (ask != burst_ends_1_q) bursts_q <= ask ? bursts_q + 1'b1 : bursts_q - 1'b1;
    beats_q <= ask ? beats_asked : beats_kept;
    room_q <= bursts_fit && (ask ? beats_asked < 0 : beats_kept < 0);
    if (!rst_ni || drain_i) begin
      beats_q <= Empty;
      room_q <= bursts_fit;
    end
    if (!rst_ni) begin
      bursts_q <= '0;
      room_q <= 1'b1;
    end
  end

  assign axi_req_o.araddr = araddr_q;
  assign axi_req_o.arlen = arlen_q;
  assign axi_req_o.arvalid = arvalid_q;
  assign idle_o = bursts_q == '0;

  // ---- Data -------------------------------------------------------------------------------------
  assign axi_req_o.rready = beat_ready_i || drain_i;
  assign beat_valid_o = axi_rsp_i.rvalid && !drain_i;
  assign beat_data_o = axi_rdata_i;

  // The same bursts again, as their last beats arrive: only to name the address of an error.
  address_t burst_address;
  logic [7:0] burst_last;
  logic [7:0] beat_q;
  logic unused_valid, unused_single;
  logic [7:0] unused_last;  // only an assertion looks at it
  assign unused_last = burst_last;

  vta_burst_splitter #(
    .MaxBurstBeats(MaxBurstBeats),
    .Planes(Planes),
    .Rows(Rows),
    `include "vta_passed.svh"
  ) u_arrive (
    .clk_i,
    .rst_ni,
    .clear_i(drain_i),
    .start_i,
    .address_i(aligned),
    .row_last_i,
    .rows_i,
    .stride_i,
    .planes_i,
    .plane_stride_i,
    .valid_o(unused_valid),
    .address_o(burst_address),
    .last_beat_o(burst_last),
    .single_o(unused_single),
    .next_i(burst_ends_1_q)
  );

  logic error_1_q;
  logic [1:0] response_1_q;
  always_ff @(posedge clk_i) begin
    if (beat_1_q) beat_q <= beat_q + 1'b1;
    if (!rst_ni || drain_i || burst_ends_1_q) beat_q <= '0;
    error_1_q <= rst_ni && axi_rsp_i.rvalid && axi_rsp_i.rresp[1] && axi_req_o.rready;
    if (axi_rsp_i.rvalid) response_1_q <= axi_rsp_i.rresp;
  end

  assign fault_o = error_1_q;
  assign fault_code_o = fault_of_response(response_1_q);
  assign fault_address_o = burst_address + (AddrBits'(beat_q) << LogBusBytes);

`ifndef SYNTHESIS
  // verilog_format: off
  logic [BeatsBits:0] beats;  // asked for and not taken
  assign beats = beats_q - Empty;
  assert_ar_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && axi_req_o.arvalid && !axi_rsp_i.arready)
      -> axi_req_o.arvalid && $stable(axi_req_o.araddr) && $stable(axi_req_o.arlen))
  else $error("an AXI read address changed before it was accepted");
  assert_last : assert property (@(posedge clk_i) disable iff (!rst_ni)
      beat_1_q && !drain_i -> burst_ends_1_q == (beat_q == burst_last))
  else $error("an AXI read burst has not the length that was asked for");
  assert_expected : assert property (@(posedge clk_i) disable iff (!rst_ni)
      axi_rsp_i.rvalid -> bursts_q != '0)
  else $error("AXI read data that nobody asked for");
  assert_burst : assert property (@(posedge clk_i) disable iff (!rst_ni)
      axi_req_o.arvalid -> 32'(axi_req_o.arlen) < MaxBurstBeats)
  else $error("an AXI read burst is too long");
  assert_room : assert property (@(posedge clk_i) disable iff (!rst_ni)
      bursts_q <= BurstsBits'(MaxBursts) && beats <= (BeatsBits + 1)'(MaxBeats) && room_q
      == (bursts_q != BurstsBits'(MaxBursts) && beats <= (BeatsBits + 1)'(MaxBeats - MaxBurstBeats)))
  else $error("more was asked for than there is room for");
  assert_free : assert property (@(posedge clk_i) disable iff (!rst_ni) free_q == !arvalid_q)
  else $error("vta_dma_read: a flag differs from the other");
  // Beats that arrived and are not taken; what is taken leaves beats a cycle later.
  logic [BeatsBits-1:0] held_q;
  always_ff @(posedge clk_i) begin
    if (beat_valid_o && axi_req_o.rready && !beat_taken_i) held_q <= held_q + 1'b1;
    else if (!(beat_valid_o && axi_req_o.rready) && beat_taken_i) held_q <= held_q - 1'b1;
    if (!rst_ni || drain_i) held_q <= '0;
  end
  assert_settled : assert property (@(posedge clk_i) disable iff (!rst_ni)
      bursts_q == '0 && !drain_i -> beats == (BeatsBits + 1)'(held_q) + (BeatsBits + 1)'(taken_1_q))
  else $error("vta_dma_read lost count of its beats: room was lost or made up");
  cover_waits : cover property (@(posedge clk_i) rst_ni && axi_req_o.arvalid && !axi_rsp_i.arready);
  cover_full : cover property (@(posedge clk_i) rst_ni && ask_valid && !room_q);
  cover_fault : cover property (@(posedge clk_i) rst_ni && fault_o);
  // verilog_format: on
`endif

endmodule
