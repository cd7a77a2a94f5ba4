// SPDX-License-Identifier: Apache-2.0
//
// The rules of an AXI4 read port whose bursts are INCR, of the bus's width, with one ID, so that
// data comes in order (AMBA AXI Protocol Specification, IHI 0022). Rules of the master are
// asserted. Those of the slave are asserted in a simulation; in a proof (AssumeSlave) they are what
// the solver may choose from.

module axi4_read_checker #(
  parameter int unsigned AddrBits = 48,
  parameter int unsigned DataBits = 64,
  parameter int unsigned MaxBeats = 256,  // of a burst
  parameter int unsigned MaxBursts = 32,  // outstanding
  parameter bit AssumeSlave = 1'b0
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic [AddrBits-1:0] araddr_i,
  input logic [         7:0] arlen_i,
  input logic [         2:0] arsize_i,
  input logic [         1:0] arburst_i,
  input logic                arvalid_i,
  input logic                arready_i,
  input logic [DataBits-1:0] rdata_i,
  input logic [         1:0] rresp_i,
  input logic                rlast_i,
  input logic                rvalid_i,
  input logic                rready_i
);

  localparam int unsigned LogBytes = $clog2(DataBits / 8);
  localparam int unsigned PlaceBits = MaxBursts > 1 ? $clog2(MaxBursts) : 1;

  // Lengths of the accepted bursts whose data has not all come, the oldest at read_q.
  logic [7:0] lengths[MaxBursts];
  logic [PlaceBits-1:0] write_q, read_q;
  logic [PlaceBits:0] bursts_q;
  logic [7:0] beat_q;
  logic ask, beat, ends;
  assign ask = arvalid_i && arready_i;
  assign beat = rvalid_i && rready_i;
  assign ends = beat && rlast_i;

  function automatic logic [PlaceBits-1:0] next(input logic [PlaceBits-1:0] place);
    return 32'(place) == MaxBursts - 1 ? '0 : place + 1'b1;
  endfunction

  always_ff @(posedge clk_i) begin
    if (ask) lengths[write_q] <= arlen_i;
    if (!rst_ni) begin
      write_q <= '0;
      read_q <= '0;
      bursts_q <= '0;
      beat_q <= '0;
    end else begin
      if (ask) write_q <= next(write_q);
      if (ends) read_q <= next(read_q);
      if (ask != ends) bursts_q <= ask ? bursts_q + 1'b1 : bursts_q - 1'b1;
      if (beat) beat_q <= rlast_i ? '0 : beat_q + 1'b1;
    end
  end

  // ---- Master -----------------------------------------------------------------------------------
  assert_ar_reset : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !$past(rst_ni) -> !arvalid_i)
  else $error("ARVALID is high as the reset ends");
  assert_ar_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && arvalid_i && !arready_i) -> arvalid_i && $stable(araddr_i) && $stable(arlen_i)
      && $stable(arsize_i) && $stable(arburst_i))
  else $error("a read address changed before it was accepted");
  assert_ar_incr : assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_i -> arburst_i == 2'b01 && 32'(arsize_i) == LogBytes && araddr_i[LogBytes-1:0] == '0)
  else $error("a read burst is not INCR, of the bus's width, aligned");
  assert_ar_length : assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_i -> 32'(arlen_i) < MaxBeats)
  else $error("a read burst is longer than the master may ask for");
  assert_ar_page : assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_i -> 32'(araddr_i[11:0]) + ((32'(arlen_i) + 1) << LogBytes) <= 4096)
  else $error("a read burst crosses a 4 KiB boundary");
  assert_ar_outstanding : assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_i -> 32'(bursts_q) < MaxBursts)
  else $error("the master asks for more bursts than it may have outstanding");

  // ---- Slave ------------------------------------------------------------------------------------
  logic r_asked, r_last, r_response;
  assign r_asked = bursts_q != '0;
  assign r_last = rlast_i == (beat_q == lengths[read_q]);
  assign r_response = rresp_i != 2'b01;  // EXOKAY is for exclusive accesses
  if (AssumeSlave) begin : g_slave
    assume property (@(posedge clk_i) disable iff (!rst_ni) $past(rst_ni && rvalid_i && !rready_i)
          -> rvalid_i && $stable(rdata_i) && $stable(rresp_i) && $stable(rlast_i));
    assume property (@(posedge clk_i) disable iff (!rst_ni)
        rvalid_i -> r_asked && r_last && r_response);
  end else begin : g_slave
    assert_r_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        $past(rst_ni && rvalid_i && !rready_i)
          -> rvalid_i && $stable(rdata_i) && $stable(rresp_i) && $stable(rlast_i))
    else $error("read data changed before it was accepted");
    assert_r_asked : assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i -> r_asked)
    else $error("read data that the master did not ask for");
    assert_r_last : assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i -> r_last)
    else $error("RLAST is not at the last beat of the burst");
    assert_r_response : assert property (@(posedge clk_i) disable iff (!rst_ni)
        rvalid_i -> r_response)
    else $error("EXOKAY for a plain read");
  end

  cover_r_waits : cover property (@(posedge clk_i) rst_ni && rvalid_i && !rready_i);
  cover_ar_waits : cover property (@(posedge clk_i) rst_ni && arvalid_i && !arready_i);
  cover_two_bursts : cover property (@(posedge clk_i) rst_ni && 32'(bursts_q) == 2 && ends);

endmodule
