// SPDX-License-Identifier: Apache-2.0
//
// Splits a two-dimensional block of memory into AXI bursts: rows of beats, stride_i bytes apart,
// each cut into INCR bursts at the multiples of MaxBurstBeats. So no burst crosses a 4 KiB
// boundary, and all but the ends of a row are whole.
//
// After start_i, which comes while valid_o is low, the bursts appear in order at address_o and last_beat_o (their beats less one), the
// first in the next cycle, one a cycle while next_i is high. row_last_i (the beats of a row less
// one), rows_i (at least 1) and stride_i must hold still from start_i on while valid_o is high;
// address_i is aligned to the bus. clear_i forgets the rest.
//
// With Planes, so many such blocks (planes_i, at least 1) follow one another, plane_stride_i bytes
// apart; rows_i, planes_i and plane_stride_i must hold still, too. The stride of planes of one row is
// the planes' own.
//
// A sum's second operand is the one that is chosen: the choice is made in the adder's look-up tables.

module vta_burst_splitter
  import vta_pkg::*;
#(
  parameter int unsigned MaxBurstBeats = 256,
  parameter bit          Planes        = 1'b0,
  parameter bit          Rows          = 1'b1,  // else there is one
  `include "vta_parameters.svh"
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    clear_i,
  input  logic                    start_i,
  input  address_t                address_i,
  input  logic [RowBeatsBits-1:0] row_last_i,
  input  logic [            15:0] rows_i,
  input  address_t                stride_i,
  input  logic [            15:0] planes_i,
  input  address_t                plane_stride_i,
  output logic                    valid_o,
  output address_t                address_o,
  output logic [             7:0] last_beat_o,
  output logic                    single_o,     // last_beat_o is zero
  input  logic                    next_i
);

  localparam int unsigned ChunkBits = $clog2(MaxBurstBeats);
  localparam int unsigned ChunkLsb = LogBusBytes + ChunkBits;
  localparam int unsigned RestBits = RowBeatsBits + 1 - ChunkBits;

  typedef logic [ChunkBits-1:0] beat_t;

  logic valid_q;
  address_t address_q, next_row_q;  // of this burst, and of the next row
  beat_t last_beat_q, tail_q;  // of this burst, and of the last of its row; less one
  logic [RestBits-1:0] rest_q;  // bursts of the row after this one
  logic row_ends_q, last_row_q, two_rows_q, single_q;
  logic [15:0] rows_left_q;  // of the plane
  address_t next_plane_q;
  logic [15:0] planes_left_q;
  logic last_plane_q, plane_ends_q;  // plane_ends_q: this burst is the last of its plane

  assign address_o = address_q;
  assign last_beat_o = 8'(last_beat_q);
  assign single_o = single_q;
  assign valid_o = valid_q;

  function automatic logic [RowBeatsBits:0] last_of(input beat_t first);
    return (RowBeatsBits + 1)'(row_last_i) + (RowBeatsBits + 1)'(first);
  endfunction

  // Whether the last beat of a row is in another chunk than the first, as far as its low bits say.
  function automatic logic carries(input beat_t first);
    logic [ChunkBits:0] sum;
    sum = (ChunkBits + 1)'(row_last_i[ChunkBits-1:0]) + (ChunkBits + 1)'(first);
    return sum[ChunkBits];
  endfunction

  always_ff @(posedge clk_i) begin
    if (start_i || (valid_q && next_i)) begin
      if (start_i || (Rows && row_ends_q)) begin
        // A row from its address on. The last beat counts from the multiple of MaxBurstBeats before
        // the row. Within the branch, so that the simulator adds nothing while no row begins. It
        // is the first row where there was none, as start_i says to others than these.
        automatic address_t row_address = valid_q ? next_row_q : address_i;
        automatic beat_t offset = row_address[LogBusBytes+:ChunkBits];
        automatic logic [RowBeatsBits:0] last;
        automatic logic ends;  // the row is one burst
        automatic logic begins_plane = !valid_q || (Planes && last_row_q);
        automatic logic last_row = begins_plane ? rows_i == 16'd1 : two_rows_q;
        last = valid_q ? last_of(next_row_q[LogBusBytes+:ChunkBits])
            : last_of(address_i[LogBusBytes+:ChunkBits]);
        // As the bursts that follow say, sooner.
        ends = row_last_i[RowBeatsBits-1:ChunkBits] == '0
            && !(valid_q ? carries(next_row_q[LogBusBytes+:ChunkBits])
                : carries(address_i[LogBusBytes+:ChunkBits]));
        tail_q <= last[ChunkBits-1:0];
        rest_q <= last[RowBeatsBits:ChunkBits];
        row_ends_q <= ends;
        last_beat_q <= ends ? row_last_i[ChunkBits-1:0] : ~offset;
        single_q <= ends ? row_last_i[ChunkBits-1:0] == '0 : offset == '1;
        next_row_q <= Planes && !begins_plane && two_rows_q ? next_plane_q : stride_i + row_address;
        rows_left_q <= begins_plane ? rows_i : rows_left_q - 1'b1;
        two_rows_q <= begins_plane ? rows_i == 16'd2 : rows_left_q == 16'd3;
        last_row_q <= last_row;
        plane_ends_q <= last_row && ends;
        valid_q <= start_i || !last_row_q || (Planes && !last_plane_q);
      end else begin
        rest_q <= rest_q - 1'b1;
        row_ends_q <= rest_q == RestBits'(1);
        plane_ends_q <= last_row_q && rest_q == RestBits'(1);
        last_beat_q <= rest_q == RestBits'(1) ? tail_q : '1;
        single_q <= rest_q == RestBits'(1) && tail_q == '0;
        if (!Rows && row_ends_q) valid_q <= 1'b0;
      end
    end
    if (start_i || (valid_q && next_i))
      address_q <= !valid_q ? address_i : row_ends_q ? next_row_q
          : {address_q[AddrBits-1:ChunkLsb] + 1'b1, {ChunkLsb{1'b0}}};
    if (!rst_ni || clear_i) valid_q <= 1'b0;
  end

  if (Planes) begin : g_planes
    always_ff @(posedge clk_i) begin
      if (start_i || (valid_q && next_i && plane_ends_q)) begin
        next_plane_q <= plane_stride_i + (valid_q ? next_row_q : address_i);
        planes_left_q <= valid_q ? planes_left_q - 1'b1 : planes_i;
        last_plane_q <= valid_q ? planes_left_q == 16'd2 : planes_i == 16'd1;
      end
    end
  end else begin : g_one_plane
    logic [AddrBits+16:0] unused_planes;
    assign {next_plane_q, planes_left_q, last_plane_q} = '0;
    assign unused_planes = {planes_i, plane_stride_i, plane_ends_q};
  end

  if (MaxBurstBeats < 2 || MaxBurstBeats > 256 || MaxBurstBeats != 1 << ChunkBits
      || MaxBurstBeats * BusBytes > 4096) begin : g_check
    $error(
        "vta_burst_splitter: MaxBurstBeats must be a power of two of at most 256 beats and 4 KiB"
    );
  end

`ifndef SYNTHESIS
  // verilog_format: off
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni)
      start_i -> !valid_q && (Rows ? rows_i != '0 : rows_i == 16'd1) && (!Planes || (planes_i != '0
      && (rows_i != 16'd1 || stride_i == plane_stride_i))) && address_i[LogBusBytes-1:0] == '0)
  else $error("vta_burst_splitter: an empty or unaligned block, or before the last one's end");
  assert_page : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_q -> 13'(address_q[11:0]) + ((13'(last_beat_o) + 13'd1) << LogBusBytes) <= 13'd4096)
  else $error("a burst crosses a 4 KiB boundary");
  assert_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && valid_o && !next_i && !start_i && !clear_i)
      -> valid_o && $stable(address_o) && $stable(last_beat_o))
  else $error("a burst changed before it was taken");
  assert_aligned : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_q -> address_q[LogBusBytes-1:0] == '0 && next_row_q[LogBusBytes-1:0] == '0)
  else $error("a burst is not aligned to the bus");
  assert_flags : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_q -> row_ends_q == (rest_q == '0) && last_row_q == (rows_left_q == 16'd1)
      && two_rows_q == (rows_left_q == 16'd2)
      && plane_ends_q == (row_ends_q && last_row_q) && single_q == (last_beat_q == '0)
      && (!Planes || last_plane_q == (planes_left_q == 16'd1)))
  else $error("vta_burst_splitter: a flag differs from its count");
  assert_end : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_q -> (ChunkBits + 1)'(address_q[LogBusBytes+:ChunkBits]) + (ChunkBits + 1)'(last_beat_q)
      == {1'b0, row_ends_q ? tail_q : {ChunkBits{1'b1}}})
  else $error("a burst ends neither at a multiple of its longest length nor at its row's end");
  cover_rows : cover property (@(posedge clk_i) rst_ni && valid_o && next_i && row_ends_q
      && !last_row_q);
  cover_cut : cover property (@(posedge clk_i) rst_ni && valid_o && next_i && !row_ends_q);
  // verilog_format: on
`endif

endmodule
