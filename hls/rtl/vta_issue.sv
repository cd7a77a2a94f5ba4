// SPDX-License-Identifier: Apache-2.0
//
// Decides which micro-ops of GEMM and ALU begin in which cycle: one, or two together in one cycle.
//
//   cycle  stage    in         what is there
//   T+2    loops    vta_pairs  index of the micro-op; read of the micro-op buffer
//   T+3    word     vta_pairs  the micro-op's word; the loops' sums for its fields
//   T+4    indices  vta_pairs  fields and sums added
//   T+5    checks   vta_pairs  bounds, hazards with the pairs before, whether the two may pair
//   T+6    pair     here       the pair, and whether it goes next; places in the queue
//   T+7    issue    here       head_q and what of it goes: go_q, pair_q, src_issue_q, dst_issue_q
//   T+8    read     outputs    banks and rows of accumulators, addresses of inputs and weights
//
// for the first micro-ops of an instruction that is taken in cycle T (docs/microarchitecture.md).
// The stages before the queue never wait: the loops advance while the queue has room for all pairs
// that left them. A pair waits in the queue, and at its head. Everything about it that does not
// depend on time is decided before: what follows depends on what went in the last two cycles.
//
// The two of a pair go together if they may, and neither waits; otherwise the second goes after the
// first. An ALU micro-op of two tensors takes two cycles, together or not: for the sources, then
// for the destinations.
//
// The first micro-op with an index past its buffer raises fault_o when its turn comes, and nothing
// follows. Micro-ops before it have gone.
//
// An accumulator is read three cycles before its new value can be read. With the interlock a
// micro-op whose destination (or ALU source) was issued in the last two cycles waits. Without it
// the older update is lost, and micro-ops go one by one: so do the public HLS bitstreams, whose
// losses are those of such a sequence. A window GEMM that writes each accumulator once does not
// wait: what it does not write may have the destinations of others.

