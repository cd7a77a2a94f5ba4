// SPDX-License-Identifier: Apache-2.0
//
// The rules of an AXI4 write port whose bursts are INCR, of the bus's width, with one ID (AMBA AXI
// Protocol Specification, IHI 0022), and one rule more: no data before its address is on the bus.
// Rules of the master are asserted. Those of the slave are asserted in a simulation; in a proof
// (AssumeSlave) they are what the solver may choose from.

module axi4_write_checker #(
  parameter int unsigned AddrBits = 48,
  parameter int unsigned DataBits = 64,
  parameter int unsigned MaxBeats = 256,  // of a burst
  parameter int unsigned MaxBursts = 32,  // without a response
  parameter bit AssumeSlave = 1'b0
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [  AddrBits-1:0] awaddr_i,
  input logic [           7:0] awlen_i,
  input logic [           2:0] awsize_i,
  input logic [           1:0] awburst_i,
  input logic                  awvalid_i,
  input logic                  awready_i,
  input logic [  DataBits-1:0] wdata_i,
  input logic [DataBits/8-1:0] wstrb_i,
  input logic                  wlast_i,
  input logic                  wvalid_i,
  input logic                  wready_i,
  input logic [           1:0] bresp_i,
  input logic                  bvalid_i,
  input logic                  bready_i
);

  localparam int unsigned LogBytes = $clog2(DataBits / 8);
  localparam int unsigned PlaceBits = MaxBursts > 1 ? $clog2(MaxBursts) : 1;

  // Lengths of the bursts whose address was on the bus and whose data has not all left, the oldest
  // at read_q. An address is new in the first cycle in which it is shown.
  logic [7:0] lengths[MaxBursts];
  logic [7:0] length;
  logic [PlaceBits-1:0] write_q, read_q;
  // the last two: without a response
  logic [PlaceBits:0] unsent_q, unanswered_q, addressed_q, sent_q;
  logic [7:0] beat_q;
  logic waits_q, announced, address, beat, ends, answer;
  assign announced = awvalid_i && !waits_q;
  assign address = awvalid_i && awready_i;
  assign beat = wvalid_i && wready_i;
  assign ends = beat && wlast_i;
  assign answer = bvalid_i && bready_i;
  assign length = unsent_q == '0 ? awlen_i : lengths[read_q];

  function automatic logic [PlaceBits-1:0] next(input logic [PlaceBits-1:0] place);
    return 32'(place) == MaxBursts - 1 ? '0 : place + 1'b1;
  endfunction

  function automatic logic [PlaceBits:0] moved(input logic [PlaceBits:0] count,
                                                  input logic up, input logic down);
    return up == down ? count : up ? count + 1'b1 : count - 1'b1;
  endfunction

  always_ff @(posedge clk_i) begin
    if (announced) lengths[write_q] <= awlen_i;
    if (!rst_ni) begin
      write_q <= '0;
      read_q <= '0;
      unsent_q <= '0;
      unanswered_q <= '0;
      addressed_q <= '0;
      sent_q <= '0;
      beat_q <= '0;
      waits_q <= 1'b0;
    end else begin
      waits_q <= awvalid_i && !awready_i;
      if (announced) write_q <= next(write_q);
      if (ends) read_q <= next(read_q);
      if (beat) beat_q <= wlast_i ? '0 : beat_q + 1'b1;
      unsent_q <= moved(unsent_q, announced, ends);
      unanswered_q <= moved(unanswered_q, announced, answer);
      addressed_q <= moved(addressed_q, address, answer);
      sent_q <= moved(sent_q, ends, answer);
    end
  end

  // ---- Master -----------------------------------------------------------------------------------
  assert_reset : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !$past(rst_ni) -> !awvalid_i && !wvalid_i)
  else $error("AWVALID or WVALID is high as the reset ends");
  assert_aw_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && awvalid_i && !awready_i) -> awvalid_i && $stable(awaddr_i) && $stable(awlen_i)
      && $stable(awsize_i) && $stable(awburst_i))
  else $error("a write address changed before it was accepted");
  assert_aw_incr : assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid_i -> awburst_i == 2'b01 && 32'(awsize_i) == LogBytes && awaddr_i[LogBytes-1:0] == '0)
  else $error("a write burst is not INCR, of the bus's width, aligned");
  assert_aw_length : assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid_i -> 32'(awlen_i) < MaxBeats)
  else $error("a write burst is longer than the master may ask for");
  assert_aw_page : assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid_i -> 32'(awaddr_i[11:0]) + ((32'(awlen_i) + 1) << LogBytes) <= 4096)
  else $error("a write burst crosses a 4 KiB boundary");
  assert_aw_outstanding : assert property (@(posedge clk_i) disable iff (!rst_ni)
      announced -> 32'(unanswered_q) < MaxBursts)
  else $error("the master asks for more bursts than it may have outstanding");
  assert_w_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && wvalid_i && !wready_i) -> wvalid_i && $stable(wdata_i) && $stable(wstrb_i)
          && $stable(wlast_i))
  else $error("write data changed before it was accepted");
  assert_w_asked : assert property (@(posedge clk_i) disable iff (!rst_ni)
      wvalid_i -> unsent_q != '0 || announced)
  else $error("write data without an address");
  assert_w_last : assert property (@(posedge clk_i) disable iff (!rst_ni)
      wvalid_i -> wlast_i == (beat_q == length))
  else $error("WLAST is not at the last beat of the burst");

  // ---- Slave ------------------------------------------------------------------------------------
  logic b_due, b_response;
  assign b_due = addressed_q != '0 && sent_q != '0;
  assign b_response = bresp_i != 2'b01;  // EXOKAY is for exclusive accesses
  if (AssumeSlave) begin : g_slave
    assume property (@(posedge clk_i) disable iff (!rst_ni) $past(rst_ni && bvalid_i && !bready_i)
          -> bvalid_i && $stable(bresp_i));
    assume property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i -> b_due && b_response);
  end else begin : g_slave
    assert_b_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        $past(rst_ni && bvalid_i && !bready_i)
          -> bvalid_i && $stable(bresp_i))
    else $error("a write response changed before it was accepted");
    assert_b_due : assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i -> b_due)
    else $error("a write response before the burst's address and last beat");
    assert_b_response : assert property (@(posedge clk_i) disable iff (!rst_ni)
        bvalid_i -> b_response)
    else $error("EXOKAY for a plain write");
  end

  cover_w_waits : cover property (@(posedge clk_i) rst_ni && wvalid_i && !wready_i);
  cover_aw_waits : cover property (@(posedge clk_i) rst_ni && awvalid_i && !awready_i);
  cover_early_data : cover property (@(posedge clk_i) rst_ni && beat && awvalid_i && !awready_i);

endmodule
