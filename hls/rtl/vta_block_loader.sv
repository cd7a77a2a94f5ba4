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
// A row may begin any distance behind the row before it; pads are of blocks without gaps. No element
// is written while hold_i is high.
//
// The block's description must hold still from prepare_i, the base and the distance from start_i,
// until done_o.

module vta_block_loader
  import vta_pkg::*;
#(
  // The largest element that is loaded; smaller ones lie at its low end.
  parameter int unsigned ElementBits  = 64,
  // Its beats: up to 64 x 64 bytes in beats of 8.
  parameter int unsigned LogBeatsBits = 4,
  `include "vta_parameters.svh"
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     prepare_i,    // in a cycle before start_i
  input  logic                     start_i,
  input  logic                     hold_i,
  input  logic [             15:0] sram_base_i,
  input  logic [SramIndexBits-1:0] next_row_i,   // from a row's last element to the next one's first
  input  logic [             15:0] y_size_i,
  input  logic [             15:0] x_size_i,
  input  logic [              3:0] y_pad_0_i,
  input  logic [              3:0] y_pad_1_i,
  input  logic [              3:0] x_pad_0_i,
  input  logic [              3:0] x_pad_1_i,
  input  logic [ LogBeatsBits-1:0] log_beats_i,  // of one element
  input  logic [SramIndexBits-1:0] last_i,       // element of the buffer, which has a power of two
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
  // pads_q and takes_q: a pad and an element come next; pad_q itself drives the zeros.
  logic active_q, pad_q, past_q, last_column_q, last_row_q, pads_q, takes_q;
  logic [SizeBits-1:0] row_q, column_q;
  logic [SramIndexBits-1:0] index_q;
  logic row_pad_q;  // the whole row is a pad
  // Of the block: where its data ends; its size; the column and the row before the first with data,
  // the last with data, the last.
  logic [SizeBits-1:0] data_right_q, data_bottom_q, width_q, height_q;
  logic [3:0] left_q, top_q;
  logic [SizeBits-1:0] right_q, bottom_q, before_last_column_q, before_last_row_q;
  logic first_column_pad_q, first_row_pad_q, one_column_q, begins_past_q, any_q;
  logic prepare_1_q;  // that is worked out in two steps, whether the block begins or not

  logic step, last;
  assign last = last_column_q && last_row_q;
  assign step = !past_q && (pads_q || (takes_q && full_q && !hold_i));

  logic first_pad, next_row_pad;
  assign first_pad = first_row_pad_q || first_column_pad_q;
  assign next_row_pad = row_q < SizeBits'(top_q) || row_q >= bottom_q;
  logic empty_q;

  always_ff @(posedge clk_i) begin
    prepare_1_q <= prepare_i && rst_ni;
    empty_q <= start_i && !any_q;
    if (prepare_i) begin
      data_right_q <= SizeBits'(x_pad_0_i) + SizeBits'(x_size_i);
      data_bottom_q <= SizeBits'(y_pad_0_i) + SizeBits'(y_size_i);
      width_q <= SizeBits'(x_pad_0_i) + SizeBits'(x_size_i) + SizeBits'(x_pad_1_i);
      height_q <= SizeBits'(y_pad_0_i) + SizeBits'(y_size_i) + SizeBits'(y_pad_1_i);
      first_column_pad_q <= x_pad_0_i != '0 || x_size_i == '0;
      first_row_pad_q <= y_pad_0_i != '0 || y_size_i == '0;
      begins_past_q <= (SramIndexBits'(sram_base_i) & ~last_i) != '0;
      any_q <= {x_size_i, x_pad_0_i, x_pad_1_i} != '0 && {y_size_i, y_pad_0_i, y_pad_1_i} != '0;
    end
    if (step) begin
      automatic logic pad;  // at the next position
      if (last_column_q) pad = next_row_pad || first_column_pad_q;
      else pad = row_pad_q || column_q < SizeBits'(left_q) || column_q >= right_q;
      active_q <= !last;
      pad_q <= pad;
      pads_q <= !last && pad;
      takes_q <= !last && !pad;
      past_q <= !last && index_q == last_i;
      index_q <= index_q + (last_column_q ? next_row_i : SramIndexBits'(1));
      if (last_column_q) begin
        row_q <= row_q + 1'b1;
        row_pad_q <= next_row_pad;
        last_row_q <= row_q == before_last_row_q;
        column_q <= '0;
        last_column_q <= one_column_q;
      end else begin
        column_q <= column_q + 1'b1;
        last_column_q <= column_q == before_last_column_q;
      end
    end
    if (prepare_1_q) begin
      left_q <= x_pad_0_i == '0 ? '0 : x_pad_0_i - 1'b1;
      top_q <= y_pad_0_i == '0 ? '0 : y_pad_0_i - 1'b1;
      right_q <= data_right_q == '0 ? '0 : data_right_q - 1'b1;
      bottom_q <= data_bottom_q == '0 ? '0 : data_bottom_q - 1'b1;
      before_last_column_q <= width_q - SizeBits'(2);
      before_last_row_q <= height_q - SizeBits'(2);
      one_column_q <= width_q == SizeBits'(1);
      last_column_q <= width_q == SizeBits'(1);
      last_row_q <= height_q == SizeBits'(1);
      row_pad_q <= first_row_pad_q;
      row_q <= '0;
      column_q <= '0;
    end
    if (start_i) begin
      active_q <= any_q;
      pad_q <= first_pad;
      pads_q <= any_q && first_pad;
      takes_q <= any_q && !first_pad;
      past_q <= any_q && begins_past_q;
      index_q <= SramIndexBits'(sram_base_i);
    end
    if (!rst_ni) {active_q, past_q, pads_q, takes_q, empty_q} <= '0;
  end

  assign write_o = step;
  assign index_o = index_q;
  assign zero_o = pad_q;
  assign done_o = (step && last) || empty_q;
  assign fault_o = past_q;
  assign waiting_o = takes_q && !full_q && !beat_valid_i && !hold_i;

  // ---- Collecting an element --------------------------------------------------------------------
  logic [BeatBits-1:0] beat_q;
  logic [MaxBeats-1:0] place_q;  // of the next beat: the bit of its number
  logic [ElementBits-1:0] element_q;

  logic take, one_beat, element_ends_q;  // element_ends_q: the next beat is its last
  assign beat_ready_o = !full_q || (takes_q && !hold_i);
  assign take = beat_valid_i && beat_ready_o;
  assign one_beat = log_beats_i == '0;

  always_ff @(posedge clk_i) begin
    if (take) begin
      for (int n = 0; n < MaxBeats; n++)
      if (place_q[n]) element_q[n*BusBits+:BusBits] <= beat_data_i;
      full_q <= element_ends_q;
      beat_q <= element_ends_q ? '0 : beat_q + 1'b1;
      place_q <= element_ends_q ? MaxBeats'(1) : place_q << 1;
      element_ends_q <= element_ends_q ? one_beat
          : (BeatBits + 1)'(beat_q) + (BeatBits + 1)'(2) == (BeatBits + 1)'(1) << log_beats_i;
    end else if (step && takes_q) begin
      full_q <= 1'b0;
    end
    if (!rst_ni || prepare_1_q) begin
      full_q <= 1'b0;
      beat_q <= '0;
      place_q <= MaxBeats'(1);
      element_ends_q <= one_beat;
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
      write_o -> index_o <= last_i)
  else $error("a LOAD wrote past its buffer");
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni) start_i -> !active_q)
  else $error("a LOAD began before the last one ended");
  assert_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && full_q && !step && !prepare_1_q) -> full_q && $stable(element_o))
  else $error("an element changed before it was written");
  assert_end : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && done_o && !start_i) -> !active_q && !empty_q)
  else $error("a LOAD went on after its end");
  assert_flags : assert property (@(posedge clk_i) disable iff (!rst_ni)
      (!past_q || active_q) && pads_q == (active_q && pad_q) && takes_q == (active_q && !pad_q)
      && (!active_q || element_ends_q
          == ((BeatBits + 1)'(beat_q) + 1'b1 == (BeatBits + 1)'(1) << log_beats_i)))
  else $error("vta_block_loader: a flag differs from what it says");
  assert_pad : assert property (@(posedge clk_i) disable iff (!rst_ni)
      active_q -> pad_q == (row_q < SizeBits'(y_pad_0_i) || row_q >= data_bottom_q
      || column_q < SizeBits'(x_pad_0_i) || column_q >= data_right_q))
  else $error("vta_block_loader lost its place among the pads");
  cover_pad : cover property (@(posedge clk_i) rst_ni && write_o && zero_o);
  cover_collects : cover property (@(posedge clk_i) rst_ni && write_o && zero_o && take);
  // verilog_format: on
`endif

endmodule
