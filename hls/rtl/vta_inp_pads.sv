// SPDX-License-Identifier: Apache-2.0
//
// The places of a LOAD of INP whose rows several masters share: where each master's first row lies
// in the buffer, and the pads, which are written before the data, one a cycle.
//
// Nothing is written if the block ends past the buffer. The LOAD's description must hold still from
// launch_i, its first busy cycle, until its end. The places are there in the cycle of placed_o,
// three cycles later.

module vta_inp_pads
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                                     clk_i,
  input  logic                                     rst_ni,
  input  logic                                     launch_i,
  input  transfer_t                                transfer_i,
  output logic                                     placed_o,
  output logic [   InpPorts-1:0][LogInpDepth-1:0] first_o,     // element of each master's rows
  output logic [SramIndexBits-1:0]                 next_row_o,  // from a row's last to its next one
  output logic                                     past_o,      // the block ends past the buffer
  output logic                                     hold_o,      // until all pads are written
  output logic                                     done_o,      // the last cycle of hold_o
  output logic                                     write_o,
  output logic [  LogInpDepth-1:0]                 index_o
);

  localparam int unsigned SizeBits = 17;
  typedef logic [LogInpDepth-1:0] place_t;
  typedef logic [LogInpDepth:0] count_t;  // of elements of a block that fits

  function automatic count_t times(input logic [3:0] count, input count_t size);
    return ((count[0] ? size : '0) + (count[1] ? size << 1 : '0))
        + ((count[2] ? size << 2 : '0) + (count[3] ? size << 3 : '0));
  endfunction

  logic unused_transfer;
  assign unused_transfer = ^{transfer_i.dram_base, transfer_i.x_stride};

  // ---- Places, in registers with the cycles since launch_i in their names -------------------------
  logic launch_1_q, launch_2_q, launch_3_q;
  logic [SizeBits-1:0] width_1_q, height_1_q;
  logic data_1_q;  // the block has data
  logic [4:0] sides_1_q;
  count_t room_1_q;  // elements from the block's first to the buffer's end
  logic too_large_2_q, past_3_q;
  logic [2*LogInpDepth+1:0] elements_2_q;
  count_t above_2_q, below_2_q;
  logic [InpPorts-1:0][LogInpDepth-1:0] first_2_q, first_3_q;
  logic [SramIndexBits-1:0] next_row_2_q;
  // Pads are written in runs: before the first row of data, between rows, after the last one.
  logic first_run_3_q;
  count_t first_pads_3_q, last_pads_3_q;
  place_t base_1_q, last_begin_3_q;  // base_1_q: without the last row's pads

  always_ff @(posedge clk_i) begin
    launch_1_q <= launch_i && rst_ni;
    launch_2_q <= launch_1_q && rst_ni;
    launch_3_q <= launch_2_q && rst_ni;

    width_1_q <= SizeBits'(transfer_i.x_pad_0) + SizeBits'(transfer_i.x_size)
        + SizeBits'(transfer_i.x_pad_1);
    height_1_q <= SizeBits'(transfer_i.y_pad_0) + SizeBits'(transfer_i.y_size)
        + SizeBits'(transfer_i.y_pad_1);
    room_1_q <= transfer_i.sram_base >> LogInpDepth != '0 ? '0
        : count_t'(InpDepth) - count_t'(transfer_i.sram_base);
    base_1_q <= place_t'(transfer_i.sram_base) - place_t'(transfer_i.x_pad_1);
    data_1_q <= transfer_i.x_size != '0 && transfer_i.y_size != '0;
    sides_1_q <= 5'(transfer_i.x_pad_0) + 5'(transfer_i.x_pad_1);

    too_large_2_q <= width_1_q != '0 && height_1_q != '0
        && (width_1_q > SizeBits'(InpDepth) || height_1_q > SizeBits'(InpDepth));
    elements_2_q <= width_1_q[LogInpDepth:0] * height_1_q[LogInpDepth:0];
    above_2_q <= times(transfer_i.y_pad_0, count_t'(width_1_q));
    below_2_q <= times(transfer_i.y_pad_1, count_t'(width_1_q));
    for (int p = 0; p < InpPorts; p++)
    first_2_q[p] <= place_t'(transfer_i.sram_base) + place_t'(transfer_i.x_pad_0)
        + place_t'(p * width_1_q);
    next_row_2_q <= (SramIndexBits'(width_1_q) << LogInpPorts)
        - SramIndexBits'(transfer_i.x_size) + 1'b1;

    past_3_q <= too_large_2_q || elements_2_q > (2 * LogInpDepth + 2)'(room_1_q);
    for (int p = 0; p < InpPorts; p++) first_3_q[p] <= first_2_q[p] + place_t'(above_2_q);
    first_run_3_q <= data_1_q ? transfer_i.y_pad_0 != '0 || transfer_i.x_pad_0 != '0
        : elements_2_q != '0;
    first_pads_3_q <= data_1_q ? above_2_q + count_t'(transfer_i.x_pad_0) : count_t'(elements_2_q);
    last_pads_3_q <= below_2_q + count_t'(transfer_i.x_pad_1);
    last_begin_3_q <= base_1_q + place_t'(elements_2_q) - place_t'(below_2_q);
  end

  assign placed_o = launch_3_q;
  assign first_o = first_3_q;
  assign next_row_o = next_row_2_q;
  assign past_o = launch_3_q && past_3_q;

  // ---- Pads ---------------------------------------------------------------------------------------
  logic active_q, hold_q;
  place_t index_q;
  count_t left_q;       // pads of this run, this one included
  logic ends_q;         // there is one
  logic [15:0] rows_q;  // runs between rows that are still to come
  logic rows_any_q;     // there are such
  logic last_q;         // the last run is still to come

  // first_begins: with the first run; next: to the next run, or to the end.
  logic first_begins, next;
  assign first_begins = launch_3_q && !past_3_q && first_run_3_q;
  assign next = (active_q && ends_q) || (launch_3_q && !past_3_q && !first_run_3_q);
  assign done_o = next && !rows_any_q && !last_q;
  assign write_o = active_q;
  assign index_o = index_q;

  always_ff @(posedge clk_i) begin
    if (launch_2_q) begin
      index_q <= place_t'(transfer_i.sram_base) - 1'b1;
      rows_q <= data_1_q && sides_1_q != '0 ? transfer_i.y_size - 1'b1 : '0;
      rows_any_q <= data_1_q && sides_1_q != '0 && transfer_i.y_size != 16'd1;
      last_q <= data_1_q && (transfer_i.y_pad_1 != '0 || transfer_i.x_pad_1 != '0);
    end else if (hold_q) begin
      index_q <= next && !rows_any_q ? last_begin_3_q
          : index_q + (next ? place_t'(transfer_i.x_size) : '0) + 1'b1;
    end
    if (first_begins) begin
      active_q <= 1'b1;
      left_q <= first_pads_3_q;
      ends_q <= first_pads_3_q == count_t'(1);
    end else if (next) begin
      active_q <= rows_any_q || last_q;
      if (rows_any_q) begin
        rows_q <= rows_q - 1'b1;
        rows_any_q <= rows_q != 16'd1;
        left_q <= count_t'(sides_1_q);
        ends_q <= sides_1_q == 5'd1;
      end else begin
        last_q <= 1'b0;
        left_q <= last_pads_3_q;
        ends_q <= last_pads_3_q == count_t'(1);
      end
    end else if (active_q) begin
      left_q <= left_q - 1'b1;
      ends_q <= left_q == count_t'(2);
    end
    if (launch_i) hold_q <= 1'b1;
    else if (done_o) hold_q <= 1'b0;
    if (!rst_ni) {active_q, hold_q} <= '0;
  end
  assign hold_o = hold_q;

  if (LogInpDepth > 16) begin : g_check
    $error("vta_inp_pads: the input buffer is deeper than a LOAD's first element says");
  end

`ifndef SYNTHESIS
  // verilog_format: off
  assert_held : assert property (@(posedge clk_i) disable iff (!rst_ni) active_q -> hold_q)
  else $error("a pad is written beside data");
  assert_ends : assert property (@(posedge clk_i) disable iff (!rst_ni)
      hold_q && !launch_1_q && !launch_2_q -> rows_any_q == (rows_q != '0)
      && (!active_q || ends_q == (left_q == count_t'(1))))
  else $error("vta_inp_pads: a flag differs from what it says");
  cover_no_pads : cover property (@(posedge clk_i) rst_ni && launch_3_q && done_o);
  cover_between : cover property (@(posedge clk_i) rst_ni && active_q && ends_q && rows_q != '0);
  cover_past : cover property (@(posedge clk_i) rst_ni && past_o);
  // verilog_format: on
`endif

endmodule
