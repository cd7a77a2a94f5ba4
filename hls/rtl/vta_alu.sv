// SPDX-License-Identifier: Apache-2.0
//
// Combines an accumulator tensor with another one, or with an immediate: MIN, MAX, ADD, SHR, MUL,
// element by element.
//
// result_o, registered, follows dst_i, src_i and execute_i by one cycle; an immediate is at src_i,
// in every element. ADD and MUL wrap at 32 bits. SHR shifts arithmetically by the low five bits of
// the source, which are at amount_i, as a signed number: a negative amount shifts left. MUL is at
// product_o instead, with product_valid_o: its partial products are registered (P of the DSP
// slices), and their sum is not.

module vta_alu
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic               clk_i,
  input  logic               execute_i,
  input  logic [        2:0] opcode_i,
  input  logic [AccBits-1:0] dst_i,
  input  logic [AccBits-1:0] src_i,
  input  logic [AmountBits-1:0] amount_i,
  output logic [AccBits-1:0] result_o,
  output logic               product_valid_o,
  output logic [AccBits-1:0] product_o
);

  logic [AccBits-1:0] result_q;

  // A shift by s bits to the right, or by 16 - s to the left, is one by s of twice the width.
  function automatic logic [31:0] shift(input logic signed [31:0] dst, input logic [4:0] amount);
    logic signed [47:0] wide;
    wide = amount[4] ? {dst, 16'd0} : 48'(dst);
    return 32'(wide >>> amount[3:0]);
  endfunction

  // The comparison is the slowest: what it chooses from and what else the result may be are ready
  // before it, and two bits of the operation say which. Of a MUL the result is not used.
  function automatic logic [31:0] combine(input logic [1:0] opcode, input logic signed [31:0] dst,
                                          input logic signed [31:0] src, input logic [4:0] amount);
    logic [31:0] other;
    other = opcode[0] == AluShr[0] ? shift(dst, amount) : dst + src;
    if (opcode[1] == AluMin[1]) return (dst < src) == (opcode[0] == AluMin[0]) ? dst : src;
    return other;
  endfunction

  always_ff @(posedge clk_i) begin
    if (execute_i) begin
      for (int n = 0; n < Batch * Block; n++) begin
        result_q[n*32+:32] <=
            combine(opcode_i[1:0], dst_i[n*32+:32], src_i[n*32+:32], amount_i[n*5+:5]);
      end
    end
  end

  assign result_o = result_q;

  if (IsaA) begin : g_no_mul
    assign product_valid_o = 1'b0;
    assign product_o = '0;
  end else begin : g_mul
    // dst * src = low * low + 2^16 * (low * high + high * low), of which 32 bits count.
    logic [31:0] low_q[Batch*Block];
    logic [15:0] cross_q[Batch*Block][2];
    logic mul_q;

    always_ff @(posedge clk_i) begin
      if (execute_i) begin
        mul_q <= opcode_i == AluMul;
        if (opcode_i == AluMul) begin
          for (int n = 0; n < Batch * Block; n++) begin
            low_q[n] <= 32'(dst_i[n*32+:16]) * 32'(src_i[n*32+:16]);
            cross_q[n][0] <= dst_i[n*32+:16] * src_i[n*32+16+:16];
            cross_q[n][1] <= dst_i[n*32+16+:16] * src_i[n*32+:16];
          end
        end
      end
    end

    assign product_valid_o = mul_q;
    always_comb begin
      product_o = '0;
      if (mul_q) begin
        for (int n = 0; n < Batch * Block; n++) begin
          product_o[n*32+:32] = {low_q[n][31:16] + cross_q[n][0] + cross_q[n][1], low_q[n][15:0]};
        end
      end
    end
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_opcode : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      execute_i -> opcode_i <= AluMul)
  else $error("an illegal ALU operation is executed");
  for (genvar n = 0; n < Batch * Block; n++) begin : g_amount
    assert_amount : assert property (@(posedge clk_i) disable iff (!powered_q[2])
        execute_i && opcode_i == AluShr -> amount_i[n*5+:5] == src_i[n*32+:5])
    else $error("a shift is not by its source");
  end
  assert_hold : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      $past(powered_q[2] && !execute_i) -> $stable(result_o))
  else $error("the ALU's result changed without an operation");
  // verilog_format: on
`endif

endmodule
