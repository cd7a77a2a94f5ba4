// SPDX-License-Identifier: Apache-2.0
//
// The inputs that a window GEMM read in the last columns of the last rows of its iterations: tap
// r * WindowColumns + t is the input of r rows and t columns before. Before the first row and
// before the first column of each row there are zeros. A row is an outer iteration, its columns are
// the inner ones, each of one micro-op.
//
//   the last columns of a row: registers; the rows before: a line of LUT RAM each
//
// issue_i marks the cycle in which an input is read, which is at inp_i in the next; so are its taps,
// and window_o says whether the instruction is a window GEMM. In the one after that writes_o says whether the iteration writes: it does where it is in none of
// the first rows and columns that are to be skipped, as of any other GEMM.

module vta_window
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                     clk_i,
  input  logic                     start_i,  // of an instruction, before its first issue
  // Of the instruction.
  input  logic                     window_i,
  input  logic [     IterBits-1:0] columns_i,
  input  logic [WgtFactorBits-1:0] skip_rows_i,
  input  logic [WgtFactorBits-1:0] skip_columns_i,
  input  logic                     issue_i,
  input  logic [      InpBits-1:0] inp_i,
  output logic [      InpBits-1:0] taps_o[WindowTaps],
  output logic                     window_o,
  output logic                     writes_o
);

  localparam int unsigned Line = 1 << LogWindowLine;
  typedef logic [LogWindowLine-1:0] column_t;

  // ---- Where the iteration is -------------------------------------------------------------------
  column_t column_q, before_last_q, column_1_q;
  logic [WgtFactorBits-1:0] rows_to_skip_q;
  logic [WindowRows-1:1] row_before_q;  // there are so many rows before
  logic window_issue, last_q, window_q, window_1_q, clears_1_q, writes_1_q, writes_2_q;
  assign window_issue = issue_i && window_i;

  always_ff @(posedge clk_i) begin
    if (window_issue) begin
      column_q <= last_q ? '0 : column_q + 1'b1;
      last_q <= !last_q && column_q == before_last_q;
      if (last_q) begin
        row_before_q[1] <= 1'b1;
        for (int r = 2; r < WindowRows; r++) row_before_q[r] <= row_before_q[r-1];
        if (rows_to_skip_q != '0) rows_to_skip_q <= rows_to_skip_q - 1'b1;
      end
    end
    if (start_i) begin
      column_q <= '0;
      last_q <= 1'b0;
      before_last_q <= column_t'(columns_i - IterBits'(2));
      row_before_q <= '0;
      rows_to_skip_q <= skip_rows_i;
    end
    column_1_q <= column_q;
    clears_1_q <= start_i || (window_issue && last_q);
    window_q <= window_i;
    window_1_q <= window_issue;
    writes_1_q <= !window_issue || (rows_to_skip_q == '0
        && (WgtFactorBits + LogWindowLine)'(column_q)
            >= (WgtFactorBits + LogWindowLine)'(skip_columns_i));
    writes_2_q <= writes_1_q;
  end
  assign window_o = window_q;
  assign writes_o = writes_2_q;

  // ---- Taps -------------------------------------------------------------------------------------
  // The newest of each row: from the lines, and the input itself. Those of columns before follow.
  logic [InpBits-1:0] newest[WindowRows];
  logic [InpBits-1:0] before_q[WindowRows][1:WindowColumns-1];
  assign newest[0] = inp_i;

  for (genvar r = 1; r < WindowRows; r++) begin : g_line
    (* ram_style = "distributed" *) logic [InpBits-1:0] memory[Line];
    logic [InpBits-1:0] line_q;

    // A column is read two cycles or more after it was written: a row has two or more.
    always_ff @(posedge clk_i) begin
      if (window_issue) line_q <= row_before_q[r] ? memory[column_q] : '0;
      if (window_1_q) memory[column_1_q] <= newest[r-1];
    end
    assign newest[r] = line_q;
  end

  for (genvar r = 0; r < WindowRows; r++) begin : g_row
    always_ff @(posedge clk_i) begin
      if (window_1_q) begin
        before_q[r][1] <= newest[r];
        for (int t = 2; t < WindowColumns; t++) before_q[r][t] <= before_q[r][t-1];
      end
      if (clears_1_q) before_q[r] <= '{default: '0};
    end

    assign taps_o[r*WindowColumns] = newest[r];
    for (genvar t = 1; t < WindowColumns; t++) begin : g_column
      assign taps_o[r*WindowColumns+t] = before_q[r][t];
    end
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  logic started_q;
  initial started_q = 1'b0;
  always @(posedge clk_i) started_q <= started_q || start_i;

  assert_column : assert property (@(posedge clk_i) disable iff (!started_q)
      window_issue -> last_q == (IterBits'(column_q) == columns_i - 1'b1)
          && IterBits'(column_q) < columns_i && columns_i >= IterBits'(2)
          && columns_i <= IterBits'(Line))
  else $error("a window GEMM has longer rows than a line, or of one column, or leaves its row");
  assert_kind : assert property (@(posedge clk_i) disable iff (!started_q)
      window_1_q -> window_q)
  else $error("the inputs of a window GEMM are taken for those of another");
  assert_apart : assert property (@(posedge clk_i) disable iff (!started_q)
      window_issue && window_1_q -> column_q != column_1_q)
  else $error("a line is read in the cycle in which it is written");
  assert_start : assert property (@(posedge clk_i) disable iff (!started_q)
      start_i || $past(start_i) -> !window_issue && !window_1_q)
  else $error("an instruction began before the last one read its inputs");
  cover_skips : cover property (@(posedge clk_i) window_1_q && !writes_1_q);
  // verilog_format: on
`endif

endmodule
