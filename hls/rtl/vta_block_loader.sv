// SPDX-License-Identifier: Apache-2.0
//
// Writes the beats of a two-dimensional LOAD to consecutive elements of a buffer, with zero
// elements for its pads.
//
// Beats are collected in a register of one element while pads are written, so that a pad costs no
// bus time where elements take several beats. One element or pad is written a cycle, in order, and
// done_o marks the last write (or, for an empty block, the cycle after start_i). The first element
// past the buffer raises fault_o and nothing follows.
//
// The block's description must hold still from prepare_i until done_o.

module vta_block_loader
  import vta_pkg::*;
#(
  // The largest element that is loaded; smaller ones lie at its low end.
  parameter int unsigned ElementBits  = 64,
  // Its beats: up to 64 x 64 bytes in beats of 8.
  parameter int unsigned LogBeatsBits = 4
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     prepare_i,    // in a cycle before start_i
  input  logic                     start_i,
  input  logic [             15:0] sram_base_i,
  input  logic [             15:0] y_size_i,
  input  logic [             15:0] x_size_i,
  input  logic [              3:0] y_pad_0_i,
  input  logic [              3:0] y_pad_1_i,
  input  logic [              3:0] x_pad_0_i,
  input  logic [              3:0] x_pad_1_i,
  input  logic [ LogBeatsBits-1:0] log_beats_i,  // of one element
  input  logic [SramIndexBits-1:0] depth_i,      // elements of the buffer, at least one
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

  // ---- Position ---------------------------------------------------------------------------------
  // Decisions about the position are registers of their own, worked out a step before: a step is
  // decided by them alone. A position is compared with the one before a limit, while it is counted
  // on.
  logic active_q, pad_q, past_q, last_column_q, last_row_q;
  logic [SizeBits-1:0] row_q, column_q;
  logic [SramIndexBits-1:0] index_q;
  logic row_pad_q;  // the whole row is a pad
  // Of the block: where its data ends; its size; the column and the row before the first with data,
  // the last with data, the last.
  logic [SizeBits-1:0] data_right_q, data_bottom_q, width_q, height_q;
  logic [3:0] left_q, top_q;
  logic [SizeBits-1:0] right_q, bottom_q, before_last_column_q, before_last_row_q;
  logic first_column_pad_q, one_column_q;

  logic step, last;
  assign last = last_column_q && last_row_q;
  assign step = active_q && !past_q && (pad_q || full_q);

  logic empty_q;

  always_ff @(posedge clk_i) begin
    empty_q <= 1'b0;
    if (prepare_i) begin
      data_right_q <= SizeBits'(x_pad_0_i) + SizeBits'(x_size_i);
      data_bottom_q <= SizeBits'(y_pad_0_i) + SizeBits'(y_size_i);
      width_q <= SizeBits'(x_pad_0_i) + SizeBits'(x_size_i) + SizeBits'(x_pad_1_i);
      height_q <= SizeBits'(y_pad_0_i) + SizeBits'(y_size_i) + SizeBits'(y_pad_1_i);
    end
    if (step) begin
      automatic logic row_pad = row_pad_q;
      active_q <= !last;
      index_q <= index_q + 1'b1;
      past_q <= index_q == depth_i - 1'b1;
      if (last_column_q) begin
        row_pad = row_q < SizeBits'(top_q) || row_q >= bottom_q;
        row_q <= row_q + 1'b1;
        row_pad_q <= row_pad;
        last_row_q <= row_q == before_last_row_q;
        column_q <= '0;
        last_column_q <= one_column_q;
        pad_q <= row_pad || first_column_pad_q;
      end else begin
        column_q <= column_q + 1'b1;
        last_column_q <= column_q == before_last_column_q;
        pad_q <= row_pad || column_q < SizeBits'(left_q) || column_q >= right_q;
      end
    end
    if (start_i) begin
      left_q <= x_pad_0_i == '0 ? '0 : x_pad_0_i - 1'b1;
      top_q <= y_pad_0_i == '0 ? '0 : y_pad_0_i - 1'b1;
      right_q <= data_right_q == '0 ? '0 : data_right_q - 1'b1;
      bottom_q <= data_bottom_q == '0 ? '0 : data_bottom_q - 1'b1;
      before_last_column_q <= width_q - SizeBits'(2);
      before_last_row_q <= height_q - SizeBits'(2);
      one_column_q <= width_q == SizeBits'(1);
      last_column_q <= width_q == SizeBits'(1);
      last_row_q <= height_q == SizeBits'(1);
      first_column_pad_q <= x_pad_0_i != '0 || x_size_i == '0;
      row_pad_q <= y_pad_0_i != '0 || y_size_i == '0;
      pad_q <= y_pad_0_i != '0 || y_size_i == '0 || x_pad_0_i != '0 || x_size_i == '0;
      past_q <= SramIndexBits'(sram_base_i) >= depth_i;
      active_q <= width_q != '0 && height_q != '0;
      empty_q <= width_q == '0 || height_q == '0;
      row_q <= '0;
      column_q <= '0;
      index_q <= SramIndexBits'(sram_base_i);
    end
    if (!rst_ni) {active_q, empty_q} <= '0;
  end

  assign write_o = step;
  assign index_o = index_q;
  assign zero_o = pad_q;
  assign done_o = (step && last) || empty_q;
  assign fault_o = active_q && past_q;
  assign waiting_o = active_q && !pad_q && !full_q && !beat_valid_i;

  // ---- Collecting an element --------------------------------------------------------------------
  logic [BeatBits-1:0] beat_q;
  logic [MaxBeats-1:0] place_q;  // of the next beat: the bit of its number
  logic [ElementBits-1:0] element_q;

  logic take, element_ends;
  assign beat_ready_o = !full_q || (active_q && !pad_q);
  assign take = beat_valid_i && beat_ready_o;
  assign element_ends = (BeatBits + 1)'(beat_q) + 1'b1 == (BeatBits + 1)'(1) << log_beats_i;

  always_ff @(posedge clk_i) begin
    if (take) begin
      for (int n = 0; n < MaxBeats; n++)
      if (place_q[n]) element_q[n*BusBits+:BusBits] <= beat_data_i;
      full_q <= element_ends;
      beat_q <= element_ends ? '0 : beat_q + 1'b1;
      place_q <= element_ends ? MaxBeats'(1) : place_q << 1;
    end else if (step && !pad_q) begin
      full_q <= 1'b0;
    end
    if (!rst_ni || start_i) begin
      full_q <= 1'b0;
      beat_q <= '0;
      place_q <= MaxBeats'(1);
    end
  end

  assign element_o = element_q;

  if ($clog2(MaxBeats) >= 1 << LogBeatsBits) begin : g_check_beats
    $error("vta_block_loader: LogBeatsBits cannot hold an element's beats");
  end
  if (ElementBits % BusBits != 0) begin : g_check
    $error(
        "vta_block_loader: an element must be whole beats; the bus is too wide for these parameters"
    );
  end

`ifndef SYNTHESIS
  // verilog_format: off
  assert_bounds : assert property (@(posedge clk_i) disable iff (!rst_ni)
      write_o -> index_o < depth_i)
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
  // verilog_format: on
`endif

endmodule
