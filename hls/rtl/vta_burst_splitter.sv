// SPDX-License-Identifier: Apache-2.0
//
// Splits a two-dimensional block of memory into AXI bursts: rows of row_beats_i beats, stride_i bytes apart, each cut
// into INCR bursts of at most MaxBurstBeats that never cross a 4 KiB boundary.
//
// After start_i the bursts appear in order at address_o and beats_o, the first in the next cycle, one a cycle while
// next_i is high. row_beats_i, rows_i (both at least 1) and stride_i must hold still from start_i on while valid_o is
// high; address_i is aligned to the bus. clear_i forgets the rest.

module vta_burst_splitter
  import vta_pkg::*;
#(
  parameter int unsigned MaxBurstBeats = 256
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    clear_i,
  input  logic                    start_i,
  input  address_t                address_i,
  input  logic [RowBeatsBits-1:0] row_beats_i,
  input  logic [            15:0] rows_i,
  input  address_t                stride_i,
  output logic                    valid_o,
  output address_t                address_o,
  output logic [             8:0] beats_o,
  input  logic                    next_i
);

  // Beats from an address to the next 4 KiB boundary: up to 512 for 64 bits.
  localparam int unsigned PageBeatsBits = 12 - LogBusBytes;

  logic valid_q;
  address_t address_q, row_address_q;
  logic [RowBeatsBits-1:0] row_left_q;  // this burst's beats included
  logic [15:0] rows_left_q;
  // Of the burst at address_q. Told beforehand, because much is decided by them in the cycle in which it is shown.
  logic [8:0] beats_q;
  logic row_ends_q;

  // The most beats that a burst from here may have.
  function automatic logic [9:0] limit(input logic [PageBeatsBits-1:0] page_beat);
    logic [PageBeatsBits:0] to_boundary;
    to_boundary = {1'b1, {PageBeatsBits{1'b0}}} - {1'b0, page_beat};
    return 10'(to_boundary) < 10'(MaxBurstBeats) ? 10'(to_boundary) : 10'(MaxBurstBeats);
  endfunction

  assign address_o = address_q;
  assign beats_o = beats_q;
  assign valid_o = valid_q;

  always_ff @(posedge clk_i) begin
    if (start_i || (valid_q && next_i)) begin
      // The next burst: of a new block, of the next row, or of the same row.
      automatic address_t row_address = start_i ? address_i : row_address_q + stride_i;
      automatic logic new_row = start_i || row_ends_q;
      automatic address_t address = new_row ? row_address : address_q + (AddrBits'(beats_q) << LogBusBytes);
      automatic logic [RowBeatsBits-1:0] row_left = new_row ? row_beats_i : row_left_q - RowBeatsBits'(beats_q);
      automatic logic [9:0] most = limit(address[11:LogBusBytes]);
      automatic logic row_ends = row_left <= RowBeatsBits'(most);
      address_q <= address;
      row_left_q <= row_left;
      row_ends_q <= row_ends;
      beats_q <= row_ends ? row_left[8:0] : 9'(most);
      if (new_row) begin
        row_address_q <= row_address;
        rows_left_q <= start_i ? rows_i : rows_left_q - 1'b1;
        valid_q <= start_i || rows_left_q != 16'd1;
      end
    end
    if (!rst_ni || clear_i) valid_q <= 1'b0;
  end

`ifndef SYNTHESIS
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni)
      start_i |-> row_beats_i != '0 && rows_i != '0 && address_i[LogBusBytes-1:0] == '0)
  else $error("vta_burst_splitter: an empty or unaligned block");
  assert_page : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_q |-> 13'(address_q[11:0]) + (13'(beats_o) << LogBusBytes) <= 13'd4096)
  else $error("a burst crosses a 4 KiB boundary");
`endif

endmodule