module vta_issue
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   stop_i,  // another fault: issue nothing from the next cycle on
  input  logic                   start_i,
  input  logic                   gemm_i,  // else ALU
  input  nest_t                  nest_i,  // holds still from start_i until all have gone
  input  logic                   hold_next_i,  // issue nothing in the next cycle
  output logic                   busy_o,  // a micro-op has yet to go
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output index_t                 fault_index_o,
  output logic [            1:0] count_o,  // micro-ops whose destinations go
  // Micro-op buffer, one cycle.
  output logic                   uop_read_o,
  output logic [LogUopDepth-1:0] uop_index_o[2],
  input  logic [    UopBits-1:0] uop_i[2],
  // All from here on a cycle after they go. The banks of destinations that go, with their rows;
  // GEMM: their operands.
  output banks_t                 dst_o,
  output rows_t                  dst_row_o,
  output banks_t                 gemm_o,         // dst_o of a GEMM
  output logic                   operand_read_o,  // gemm_o has a bank
  output logic [LogInpDepth-1:0] inp_index_o,
  output logic [LogWgtDepth-1:0] wgt_index_o,
  // The banks of sources that go in the cycle before their destinations; for each bank of a
  // destination that of its source.
  output banks_t                 src_o,
  output logic                   src_read_o,      // src_o has a bank
  output rows_t                  src_row_o,
  output banks_t                 src_bank_o
);

  // ---- Pairs ------------------------------------------------------------------------------------
  // Pairs that left the loops and have not gone. Each has a place in the queue, so that no stage
  // before it waits.
  localparam int unsigned QueueDepth = 8;
  localparam int unsigned PlaceBits = $clog2(QueueDepth);
  logic [PlaceBits:0] pairs_q, pairs_d;
  logic nest_ready_q, pop_q, popped_q;  // the count follows a pop by a cycle

  always_comb begin
    pairs_d = pairs_q;
    if (uop_read_o != popped_q) pairs_d = uop_read_o ? pairs_q + 1'b1 : pairs_q - 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pairs_q <= '0;
      nest_ready_q <= 1'b1;
      popped_q <= 1'b0;
    end else begin
      popped_q <= pop_q;
      pairs_q <= pairs_d;
      nest_ready_q <= pairs_d != (PlaceBits + 1)'(QueueDepth);
    end
  end

  pair_t checked_q;  // a register of vta_pairs
  logic pairs_busy, gemm_q, two_tensors_q;

  vta_pairs #(
    `include "vta_passed.svh"
  ) u_pairs (
    .clk_i,
    .rst_ni,
    .start_i,
    .gemm_i,
    .nest_i,
    .gemm_o(gemm_q),
    .two_tensors_o(two_tensors_q),
    .uop_read_o,
    .uop_index_o,
    .uop_i,
    .ready_i(nest_ready_q),
    .busy_o(pairs_busy),
    .pair_o(checked_q),
    .fault_code_o,
    .fault_index_o
  );

  // ---- Queue ------------------------------------------------------------------------------------
  // The head is a register. A pair that finds the queue empty and the head free goes there at once.
  // It is written to the queue all the same, where the next one takes its place.
  pair_t queue[QueueDepth];
  pair_t head_q, next;
  logic next_valid;
  logic [PlaceBits-1:0] write_q, read_q;
  logic [PlaceBits:0] queued_q;  // without the head
  logic queued_any_q, push, enqueue, dequeue, head_free;
  assign push = checked_q.valid[0];
  assign head_free = !head_q.valid[0] || pop_q;
  assign dequeue = queued_any_q && head_free;
  assign enqueue = push && (queued_any_q || !head_free);
  assign next_valid = queued_any_q || push;
  always_comb begin
    next = checked_q;
    if (queued_any_q) next = queue[read_q];
  end

  always_ff @(posedge clk_i) begin
    if (head_free) head_q <= next;
    if (push) queue[write_q] <= checked_q;
    if (enqueue) write_q <= write_q + 1'b1;
    if (dequeue) read_q <= read_q + 1'b1;
    if (enqueue != dequeue) begin
      queued_q <= enqueue ? queued_q + 1'b1 : queued_q - 1'b1;
      queued_any_q <= enqueue || queued_q != (PlaceBits + 1)'(1);
    end
    if (!rst_ni) begin
      head_q.valid <= '0;
      write_q <= '0;
      read_q <= '0;
      queued_q <= '0;
      queued_any_q <= 1'b0;
    end
  end

  // ---- Issue ------------------------------------------------------------------------------------
  // All that an issue depends on is a register. Of the head:
  logic second_q;      // its first micro-op has gone alone
  logic go_q;          // its next micro-op goes: no fault, no hazard, nobody stops it
  logic pair_q;        // with it goes the second
  logic goes_whole_q;  // and then the head has gone
  logic src_phase_q;   // the sources went in the last cycle
  // Of these: sources go; destinations go; and with them the head (pop_q).
  logic src_issue_q, dst_issue_q;

  assign fault_o = head_q.valid[0] && (second_q ? head_q.fault[1] : head_q.fault[0]);
  assign count_o = dst_issue_q ? (pair_q ? 2'd2 : 2'd1) : 2'd0;

  // Which destinations were issued in the last two cycles, in the order of before_q: those that the
  // head meets in the next cycle, and those that the pair after it meets if the head goes now.
  // last_q: of the pair before the head, those issued in the last cycle; first_last_q: the head's
  // first.
  logic [1:0] last_q;
  logic first_last_q;
  logic [3:0] head_recent, next_recent;
  assign head_recent = {2'b00, last_q};
  assign next_recent = head_q.valid[0] ? {last_q, head_q.valid[1], !second_q || first_last_q}
      : head_recent;

  logic [1:0] head_waits, next_waits;
  for (genvar n = 0; n < 2; n++) begin : g_waits
    assign head_waits[n] = (head_q.conflicts[n] & head_recent) != '0;
    assign next_waits[n] = (next.conflicts[n] & next_recent) != '0;
  end

  logic can_go_d, pair_d, goes_whole_d, second_d;
  always_comb begin
    second_d = 1'b0;
    if (head_free) begin
      can_go_d = next_valid && !next.fault[0] && !next_waits[0];
      pair_d = next.may_pair && !next.fault[1] && !next_waits[1];
      goes_whole_d = pair_d || !next.valid[1];
    end else if (dst_issue_q || second_q) begin
      second_d = 1'b1;
      can_go_d = !head_q.fault[1] && !head_waits[1]
          && !(head_q.second_conflicts && (dst_issue_q || first_last_q));
      pair_d = 1'b0;
      goes_whole_d = 1'b1;
    end else begin
      can_go_d = !head_q.fault[0] && !head_waits[0];
      pair_d = src_issue_q || src_phase_q ? pair_q : head_q.may_pair && !head_q.fault[1]
          && !head_waits[1];
      goes_whole_d = pair_d || !head_q.valid[1];
    end
  end

  logic go_d, src_phase_d, dst_issue_d;
  assign go_d = can_go_d && !hold_next_i && !stop_i;
  assign src_phase_d = go_q ? src_issue_q : src_phase_q;
  assign dst_issue_d = go_d && (!two_tensors_q || src_phase_d);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      src_issue_q <= 1'b0;
      dst_issue_q <= 1'b0;
      pop_q <= 1'b0;
      go_q <= 1'b0;
      second_q <= 1'b0;
      src_phase_q <= 1'b0;
      last_q <= '0;
      first_last_q <= 1'b0;
    end else begin
      src_issue_q <= go_d && two_tensors_q && !src_phase_d;
      dst_issue_q <= dst_issue_d;
      pop_q <= dst_issue_d && goes_whole_d;
      go_q <= go_d;
      second_q <= second_d;
      src_phase_q <= src_phase_d;
      last_q <= pop_q ? {head_q.valid[1], !second_q} : '0;
      first_last_q <= dst_issue_q && !pop_q;
    end
    pair_q <= pair_d;
    goes_whole_q <= goes_whole_d;
  end

  // The micro-op whose turn it is, and its companion if the two go together.
  dst_t dst[2], src[2];
  assign dst[0] = second_q ? head_q.dst[1] : head_q.dst[0];
  assign dst[1] = head_q.dst[1];
  assign src[0] = dst_t'(second_q ? head_q.src[1] : head_q.src[0]);
  assign src[1] = dst_t'(head_q.src[1]);

  // By bank, the odd one first: the first micro-op's row and the second's, if that goes too.
  logic [LogAccRows-1:0] dst_row[2], src_row[2];
  for (genvar n = 0; n < 2; n++) begin : g_row
    assign dst_row[n] = LogAccRows'(dst[n] >> 1);
    assign src_row[n] = LogAccRows'(src[n] >> 1);
  end

  function automatic banks_t bank_of(input logic odd);
    return odd ? 2'b10 : 2'b01;
  endfunction

  banks_t dst_banks, src_banks;
  always_comb begin
    dst_banks = '0;
    src_banks = '0;
    if (dst_issue_q) dst_banks = pair_q ? 2'b11 : bank_of(dst[0][0]);
    if (src_issue_q)
      src_banks = pair_q ? bank_of(src[0][0]) | bank_of(src[1][0]) : bank_of(src[0][0]);
  end

  // Those of a GEMM are registers of their own: the enable of the input and weight buffers drives
  // every block of them.
  banks_t dst_q_o, gemm_q_o, src_q_o, src_bank_q;
  logic operand_read_q, src_read_q;
  rows_t dst_row_q, src_row_q;
  logic [LogInpDepth-1:0] inp_read_q;
  logic [LogWgtDepth-1:0] wgt_read_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dst_q_o <= '0;
      gemm_q_o <= '0;
      operand_read_q <= 1'b0;
      src_q_o <= '0;
      src_read_q <= 1'b0;
    end else begin
      dst_q_o <= dst_banks;
      gemm_q_o <= gemm_q ? dst_banks : '0;
      operand_read_q <= gemm_q && dst_issue_q;
      src_q_o <= src_banks;
      src_read_q <= src_issue_q;
    end
    dst_row_q <= dst[0][0] ? {dst_row[0], dst_row[1]} : {dst_row[1], dst_row[0]};
    src_row_q <= src[0][0] ? {src_row[0], src_row[1]} : {src_row[1], src_row[0]};
    src_bank_q <= dst[0][0] ? {src[0][0], src[1][0]} : {src[1][0], src[0][0]};
    inp_read_q <= LogInpDepth'(second_q ? head_q.src[1] : head_q.src[0]);
    wgt_read_q <= second_q ? head_q.wgt[1] : head_q.wgt[0];
  end

  assign dst_o = dst_q_o;
  assign dst_row_o = dst_row_q;
  assign gemm_o = gemm_q_o;
  assign operand_read_o = operand_read_q;
  assign src_o = src_q_o;
  assign src_read_o = src_read_q;
  assign src_row_o = src_row_q;
  assign src_bank_o = src_bank_q;
  assign inp_index_o = inp_read_q;
  assign wgt_index_o = wgt_read_q;

  assign busy_o = pairs_busy || queued_any_q || head_q.valid[0];

`ifndef SYNTHESIS
  // verilog_format: off
  assert_room : assert property (@(posedge clk_i) disable iff (!rst_ni)
      enqueue -> queued_q != (PlaceBits + 1)'(QueueDepth))
  else $error("a pair of micro-ops found no room in its queue");
  assert_count : assert property (@(posedge clk_i) disable iff (!rst_ni)
      pairs_q >= queued_q + (PlaceBits + 1)'(head_q.valid[0]))
  else $error("vta_issue lost count of its pairs");
  assert_go : assert property (@(posedge clk_i) disable iff (!rst_ni)
      go_q -> head_q.valid[0] && !fault_o)
  else $error("a micro-op goes that is not there, or has a fault");
  assert_any : assert property (@(posedge clk_i) disable iff (!rst_ni)
      queued_any_q == (queued_q != '0))
  else $error("vta_issue lost count of its queue");
  assert_second : assert property (@(posedge clk_i) disable iff (!rst_ni)
      head_q.valid != 2'b10 && (!second_q || head_q.valid == 2'b11))
  else $error("the second micro-op of a pair without the first");
  assert_pair : assert property (@(posedge clk_i) disable iff (!rst_ni)
      dst_issue_q && pair_q -> head_q.valid == 2'b11 && head_q.fault == '0 && dst[0][0] != dst[1][0])
  else $error("two micro-ops went together that may not");
  assert_gemm : assert property (@(posedge clk_i) disable iff (!rst_ni)
      operand_read_q == (gemm_q_o != '0) && src_read_q == (src_q_o != '0) && (dst_q_o != '0 -> gemm_q_o == (gemm_i ? dst_q_o : '0)))
  else $error("vta_issue: what goes is of another kind than its instruction");
  assert_phase : assert property (@(posedge clk_i) disable iff (!rst_ni)
      src_phase_q -> two_tensors_q)
  else $error("a source was read for an instruction that has none");
  assert_issue : assert property (@(posedge clk_i) disable iff (!rst_ni)
      src_issue_q == (go_q && two_tensors_q && !src_phase_q)
          && dst_issue_q == (go_q && !src_issue_q) && pop_q == (dst_issue_q && goes_whole_q))
  else $error("vta_issue: a flag differs from what goes");

  // The interlock by the rows themselves: nothing goes to a destination of the last two cycles, but
  // in a window GEMM that writes each once.
  logic once;
  assign once = nest_i.window && nest_i.dst_factor_in == index_t'(1)
      && nest_i.dst_factor_out + index_t'(nest_i.skip_in) >= index_t'(nest_i.iter_in);
  banks_t issued_2_q;
  rows_t issued_row_2_q;
  always_ff @(posedge clk_i) begin
    issued_2_q <= rst_ni ? dst_q_o : '0;
    issued_row_2_q <= dst_row_q;
  end
  rows_t next_row;
  assign next_row = dst[0][0] ? {dst_row[0], dst_row[1]} : {dst_row[1], dst_row[0]};
  for (genvar bank = 0; bank < AccBanks; bank++) begin : g_interlock
    assert_interlock : assert property (@(posedge clk_i) disable iff (!rst_ni)
        HazardInterlock && dst_banks[bank] && !once ->
        !(dst_q_o[bank] && dst_row_q[bank] == next_row[bank])
        && !(issued_2_q[bank] && issued_row_2_q[bank] == next_row[bank]))
    else $error("a destination was issued within two cycles of itself");
  end

  cover_pair : cover property (@(posedge clk_i) rst_ni && dst_issue_q && pair_q);
  cover_wait : cover property (@(posedge clk_i) rst_ni && head_q.valid[0] && !fault_o && !go_q);
  cover_full : cover property (@(posedge clk_i) rst_ni && pairs_busy && !nest_ready_q);
  // verilog_format: on
`endif

endmodule
