// SPDX-License-Identifier: Apache-2.0
//
// Joins ALU instructions with immediate that go over the same accumulators to one pass: a first one
// of any operation but MUL, and the MIN and MAX that follow it, which together are a clamp between
// low_o and high_o.
//
// One pass applies all instructions to each accumulator in turn, not each instruction to all of
// them. The two are the same if no accumulator comes twice and no index is past its buffer. That is
// proven, of instructions
//   - of one micro-op,
//   - whose inner loop, if it runs more than once, moves on by one,
//   - whose outer loop, if it runs more than once, moves on by no less than the inner loop's
//     length,
//   - the last of whose indices is within the accumulator.
// Instructions join while no token is pushed or popped between them.
//
// The first is taken in cycle T. Its proof is done in T+4; if it holds, the head of the queue is
// looked at from T+5 on, one instruction a cycle, and waited for where the queue is empty: so what
// joins does not depend on when fetch delivers it. Until one does not join, or pushes a token,
// hold_next_o keeps micro-ops from issuing.

module vta_chain
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  enable_i,  // the stage takes instructions
  input  logic                  repeat_i,  // it goes on to the next by itself
  // Head of the instruction queue. take_i begins it; join_o makes it part of the one in execution.
  input  logic                  insn_valid_i,
  input  logic [  InsnBits-1:0] insn_i,
  input  logic                  insn_continues_i,  // it clamps what the one before it went over
  input  logic                  take_i,
  input  logic                  launch_i,  // it was begun in the last cycle
  output logic                  join_o,
  // Of the instruction in execution, and in T+3 of its first micro-op.
  input  nest_t                 nest_i,
  input  logic [UopDstBits-1:0] uop_dst_i,
  output logic                  hold_next_o,  // nothing may issue in the next cycle
  output logic signed [ 31:0]   low_o,
  output logic signed [ 31:0]   high_o
);

  `include "vta_instruction.svh"

  typedef enum logic [2:0] {
    Closed,   // nothing joins
    Measure,
    Prove,
    Add,
    Decide,
    Open
  } state_e;

  state_e state_q;
  logic open_q;  // as the state says

  function automatic logic pushes(input logic [InsnBits-1:0] insn);
    return insn[PushPrevBit] || insn[PushNextBit];
  endfunction

  // fields that only GEMM and ALU of two tensors have
  logic [4*IndexBits+UopEndBits+2*WgtFactorBits+23:0] unused_nest;
  assign unused_nest = {
    nest_i.uop_end,
    nest_i.uop_count[3:2],
    nest_i.reset,
    nest_i.src_factor_out,
    nest_i.src_factor_in,
    nest_i.wgt_factor_out,
    nest_i.wgt_factor_in,
    nest_i.window,
    nest_i.skip_out,
    nest_i.skip_in,
    nest_i.alu_opcode,
    nest_i.use_imm,
    nest_i.imm
  };

  // ---- Proof ------------------------------------------------------------------------------------
  // From the first index to the last, while the loops are as they must be.
  localparam int unsigned RowsBits = IterBits + DstFactorBits;
  logic [RowsBits-1:0] rows_q;
  // row_q: of the last row; room_q: destinations of the micro-op that are low enough
  index_t row_q, span_q, uop_dst_q, room_q;
  logic one_uop_q, inner_fits_q, outer_fits_q, apart_q;

  always_ff @(posedge clk_i) begin
    if (state_q == Measure) begin
      rows_q <= RowsBits'(nest_i.iter_out) * RowsBits'(nest_i.dst_factor_out);
      // Less one row and one, for these are counted twice.
      row_q <= index_t'(nest_i.iter_in) + ~nest_i.dst_factor_out;
      one_uop_q <= nest_i.uop_count[1] && nest_i.uop_bgn < UopEndBits'(UopDepth);
      inner_fits_q <= nest_i.iter_in != '0
          && (nest_i.iter_in == IterBits'(1) || nest_i.dst_factor_in == index_t'(1));
      outer_fits_q <= nest_i.iter_out != '0
          && (nest_i.iter_out == IterBits'(1) || nest_i.dst_factor_out >= index_t'(nest_i.iter_in));
    end
    if (state_q == Prove) apart_q <= one_uop_q && inner_fits_q && outer_fits_q;
    if (state_q == Add) begin
      uop_dst_q <= index_t'(uop_dst_i);
      room_q <= span_q < index_t'(AccDepth) ? index_t'(AccDepth) - span_q : '0;
    end
    if (state_q == Prove) span_q <= index_t'(rows_q) + row_q;
  end

  // ---- Joining ----------------------------------------------------------------------------------
  logic look;
  assign look = open_q && insn_valid_i && enable_i && repeat_i;
  always_comb begin
    join_o = 1'b0;
    if (look) join_o = insn_continues_i;
  end
  // state_d: unless an instruction is taken, in whose first cycles nothing issues anyway
  state_e begin_d, state_d;
  always_comb begin
    begin_d = HazardInterlock && immediate(insn_i) && alu_opcode_of(insn_i) != AluMul &&
        !pushes(insn_i) ? Measure : Closed;
    state_d = state_q;
    unique case (state_q)
      Measure: state_d = Prove;
      Prove: state_d = Add;
      Add: state_d = Decide;
      Decide: state_d = apart_q && uop_dst_q < room_q ? Open : Closed;
      Open: if (!repeat_i || (look && (!join_o || pushes(insn_i)))) state_d = Closed;
      default: state_d = Closed;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= !rst_ni ? Closed : take_i ? begin_d : state_d;
    open_q <= rst_ni && !take_i && state_d == Open;
  end
  assign hold_next_o = state_d != Closed;

  // ---- Clamp ------------------------------------------------------------------------------------
  // low_q is never above high_q, so that a value is past one of them at most. They follow the
  // instruction that joins by two cycles, and are needed three cycles after it at the earliest.
  logic signed [31:0] low_q, high_q;
  logic joined_q, max_q;
  logic signed [15:0] imm_q;

  always_ff @(posedge clk_i) begin
    joined_q <= join_o;
    if (state_q == Open) begin
      max_q <= alu_opcode_of(insn_i) == AluMax;
      imm_q <= imm_of(insn_i);
    end
    if (launch_i) begin
      low_q <= 32'sh8000_0000;
      high_q <= 32'sh7FFF_FFFF;
    end else if (joined_q) begin
      automatic logic signed [31:0] bound = 32'(imm_q);
      if (max_q) begin
        if (bound >= low_q) low_q <= bound;
        if (bound > high_q) high_q <= bound;
      end else begin
        if (bound < low_q) low_q <= bound;
        if (bound <= high_q) high_q <= bound;
      end
    end
  end

  assign low_o = low_q;
  assign high_o = high_q;

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_bounds : assert property (@(posedge clk_i) disable iff (!rst_ni)
      state_q != Closed && !launch_i -> low_o <= high_o)
  else $error("a chain clamps between bounds that no number meets");
  assert_join : assert property (@(posedge clk_i) disable iff (!rst_ni)
      join_o -> state_q == Open && insn_valid_i && enable_i && repeat_i)
  else $error("an instruction joined a chain that is not open");
  assert_open : assert property (@(posedge clk_i) disable iff (!rst_ni)
      open_q == (state_q == Open))
  else $error("vta_chain: the flag differs from the state");
  assert_proven : assert property (@(posedge clk_i) disable iff (!rst_ni)
      state_q == Open -> apart_q && uop_dst_q < room_q)
  else $error("a chain is open without its proof");
  cover_join : cover property (@(posedge clk_i) rst_ni && join_o);
  cover_refused : cover property (@(posedge clk_i) rst_ni && state_q == Decide && !apart_q);
  cover_pushes : cover property (@(posedge clk_i) rst_ni && join_o && pushes(insn_i));
  // verilog_format: on
`endif

endmodule
