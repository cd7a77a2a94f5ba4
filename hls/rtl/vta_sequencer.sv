// SPDX-License-Identifier: Apache-2.0
//
// Takes a stage's instructions from its queue, one after another, in step with the neighbour
// stages' tokens.
//
// An instruction is taken in the cycle (take_o) in which it is at the head of the queue, the stage
// is enabled and every token that it pops is there; the tokens are popped in that cycle. busy_o is
// high from the next cycle until the stage says done_i, which it may do in the first busy cycle.
// Its tokens are pushed in the cycle after done_i, or later when a token queue is full, and
// retire_o marks the push. The next instruction can be taken in the cycle after that.
//
// With join_i the instruction at the head becomes part of the one in execution: its tokens are
// pushed instead.
//
// A stage at an end of the chain ties the missing neighbour's valid and ready inputs high; one that
// joins no instructions ties join_i low.

module vta_sequencer
  import vta_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic enable_i,
  // Head of the instruction queue: its token bits.
  input  logic insn_valid_i,
  input  logic insn_pop_prev_i,
  input  logic insn_pop_next_i,
  input  logic insn_push_prev_i,
  input  logic insn_push_next_i,
  // Tokens.
  input  logic prev_valid_i,
  output logic prev_pop_o,
  input  logic next_valid_i,
  output logic next_pop_o,
  input  logic prev_ready_i,
  output logic prev_push_o,
  input  logic next_ready_i,
  output logic next_push_o,
  // Stage.
  output logic idle_o,  // none is in execution: nothing needs what is known of the last one
  output logic take_o,
  output logic busy_o,
  output logic pushes_next_o,  // the instruction in execution does
  input  logic join_i,
  input  logic done_i,
  output logic retire_o
);

  typedef enum logic [1:0] {
    Idle,
    Busy,
    Push
  } state_e;

  state_e state_q, state_d;
  logic idle_q, not_busy_q;  // as the state says: Idle; Idle or Push
  logic push_prev_q, push_next_q;

  logic pushes_fit;
  assign pushes_fit = (prev_ready_i || !push_prev_q) && (next_ready_i || !push_next_q);
  always_comb begin
    take_o = 1'b0;
    retire_o = 1'b0;
    if (idle_q) begin
      take_o = enable_i && insn_valid_i && (prev_valid_i || !insn_pop_prev_i)
          && (next_valid_i || !insn_pop_next_i);
    end else if (state_q == Push) begin
      retire_o = pushes_fit && enable_i;
    end
  end

  always_comb begin
    state_d = state_q;
    if (take_o) state_d = Busy;
    else if (retire_o) state_d = Idle;
    else if (state_q == Busy && done_i) state_d = Push;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      idle_q <= 1'b1;
      not_busy_q <= 1'b1;
    end else begin
      state_q <= state_d;
      idle_q <= state_d == Idle;
      not_busy_q <= state_d != Busy;
      if (take_o || join_i) begin
        push_prev_q <= insn_push_prev_i;
        push_next_q <= insn_push_next_i;
      end
    end
  end

  assign idle_o = not_busy_q;
  assign busy_o = state_q == Busy;
  assign pushes_next_o = push_next_q;
  assign prev_pop_o = take_o && insn_pop_prev_i;
  assign next_pop_o = take_o && insn_pop_next_i;
  assign prev_push_o = retire_o && push_prev_q;
  assign next_push_o = retire_o && push_next_q;

`ifndef SYNTHESIS
  // verilog_format: off
  assert_done : assert property (@(posedge clk_i) disable iff (!rst_ni) done_i -> state_q == Busy)
  else $error("a stage ended an instruction that it had not begun");
  assert_join : assert property (@(posedge clk_i) disable iff (!rst_ni)
      join_i -> state_q == Busy && !done_i)
  else $error("an instruction joined one that was not in execution");
  assert_no_token_lost : assert property (@(posedge clk_i) disable iff (!rst_ni)
      join_i -> !push_prev_q && !push_next_q && !insn_pop_prev_i && !insn_pop_next_i)
  else $error("an instruction joined another across a token");
  assert_pop : assert property (@(posedge clk_i) disable iff (!rst_ni)
      (prev_pop_o -> prev_valid_i) && (next_pop_o -> next_valid_i))
  else $error("an instruction pops a token that is not there");
  assert_push : assert property (@(posedge clk_i) disable iff (!rst_ni)
      (prev_push_o -> prev_ready_i) && (next_push_o -> next_ready_i))
  else $error("an instruction pushes a token for which there is no room");
  assert_flag : assert property (@(posedge clk_i) disable iff (!rst_ni)
      idle_q == (state_q == Idle) && not_busy_q == (state_q != Busy))
  else $error("vta_sequencer: the flag differs from the state");
  assert_idle : assert property (@(posedge clk_i) disable iff (!rst_ni)
      take_o -> state_q == Idle && insn_valid_i)
  else $error("an instruction was taken before the last one ended");
  cover_full : cover property (@(posedge clk_i) rst_ni && state_q == Push);
  cover_join : cover property (@(posedge clk_i) rst_ni && join_i);
  // verilog_format: on
`endif

endmodule
