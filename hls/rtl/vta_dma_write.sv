// SPDX-License-Identifier: Apache-2.0
//
// Writes a stream of beats to a two-dimensional block of memory over AXI4.
//
// Addresses run ahead of data by up to MaxBursts bursts whose response is outstanding. The first
// address is on the bus two cycles after start_i. done_o: every burst of the block has been
// answered; it is high before start_i too.
//
// An error response ends the transfer: fault_o for one cycle, with the address of the burst. While
// drain_i is high no burst is begun; those begun are completed with beats that write nothing;
// idle_o says when none is outstanding.

module vta_dma_write
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  parameter int unsigned MaxBurstBeats = 256,
  parameter int unsigned MaxBursts = 32,
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
  output logic                    done_o,
  // Its beats.
  input  logic                    beat_valid_i,
  output logic                    beat_ready_o,
  input  logic [     BusBits-1:0] beat_data_i,
  output logic                    fault_o,
  output fault_e                  fault_code_o,
  output address_t                fault_address_o,
  // AXI4.
  output axi_write_req_t          axi_req_o,
  input  axi_write_rsp_t          axi_rsp_i
);

  localparam int unsigned BurstsBits = $clog2(MaxBursts + 1);

  // An address that is not aligned to the bus is taken to be aligned.
  address_t aligned;
  assign aligned = {address_i[AddrBits-1:LogBusBytes], {LogBusBytes{1'b0}}};
  logic [LogBusBytes-1:0] unused_address;
  assign unused_address = address_i[LogBusBytes-1:0];

  // ---- Addresses --------------------------------------------------------------------------------
  logic ask_valid, may_ask, ask;
  address_t ask_address;
  logic [7:0] ask_last;
  logic unused_ask_single;

  vta_burst_splitter #(
    .MaxBurstBeats(MaxBurstBeats),
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
    .planes_i(16'd1),
    .plane_stride_i('0),
    .valid_o(ask_valid),
    .address_o(ask_address),
    .last_beat_o(ask_last),
    .single_o(unused_ask_single),
    .next_i(may_ask)  // drain_i clears it
  );

  logic awvalid_q, free_q;  // free_q: the other one of the two
  address_t awaddr_q;
  logic [7:0] awlen_q;
  logic [BurstsBits-1:0] unanswered_q;  // bursts asked for without a response
  logic [BurstsBits-1:0] unsent_q;      // bursts asked for whose data has not all left
  logic unsent_any_q;                   // there are such
  logic room_q;                         // for another burst without a response

  logic answer, burst_sent;
  assign answer = axi_rsp_i.bvalid && axi_req_o.bready;
  assign ask = may_ask && !drain_i;
  always_comb begin
    may_ask = 1'b0;
    if (ask_valid) may_ask = (!awvalid_q || axi_rsp_i.awready) && room_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {awvalid_q, free_q} <= 2'b01;
      unanswered_q <= '0;
      room_q <= 1'b1;
      unsent_q <= '0;
      unsent_any_q <= 1'b0;
    end else begin
      if (ask) {awvalid_q, free_q} <= 2'b10;
      else if (axi_rsp_i.awready) {awvalid_q, free_q} <= 2'b01;
      // Whether a burst is asked for or not: that goes to few registers.
      if (free_q || axi_rsp_i.awready) begin
        awaddr_q <= ask_address;
        awlen_q <= ask_last;
      end
      if (ask != answer) begin
        unanswered_q <= ask ? unanswered_q + 1'b1 : unanswered_q - 1'b1;
        room_q <= !ask || unanswered_q != BurstsBits'(MaxBursts - 1);
      end
      if (ask != burst_sent) begin
        unsent_q <= ask ? unsent_q + 1'b1 : unsent_q - 1'b1;
        unsent_any_q <= ask || unsent_q != BurstsBits'(1);
      end
    end
  end

  assign axi_req_o.awaddr = awaddr_q;
  assign axi_req_o.awlen = awlen_q;
  assign axi_req_o.awvalid = awvalid_q;
  assign axi_req_o.bready = 1'b1;
  assign idle_o = unanswered_q == '0;
  assign done_o = unanswered_q == '0 && !ask_valid;

  // ---- Data -------------------------------------------------------------------------------------
  // The same bursts again, as their data leaves. Not cleared by drain_i, for requested bursts must
  // be sent: there is one as long as unsent_any_q says so.
  logic send_valid, send, single;
  logic [7:0] send_last;
  logic [7:0] beat_q;
  address_t unused_send_address;

  vta_burst_splitter #(
    .MaxBurstBeats(MaxBurstBeats),
    `include "vta_passed.svh"
  ) u_send (
    .clk_i,
    .rst_ni,
    .clear_i(drain_i && !unsent_any_q),
    .start_i,
    .address_i(aligned),
    .row_last_i,
    .rows_i,
    .stride_i,
    .planes_i(16'd1),
    .plane_stride_i('0),
    .valid_o(send_valid),
    .address_o(unused_send_address),
    .last_beat_o(send_last),
    .single_o(single),
    .next_i(burst_sent)
  );

  logic wvalid_q, wlast_q, wstrobe_q;
  logic [BusBits-1:0] wdata_q;
  // Whether the beat is its burst's last: of the first one the splitter says so.
  logic beat_last, first_q, last_q;

  assign beat_last = first_q ? single : last_q;
  always_comb begin
    send = 1'b0;
    beat_ready_o = 1'b0;
    burst_sent = 1'b0;
    if (unsent_any_q && (!wvalid_q || axi_rsp_i.wready)) begin
      send = beat_valid_i || drain_i;
      beat_ready_o = !drain_i;
      burst_sent = send && beat_last;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wvalid_q <= 1'b0;
      beat_q <= '0;
      first_q <= 1'b1;
    end else begin
      if (send) begin
        wvalid_q <= 1'b1;
        wdata_q <= beat_data_i;
        wlast_q <= beat_last;
        wstrobe_q <= !drain_i;
        beat_q <= beat_last ? '0 : beat_q + 1'b1;
        first_q <= beat_last;
        last_q <= beat_q + 1'b1 == send_last;
      end else if (axi_rsp_i.wready) begin
        wvalid_q <= 1'b0;
      end
    end
  end

  assign axi_req_o.wdata = wdata_q;
  assign axi_req_o.wstrb = {BusBytes{wstrobe_q}};
  assign axi_req_o.wlast = wlast_q;
  assign axi_req_o.wvalid = wvalid_q;

  // ---- Responses: the same bursts a third time, to name the address of an error -----------------
  logic unused_answer_valid;
  logic [7:0] unused_answer_last;
  logic unused_answer_single;
  address_t answer_address;

  vta_burst_splitter #(
    .MaxBurstBeats(MaxBurstBeats),
    `include "vta_passed.svh"
  ) u_answer (
    .clk_i,
    .rst_ni,
    .clear_i(drain_i),
    .start_i,
    .address_i(aligned),
    .row_last_i,
    .rows_i,
    .stride_i,
    .planes_i(16'd1),
    .plane_stride_i('0),
    .valid_o(unused_answer_valid),
    .address_o(answer_address),
    .last_beat_o(unused_answer_last),
    .single_o(unused_answer_single),
    .next_i(answer)
  );

  assign fault_o = axi_rsp_i.bvalid && axi_rsp_i.bresp[1] && !drain_i;
  assign fault_code_o = fault_of_response(axi_rsp_i.bresp);
  assign fault_address_o = answer_address;

`ifndef SYNTHESIS
  // verilog_format: off
  assert_any : assert property (@(posedge clk_i) disable iff (!rst_ni)
      unsent_any_q == (unsent_q != '0))
  else $error("vta_dma_write lost count of its bursts");
  assert_flags : assert property (@(posedge clk_i) disable iff (!rst_ni)
      free_q == !awvalid_q && room_q == (unanswered_q != BurstsBits'(MaxBursts)))
  else $error("vta_dma_write: a flag differs from what it says");
  assert_last : assert property (@(posedge clk_i) disable iff (!rst_ni)
      send_valid -> beat_last == (beat_q == send_last))
  else $error("vta_dma_write: a flag differs from its count");
  assert_sends : assert property (@(posedge clk_i) disable iff (!rst_ni)
      unsent_any_q -> send_valid)
  else $error("a burst was asked for that has no data");
  assert_aw_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && axi_req_o.awvalid && !axi_rsp_i.awready)
      -> axi_req_o.awvalid && $stable(axi_req_o.awaddr) && $stable(axi_req_o.awlen))
  else $error("an AXI write address changed before it was accepted");
  assert_w_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && axi_req_o.wvalid && !axi_rsp_i.wready) -> axi_req_o.wvalid
          && $stable(axi_req_o.wdata) && $stable(axi_req_o.wlast))
  else $error("AXI write data changed before it was accepted");
  assert_expected : assert property (@(posedge clk_i) disable iff (!rst_ni)
      axi_rsp_i.bvalid -> unanswered_q != '0)
  else $error("an AXI write response that nobody waits for");
  assert_burst : assert property (@(posedge clk_i) disable iff (!rst_ni)
      axi_req_o.awvalid -> 32'(axi_req_o.awlen) < MaxBurstBeats)
  else $error("an AXI write burst is too long");
  assert_room : assert property (@(posedge clk_i) disable iff (!rst_ni)
      unanswered_q <= BurstsBits'(MaxBursts))
  else $error("more bursts were asked for than may be outstanding");
  assert_unsent : assert property (@(posedge clk_i) disable iff (!rst_ni) unsent_q <= unanswered_q)
  else $error("a burst was answered before its data left");
  cover_waits : cover property (@(posedge clk_i) rst_ni && axi_req_o.wvalid && !axi_rsp_i.wready);
  cover_fault : cover property (@(posedge clk_i) rst_ni && fault_o);
  cover_drained : cover property (@(posedge clk_i) rst_ni && axi_req_o.wvalid
      && axi_req_o.wstrb == '0);
  // verilog_format: on
`endif

endmodule
