// SPDX-License-Identifier: Apache-2.0
//
// vta_chain and vta_fold, which change the order of updates, with eight accumulators and loops of at
// most seven iterations: where an instruction joins a chain, or a reset is left to the next GEMM,
// every two iterations have different accumulators, all of them in the buffer, and none has gone
// yet. So one pass does what the instructions do one after the other, and no update is lost. The
// bounds of a chain are its instructions applied in turn, to any number.

module passes_proof
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                enable_i,
  input logic                repeat_i,
  input logic                insn_valid_i,
  input logic [InsnBits-1:0] insn_i,
  input logic                take_i,
  input logic                end_i,        // the instruction in execution ends
  input logic [ UopBits-1:0] uop_i,        // its micro-op
  // Two iterations and a number, chosen by the solver in the first cycle.
  input logic [         2:0] out_i[2],
  input logic [         2:0] in_i[2],
  input logic [        31:0] number_i
);

  `include "vta_instruction.svh"

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  logic [2:0] out_q[2], in_q[2];
  logic signed [31:0] number_q;
  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      out_q <= out_i;
      in_q <= in_i;
      number_q <= number_i;
    end
  end

  // ---- The instruction in execution -------------------------------------------------------------
  nest_t nest_q;
  logic [UopBits-1:0] uop_q;
  logic [InsnBits-1:0] insn_q;  // the last that was taken or joined
  logic busy_q, launch_q, held_q;
  logic join_o, folded_o, chain_holds, fold_holds, continues;
  logic signed [31:0] low_o, high_o;
  logic [LogAccDepth-1:0] first_o;
  logic [LogAccDepth:0] count_o;

  always_ff @(posedge clk_i) begin
    launch_q <= rst_ni && take_i;
    if (!rst_ni) busy_q <= 1'b0;
    else if (take_i) busy_q <= 1'b1;
    else if (end_i || folded_o) busy_q <= 1'b0;
    if (take_i) begin
      nest_q <= nest_of(insn_i);
      uop_q <= uop_i;
    end
    if (take_i || join_o) insn_q <= insn_i;
    // Nothing could issue since it was taken. In the first cycles nothing does anyway.
    held_q <= take_i || (held_q && (chain_holds || fold_holds));
  end
  assign continues = clamps(insn_i) && destinations_of(insn_i) == destinations_of(insn_q);

  vta_chain #(
    `include "vta_passed.svh"
  ) chain (
    .clk_i,
    .rst_ni,
    .enable_i,
    .repeat_i,
    .insn_valid_i,
    .insn_i,
    .insn_continues_i(continues),
    .take_i,
    .launch_i(launch_q),
    .join_o,
    .nest_i(nest_q),
    .uop_dst_i(uop_q[UopDstBits-1:0]),
    .hold_next_o(chain_holds),
    .low_o,
    .high_o
  );

  vta_fold #(
    `include "vta_passed.svh"
  ) fold (
    .clk_i,
    .rst_ni,
    .enable_i,
    .repeat_i,
    .insn_valid_i,
    .insn_i,
    .take_i,
    .nest_i(nest_q),
    .uop_i(uop_q),
    .hold_next_o(fold_holds),
    .folded_o,
    .first_o,
    .count_o
  );

  // ---- What it goes over ------------------------------------------------------------------------
  logic both, same;  // the two iterations are of the instruction; they are one
  logic [31:0] dst[2];
  always_comb begin
    both = 1'b1;
    for (int n = 0; n < 2; n++) begin
      both &= IterBits'(out_q[n]) < nest_q.iter_out && IterBits'(in_q[n]) < nest_q.iter_in;
      dst[n] = 32'(uop_q[UopDstBits-1:0]) + 32'(out_q[n]) * 32'(nest_q.dst_factor_out)
          + 32'(in_q[n]) * 32'(nest_q.dst_factor_in);
    end
    same = out_q[0] == out_q[1] && in_q[0] == in_q[1];
  end

  function automatic logic pushes(input logic [InsnBits-1:0] insn);
    return insn[PushPrevBit] || insn[PushNextBit];
  endfunction

  // The number after the instructions of the chain; bounds follow a joining by two cycles.
  logic signed [31:0] result_q, result_1_q, imm;
  assign imm = 32'($signed(imm_of(insn_i)));
  always_ff @(posedge clk_i) begin
    if (take_i) result_q <= number_q;
    else if (join_o && alu_opcode_of(insn_i) == AluMax) result_q <= result_q < imm ? imm : result_q;
    else if (join_o) result_q <= imm < result_q ? imm : result_q;
    result_1_q <= result_q;
  end
  logic [3:0] since_q;  // take_i, up to 15 cycles
  always_ff @(posedge clk_i)
    since_q <= !rst_ni || take_i ? '0 : since_q == '1 ? '1 : since_q + 1'b1;

  // The contract: the head of the queue stays until it is taken or joins; one instruction at a time;
  // none ends while it is held that has micro-ops.
  logic waits_q;
  logic [InsnBits-1:0] head_q;
  always_ff @(posedge clk_i) begin
    waits_q <= rst_ni && insn_valid_i && !take_i && !join_o;
    head_q <= insn_i;
  end
  always_comb begin
    if (waits_q) assume (insn_valid_i && insn_i == head_q);
    if (!started_q) assume (!rst_ni);
    if (take_i) assume (rst_ni && !busy_q && insn_valid_i);
    if (end_i)
      assume (busy_q && (!held_q || nest_q.iter_out == '0 || nest_q.iter_in == '0
          || nest_q.uop_bgn >= nest_q.uop_end));
    assume (insn_i[IterOutLsb+:IterBits] < IterBits'(8));
    assume (insn_i[IterInLsb+:IterBits] < IterBits'(8));
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      a_join : assert (!join_o || (busy_q && held_q && nest_q.uop_end == nest_q.uop_bgn + 1'b1
          && !pushes(insn_q) && clamps(insn_i)));
      a_join_apart : assert (!join_o || !both
          || (dst[0] < AccDepth && (same || dst[0] != dst[1])));
      a_fold : assert (!folded_o || (busy_q && nest_q.reset && nest_q.uop_end == nest_q.uop_bgn + 1'b1
          && !pushes(insn_q)));
      a_fold_apart : assert (!folded_o || !both
          || (dst[0] >= 32'(first_o) && dst[0] < 32'(first_o) + 32'(count_o)
              && (same || dst[0] != dst[1])));
      a_fold_count : assert (!folded_o
          || 32'(count_o) == 32'(nest_q.iter_out) * 32'(nest_q.iter_in));
      a_fold_held : assert (!folded_o || $past(held_q));
      a_bounds : assert (since_q < 4'd3 || !busy_q || !chain_holds
          || (number_q < low_o ? low_o : high_o < number_q ? high_o : number_q) == result_1_q);
    end
    c_two_join : cover (started_q && rst_ni && join_o && $past(join_o) && nest_q.iter_out == IterBits'(2)
        && nest_q.iter_in == IterBits'(3));
    c_fold : cover (started_q && rst_ni && folded_o && nest_q.iter_out == IterBits'(2)
        && nest_q.iter_in == IterBits'(3));
  end

endmodule
