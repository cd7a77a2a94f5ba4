// SPDX-License-Identifier: Apache-2.0
//
// Which accumulators of a folded reset no micro-op has come to yet: [first_i, first_i + count_i)
// from begin_i on.
//
// Two cycles after a micro-op at issue_i, first_o says whether it is the first at its accumulator.
// Micro-ops of one accumulator must be three cycles apart. covered_o, a cycle after first_o, says
// that all have been come to. In the cycles after the one behind end_i the marks are wiped, which
// takes as many cycles as there are words.

module vta_first_use
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   begin_i,
  input  logic [LogAccDepth-1:0] first_i,
  input  logic [  LogAccDepth:0] count_i,
  input  logic                   active_i,  // from the cycle after begin_i to end_i
  input  logic                   end_i,
  input  banks_t                 issue_i,
  input  rows_t                  row_i,
  output banks_t                 first_o,
  output logic                   covered_o
);

  // A mark for each accumulator, in words that are wiped one a cycle: all before the next reset can
  // be folded.
  localparam int unsigned LogWords = LogAccRows > 4 ? 4 : 1;
  localparam int unsigned Words = 1 << LogWords;
  localparam int unsigned LogColumns = LogAccRows > LogWords ? LogAccRows - LogWords : 1;
  localparam int unsigned Columns = 1 << LogColumns;
  typedef logic [LogWords-1:0] word_t;
  typedef logic [LogColumns-1:0] column_t;

  logic [LogAccDepth-1:0] begin_q;
  logic [LogAccDepth:0] count_q, left_q, left_d;
  logic wiping_q, covered_q, end_q;
  word_t wiped_q;

  banks_t valid_1_q, first_2_q;
  rows_t row_1_q, row_2_q;

  for (genvar bank = 0; bank < AccBanks; bank++) begin : g_bank
    logic [Columns-1:0] used[Words];
    logic [Columns-1:0] word_1_q;
    logic [LogAccDepth-1:0] offset_1_q;
    word_t place;
    assign place = wiping_q ? wiped_q : word_t'(row_2_q[bank] >> LogColumns);

    always_ff @(posedge clk_i) begin
      if (wiping_q || first_2_q[bank]) begin
        used[place] <= wiping_q ? '0 : used[place] | (Columns'(1) << column_t'(row_2_q[bank]));
      end
      if (valid_1_q[bank]) begin
        first_2_q[bank] <= {1'b0, offset_1_q} < count_q && !word_1_q[column_t'(row_1_q[bank])];
        row_2_q[bank] <= row_1_q[bank];
      end else begin
        first_2_q[bank] <= 1'b0;
      end
      if (issue_i[bank] && active_i) begin
        word_1_q <= used[word_t'(row_i[bank] >> LogColumns)];
        offset_1_q <= {row_i[bank], 1'(bank)} - begin_q;
        row_1_q[bank] <= row_i[bank];
      end
      valid_1_q[bank] <= issue_i[bank] && active_i && rst_ni;
    end
  end

  always_comb begin
    left_d = left_q;
    if (begin_i) left_d = count_i;
    else if (first_2_q != '0)
      left_d = left_q - (first_2_q == '1 ? (LogAccDepth + 1)'(2) : (LogAccDepth + 1)'(1));
  end

  always_ff @(posedge clk_i) begin
    if (begin_i) begin
      begin_q <= first_i;
      count_q <= count_i;
    end
    left_q <= left_d;
    covered_q <= left_d == '0;
    if (wiping_q) begin
      wiped_q <= wiped_q + 1'b1;
      wiping_q <= wiped_q != '1;
    end
    end_q <= end_i;
    if (!rst_ni || end_q) begin
      wiping_q <= 1'b1;
      wiped_q <= '0;
    end
  end

  assign first_o = first_2_q;
  assign covered_o = covered_q;

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_wiped : assert property (@(posedge clk_i) disable iff (!rst_ni)
      issue_i != '0 && active_i -> !wiping_q)
  else $error("a reset was folded before the marks of the last one were wiped");
  assert_left : assert property (@(posedge clk_i) disable iff (!rst_ni)
      active_i && first_2_q != '0 -> left_q != '0
          && (first_2_q != '1 || left_q != (LogAccDepth + 1)'(1)))
  else $error("more accumulators were cleared than the reset has");
  cover_both : cover property (@(posedge clk_i) rst_ni && first_2_q == '1);
  cover_again : cover property (@(posedge clk_i) rst_ni && $past(valid_1_q != '0)
      && first_2_q == '0);
  // verilog_format: on
`endif

endmodule
