// SPDX-License-Identifier: Apache-2.0
//
// Writes the beats of a two-dimensional LOAD to consecutive elements of a buffer, with zero elements for its pads.
//
// Beats are collected in a register of one element while pads are written, so that a pad costs no bus time where
// elements take several beats. One element or pad is written a cycle, in order, and done_o marks the last write (or,
// for an empty block, the cycle after start_i). The first element past the buffer raises fault_o and nothing follows.
//
// The block's description must hold still from start_i until done_o.

module vta_block_loader
  import vta_pkg::*;
#(
  // The largest element that is loaded; smaller ones lie at its low end.
  parameter int unsigned ElementBits = 64,
  // Its beats: up to 64 x 64 bytes in beats of 8.
  parameter int unsigned LogBeatsBits = 4
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     start_i,
  input  logic [             15:0] sram_base_i,
  input  logic [             15:0] y_size_i,
  input  logic [             15:0] x_size_i,
  input  logic [              3:0] y_pad_0_i,
  input  logic [              3:0] y_pad_1_i,
  input  logic [              3:0] x_pad_0_i,
  input  logic [              3:0] x_pad_1_i,
  input  logic [ LogBeatsBits-1:0] log_beats_i,  // of one element
  input  logic [SramIndexBits-1:0] depth_i,      // elements of the buffer
  output logic                     done_o,
  output logic                     waiting_o,    // for a beat, and for nothing else
  output logic                     fault_o,
  // Beats.
  input  logic                     beat_valid_i,
  output logic                     beat_ready_o,
  input  logic [      BusBits-1:0] beat_data_i,
  // Buffer.
  output logic                     write_o,
  output logic [SramIndexBits-1:0] index_o,
  output logic                     zero_o,       // write zeros instead of element_o
  output logic [  ElementBits-1:0] element_o
);

  localparam int unsigned MaxBeats = ElementBits / BusBits;
  localparam int unsigned BeatBits = MaxBeats > 1 ? $clog2(MaxBeats) : 1;
  // A row or column: 16 bits of size and two pads of 15.
  localparam int unsigned SizeBits = 17;

  logic full_q;  // element_q has a whole element

  // ---- Position ----------------------------------------------------------------------------
  // Decisions about the position are registers of their own, worked out a step before: a step is decided by them alone.
  logic active_q, pad_q, past_q, last_column_q, last_row_q;
  logic [SizeBits-1:0] row_q, column_q;
  // Where the data ends and the pads after it begin, and the last row and column.
  logic [SizeBits-1:0] data_right_q, data_bottom_q, end_column_q, end_row_q;
  logic [SramIndexBits-1:0] index_q;
  logic row_pad_q;  // the whole row is a pad

  logic pad, past, step, last;
  assign pad = active_q && pad_q;
  assign past = active_q && past_q;
  assign last = last_column_q && last_row_q;
  assign step = active_q && !past_q && (pad_q || full_q);

  // Of the row after this one and of the column after this one, or of the first.
  logic [SizeBits-1:0] next_row, next_column;
  logic next_row_pad;
  always_comb begin
    next_row = row_q;
    next_column = column_q;
    next_row_pad = row_pad_q;
    if (step) begin
      next_row = row_q + 1'b1;
      next_column = last_column_q ? '0 : column_q + 1'b1;
      next_row_pad = next_row < SizeBits'(y_pad_0_i) || next_row >= data_bottom_q;
    end
  end

  logic empty_q;

  always_ff @(posedge clk_i) begin
    empty_q <= 1'b0;
    if (step) begin
      active_q <= !last;
      index_q <= index_q + 1'b1;
      past_q <= index_q + 1'b1 >= depth_i;
      column_q <= next_column;
      last_column_q <= next_column == end_column_q;
      pad_q <= (last_column_q ? next_row_pad : row_pad_q) || next_column < SizeBits'(x_pad_0_i)
          || next_column >= data_right_q;
      if (last_column_q) begin
        row_q <= next_row;
        row_pad_q <= next_row_pad;
        last_row_q <= next_row == end_row_q;
      end
    end
    if (start_i) begin
      automatic logic empty = (x_pad_0_i == '0 && x_size_i == '0 && x_pad_1_i == '0)
          || (y_pad_0_i == '0 && y_size_i == '0 && y_pad_1_i == '0);
      automatic logic [SizeBits-1:0] data_right = SizeBits'(x_pad_0_i) + SizeBits'(x_size_i);
      automatic logic [SizeBits-1:0] data_bottom = SizeBits'(y_pad_0_i) + SizeBits'(y_size_i);
      automatic logic row_pad = y_pad_0_i != '0 || y_size_i == '0;
      data_right_q <= data_right;
      data_bottom_q <= data_bottom;
      end_column_q <= data_right + SizeBits'(x_pad_1_i) - 1'b1;
      end_row_q <= data_bottom + SizeBits'(y_pad_1_i) - 1'b1;
      last_column_q <= data_right + SizeBits'(x_pad_1_i) == SizeBits'(1);
      last_row_q <= data_bottom + SizeBits'(y_pad_1_i) == SizeBits'(1);
      row_pad_q <= row_pad;
      pad_q <= row_pad || x_pad_0_i != '0 || x_size_i == '0;
      past_q <= SramIndexBits'(sram_base_i) >= depth_i;
      active_q <= !empty;
      empty_q <= empty;
      row_q <= '0;
      column_q <= '0;
      index_q <= SramIndexBits'(sram_base_i);
    end
    if (!rst_ni) {active_q, empty_q} <= '0;
  end

  assign write_o = step && rst_ni;
  assign index_o = index_q;
  assign zero_o = pad;
  assign done_o = (step && last) || empty_q;
  assign fault_o = past;
  assign waiting_o = active_q && !pad && !full_q && !beat_valid_i;

  // ---- Collecting an element -----------------------------------------------------------------------------------------------
  logic [BeatBits-1:0] beat_q;
  logic [ElementBits-1:0] element_q;

  logic take, element_ends;
  assign beat_ready_o = !full_q || (active_q && !pad);
  assign take = beat_valid_i && beat_ready_o;
  assign element_ends = (BeatBits + 1)'(beat_q) + 1'b1 == (BeatBits + 1)'(1) << log_beats_i;

  always_ff @(posedge clk_i) begin
    if (take) begin
      element_q[32'(beat_q)*BusBits+:BusBits] <= beat_data_i;
      full_q <= element_ends;
      beat_q <= element_ends ? '0 : beat_q + 1'b1;
    end else if (step && !pad) begin
      full_q <= 1'b0;
    end
    if (!rst_ni || start_i) begin
      full_q <= 1'b0;
      beat_q <= '0;
    end
  end

  assign element_o = element_q;

  if ($clog2(MaxBeats) >= 1 << LogBeatsBits) begin : g_check_beats
    $error("vta_block_loader: LogBeatsBits cannot hold an element's beats");
  end
  if (ElementBits % BusBits != 0) begin : g_check
    $error("vta_block_loader: an element must be whole beats; the bus is too wide for these parameters");
  end

`ifndef SYNTHESIS
  assert_bounds : assert property (@(posedge clk_i) disable iff (!rst_ni) write_o -> index_o < depth_i)
  else $error("a LOAD wrote past its buffer");
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni) start_i -> !active_q)
  else $error("a LOAD began before the last one ended");
  assert_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && full_q && !step && !start_i) -> full_q && $stable(element_o))
  else $error("an element changed before it was written");
  assert_end : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && done_o && !start_i) -> !active_q && !empty_q)
  else $error("a LOAD went on after its end");
  assert_pad : assert property (@(posedge clk_i) disable iff (!rst_ni)
      active_q -> pad_q == (row_q < SizeBits'(y_pad_0_i) || row_q >= data_bottom_q
      || column_q < SizeBits'(x_pad_0_i) || column_q >= data_right_q))
  else $error("vta_block_loader lost its place among the pads");
  cover_pad : cover property (@(posedge clk_i) rst_ni && write_o && zero_o);
  cover_collects : cover property (@(posedge clk_i) rst_ni && write_o && zero_o && take);
`endif

endmodule
