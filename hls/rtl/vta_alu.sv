// SPDX-License-Identifier: Apache-2.0
//
// Combines an accumulator tensor with another one, or with an immediate: MIN, MAX, ADD, SHR, MUL, element by element.
//
// result_o, registered, follows dst_i, src_i and execute_i by one cycle. ADD and MUL wrap at 32 bits. SHR shifts
// arithmetically by the low five bits of the source as a signed number: a negative amount shifts left.

module vta_alu
  import vta_pkg::*;
(
  input  logic               clk_i,
  input  logic               execute_i,
  input  alu_operation_t     operation_i,
  input  logic [AccBits-1:0] dst_i,
  input  logic [AccBits-1:0] src_i,
  output logic [AccBits-1:0] result_o
);

  logic [AccBits-1:0] result_q;

  function automatic logic [31:0] combine(input logic [2:0] opcode, input logic signed [31:0] dst,
                                          input logic signed [31:0] src);
    logic [4:0] left;
    left = 5'd0 - src[4:0];
    unique case (opcode)
      AluMin: return dst < src ? dst : src;
      AluMax: return dst > src ? dst : src;
      AluAdd: return dst + src;
      AluShr: return src[4] ? dst << left : dst >>> src[4:0];
      default: return IsaA ? '0 : dst * src;
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    if (execute_i) begin
      for (int n = 0; n < Batch * Block; n++) begin
        result_q[n*32+:32] <= combine(operation_i.opcode, dst_i[n*32+:32],
            operation_i.use_imm ? 32'($signed(operation_i.imm)) : src_i[n*32+:32]);
      end
    end
  end

  assign result_o = result_q;

`ifndef SYNTHESIS
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycle after power-on.
  logic powered_q;
  initial powered_q = 1'b0;
  always @(posedge clk_i) powered_q <= 1'b1;

  assert_opcode : assert property (@(posedge clk_i) disable iff (!powered_q)
      execute_i -> operation_i.opcode <= AluMul)
  else $error("an illegal ALU operation is executed");
  assert_hold : assert property (@(posedge clk_i) disable iff (!powered_q)
      $past(powered_q && !execute_i) -> $stable(result_o))
  else $error("the ALU's result changed without an operation");
`endif

endmodule
