// SPDX-License-Identifier: Apache-2.0
//
// Ends a GEMM that resets before it begins, where the GEMM after it can clear the accumulators in
// passing: each when a micro-op first adds to it (vta_first_use).
//
// That is so for a reset of
//   - one micro-op, whose input and weight no loop moves on,
//   - consecutive accumulators, each once,
//   - indices that are all within their buffers,
// that pushes no token, and is followed by a GEMM that does not reset. Neither is a window GEMM.
//
// It is taken in cycle T. All but the follower is known in T+4; from T+5 on the head of the queue
// is looked at, and waited for where the queue is empty, so that the outcome does not depend on
// when fetch delivers it. hold_next_o keeps the reset's micro-ops from issuing until then. folded_o
// marks the cycle after the look, the last one of the reset.

module vta_fold
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   enable_i,  // the stage takes instructions
  input  logic                   repeat_i,  // it goes on to the next by itself
  // Head of the instruction queue; take_i begins it.
  input  logic                   insn_valid_i,
  input  logic [   InsnBits-1:0] insn_i,
  input  logic                   take_i,
  // Of the instruction in execution, and in T+3 its first micro-op.
  input  nest_t                  nest_i,
  input  logic [    UopBits-1:0] uop_i,
  output logic                   hold_next_o,  // nothing may issue in the next cycle
  output logic                   folded_o,
  output logic [LogAccDepth-1:0] first_o,  // accumulator
  output logic [  LogAccDepth:0] count_o
);

  `include "vta_instruction.svh"

  typedef enum logic [2:0] {
    Closed,
    Measure,
    Prove,
    Add,
    Decide,
    Look,
    Folded
  } state_e;

  // state_d: unless an instruction is taken, in whose first cycles nothing issues anyway
  state_e state_q, state_d;

  localparam int unsigned CountBits = 2 * IterBits;
  localparam int unsigned RoomBits = LogAccDepth + 1;
  logic [CountBits-1:0] count_q;
  logic [RoomBits-1:0] room_q;
  logic [UopDstBits-1:0] first_q;
  logic one_uop_q, inner_fits_q, outer_fits_q, inp_still_q, wgt_still_q;
  logic consecutive_q, fits_q, operands_q;

  always_ff @(posedge clk_i) begin
    if (state_q == Measure) begin
      count_q <= CountBits'(nest_i.iter_out) * CountBits'(nest_i.iter_in);
      one_uop_q <= nest_i.uop_count[1] && nest_i.uop_bgn < UopEndBits'(UopDepth);
      inp_still_q <= {nest_i.src_factor_out, nest_i.src_factor_in} == '0;
      wgt_still_q <= {nest_i.wgt_factor_out, nest_i.wgt_factor_in} == '0;
      inner_fits_q <= nest_i.iter_in != '0
          && (nest_i.iter_in == IterBits'(1) || nest_i.dst_factor_in == index_t'(1));
      outer_fits_q <= nest_i.iter_out != '0
          && (nest_i.iter_out == IterBits'(1) || nest_i.dst_factor_out == index_t'(nest_i.iter_in));
    end
    if (state_q == Prove) begin
      consecutive_q <= one_uop_q && inner_fits_q && outer_fits_q && inp_still_q && wgt_still_q;
      fits_q <= count_q <= CountBits'(AccDepth);
      room_q <= RoomBits'(AccDepth) - RoomBits'(count_q);
    end
    if (state_q == Add) begin
      first_q <= uop_i[UopDstBits-1:0];
      operands_q <= index_t'(uop_i[UopSrcLsb+:UopSrcBits]) < index_t'(InpDepth)
          && index_t'(uop_i[UopWgtLsb+:UopWgtBits]) < index_t'(WgtDepth);
    end
  end

  logic may_fold, look;
  assign may_fold = consecutive_q && fits_q && operands_q && index_t'(first_q) <= index_t'(room_q);
  assign look = state_q == Look && insn_valid_i && enable_i && repeat_i;

  always_comb begin
    state_d = Closed;
    unique case (state_q)
      Measure: state_d = Prove;
      Prove: state_d = Add;
      Add: state_d = Decide;
      Decide: if (may_fold) state_d = Look;
      Look: begin
        if (look) begin
          if (opcode_of(insn_i) == OpGemm && !insn_i[ResetBit] && !window_of(insn_i)) state_d = Folded;
        end else if (repeat_i) begin
          state_d = Look;
        end
      end
      default: state_d = Closed;
    endcase
  end

  logic folded_q;
  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (take_i) begin
      state_q <= HazardInterlock && opcode_of(insn_i) == OpGemm && insn_i[ResetBit] &&
          !window_of(insn_i) && !insn_i[PushPrevBit] && !insn_i[PushNextBit] ? Measure : Closed;
    end
    if (!rst_ni) state_q <= Closed;
    folded_q <= rst_ni && state_d == Folded;
  end

  assign hold_next_o = state_d != Closed;
  assign folded_o = folded_q;
  assign first_o = LogAccDepth'(first_q);
  assign count_o = RoomBits'(count_q);

  logic [UopEndBits+UopBits+2*WgtFactorBits+23:0] unused;  // what else an instruction has
  assign unused = {
    nest_i.uop_end,
    nest_i.uop_count[3:2],
    nest_i.reset,
    nest_i.window,
    nest_i.skip_out,
    nest_i.skip_in,
    nest_i.alu_opcode,
    nest_i.use_imm,
    nest_i.imm,
    uop_i
  };

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_range : assert property (@(posedge clk_i) disable iff (!rst_ni)
      folded_o -> count_q != '0 && CountBits'(first_q) + count_q <= CountBits'(AccDepth))
  else $error("a reset that passes its buffer was left to the next GEMM");
  assert_next : assert property (@(posedge clk_i) disable iff (!rst_ni)
      folded_o -> insn_valid_i && opcode_of(insn_i) == OpGemm && !insn_i[ResetBit]
          && !window_of(insn_i))
  else $error("a reset was left to an instruction that does not add");
  assert_order : assert property (@(posedge clk_i) disable iff (!rst_ni)
      take_i -> state_q != Look && state_q != Folded)
  else $error("an instruction began before a reset was decided on");
  cover_folded : cover property (@(posedge clk_i) rst_ni && folded_o);
  cover_refused : cover property (@(posedge clk_i) rst_ni && state_q == Decide && !may_fold);
  cover_waits : cover property (@(posedge clk_i) rst_ni && state_q == Look && !insn_valid_i);
  // verilog_format: on
`endif

endmodule
