// SPDX-License-Identifier: Apache-2.0
//
// One bank of the accumulator with the units that change it: LOAD, GEMM's addition and the ALU.
//
// Read in cycle 0, an element is at acc_o in cycle 2, where add_i or execute_i takes it; write_i
// writes the result in cycle 3, and shows its low bytes at out_o. An element that is read while it
// is written by write_i has its new value: from read to read of the new value there are three
// cycles.

module vta_acc_bank
  import vta_pkg::*;
(
  input  logic                  clk_i,
  input  logic                  read_i,
  input  logic [LogAccRows-1:0] read_row_i,
  output logic [   AccBits-1:0] acc_o,
  input  logic                  zero_i,  // in cycle 1: acc_o becomes zero, whatever was read
  // acc_o plus a tensor.
  input  logic                  add_i,
  input  logic [   AccBits-1:0] dot_i,
  // acc_o combined with src_i; the written result is clamped between low_i and high_i, the larger,
  // but for that of MUL.
  input  logic                  execute_i,
  input  logic [           2:0] opcode_i,
  input  logic signed [   31:0] low_i,
  input  logic signed [   31:0] high_i,
  input  logic [   AccBits-1:0] src_i,
  // The result, of the addition where gemm_i is high; with clear_i zero is written, while out_o has
  // the sum: with write_i.
  input  logic                  write_i,
  input  logic [LogAccRows-1:0] write_row_i,
  input  logic                  gemm_i,
  input  logic                  clear_i,
  output logic [   OutBits-1:0] out_o,
  // LOAD.
  input  logic                  load_i,
  input  logic [LogAccRows-1:0] load_row_i,
  input  logic [   AccBits-1:0] load_data_i
);

  logic [AccBits-1:0] sum_q, alu_result, product, result;
  logic is_product;

  function automatic logic signed [31:0] clamp(input logic signed [31:0] value,
                                               input logic signed [31:0] low,
                                               input logic signed [31:0] high);
    return value < low ? low : value > high ? high : value;
  endfunction

  always_ff @(posedge clk_i) begin
    if (add_i)
      for (int n = 0; n < Batch * Block; n++) sum_q[n*32+:32] <= acc_o[n*32+:32] + dot_i[n*32+:32];
  end

  vta_alu u_alu (
    .clk_i,
    .execute_i,
    .opcode_i,
    .dst_i(acc_o),
    .src_i,
    .result_o(alu_result),
    .product_valid_o(is_product),
    .product_o(product)
  );

  // Within a branch, so that the simulator clamps nothing while nothing is written.
  always_comb begin
    result = sum_q;
    if (write_i && !gemm_i) begin
      if (is_product) result = product;
      else
        for (int n = 0; n < Batch * Block; n++)
        result[n*32+:32] = clamp(alu_result[n*32+:32], low_i, high_i);
    end
  end

  always_comb begin
    out_o = '0;
    if (write_i) for (int n = 0; n < Batch * Block; n++) out_o[n*8+:8] = result[n*32+:8];
  end

  // ---- Memory -----------------------------------------------------------------------------------
  // Its output is registered, with the element that was written while it was read in place of the
  // old one.
  logic [AccBits-1:0] stored, new_value, written_q, acc_q;
  logic read_q, forward_q;
  assign new_value = clear_i ? '0 : result;
  assign acc_o = acc_q;

  always_ff @(posedge clk_i) begin
    read_q <= read_i;
    forward_q <= write_i && read_row_i == write_row_i;
    if (write_i) written_q <= new_value;
    if (read_q) acc_q <= zero_i ? '0 : forward_q ? written_q : stored;
  end

  vta_ram #(
    .Width(AccBits),
    .Depth(AccRows)
  ) u_ram (
    .clk_i,
    .write_i(write_i || load_i),
    .write_index_i(write_i ? write_row_i : load_row_i),
    .data_i(write_i ? new_value : load_data_i),
    .read_i,
    .read_index_i(read_row_i),
    .data_o(stored)
  );

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_one_writer : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      write_i -> !load_i)
  else $error("a LOAD and an instruction write the accumulator in one cycle");
  assert_one_unit : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      add_i -> !execute_i)
  else $error("GEMM and ALU take an element of the accumulator in one cycle");
  assert_clear : assert property (@(posedge clk_i) disable iff (!powered_q[2]) clear_i -> gemm_i)
  else $error("an ALU result is cleared");
  assert_clamp : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      write_i && !gemm_i -> low_i <= high_i)
  else $error("a result is clamped between bounds that no number meets");
  assert_zero : assert property (@(posedge clk_i) disable iff (!powered_q[2]) zero_i -> read_q)
  else $error("an element is to be zero that was not read");
  cover_forward : cover property (@(posedge clk_i) powered_q[2] && read_q && forward_q);
  // verilog_format: on
`endif

endmodule
