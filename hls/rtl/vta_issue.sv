// SPDX-License-Identifier: Apache-2.0
//
// Decides which micro-ops of GEMM and ALU begin in which cycle: one, or two together in one cycle.
//
//   loops -> micro-op buffer -> its word -> indices -> checks -> queue -> issue
//
// Micro-ops come in pairs: the first and second of the instruction, the third and fourth, and so
// on. The two of a pair go together where their destinations are in different banks and
//   GEMM: they multiply the same operands, as those of a reset do, and it is no window GEMM;
//   ALU of two tensors: their sources are in different banks or the same one, and the second's is
//   not the first's result.
// Otherwise the second goes after the first. An ALU micro-op of two tensors takes two cycles,
// together or not: for the sources, then for the destinations.
//
// The stages before the queue never wait: the loops advance while the queue has room for all pairs
// that left them. Everything about a pair that does not depend on time is decided before it is
// queued.
//
// A micro-op's indices are checked in the order micro-op, input, weight, accumulator (ALU:
// destination, source). The first that is past its buffer raises fault_o when its turn comes, and
// nothing follows. Micro-ops before it have gone.
//
// An accumulator is read three cycles before its new value can be read. With the interlock a
// micro-op whose destination (or ALU source) was issued in the last two cycles waits. Without it
// the older update is lost, and micro-ops go one by one: so do the public HLS bitstreams, whose
// losses are those of such a sequence. A window GEMM that writes each accumulator once does not
// wait: what it does not write may have the destinations of others.

module vta_issue
  import vta_pkg::*;
  import vta_registers_pkg::*;
(
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

  // ---- Loops and micro-op buffer ----------------------------------------------------------------
  logic [1:0] nest_valid;
  logic nest_ready;
  logic [UopEndBits-1:0] nest_uop[2];
  index_t nest_dst[2], nest_src[2], nest_wgt[2];

  vta_nest u_nest (
    .clk_i,
    .rst_ni,
    .start_i,
    .uop_bgn_i(nest_i.uop_bgn),
    .uop_end_i(nest_i.uop_end),
    .uop_count_i(nest_i.uop_count),
    .iter_out_i(nest_i.iter_out),
    .iter_in_i(nest_i.iter_in),
    .dst_factor_out_i(nest_i.dst_factor_out),
    .dst_factor_in_i(nest_i.dst_factor_in),
    .src_factor_out_i(nest_i.src_factor_out),
    .src_factor_in_i(nest_i.src_factor_in),
    .wgt_factor_out_i(nest_i.wgt_factor_out),
    .wgt_factor_in_i(nest_i.wgt_factor_in),
    .valid_o(nest_valid),
    .ready_i(nest_ready),
    .uop_index_o(nest_uop),
    .dst_o(nest_dst),
    .src_o(nest_src),
    .wgt_o(nest_wgt)
  );

  // Pairs that left the loops and have not gone. Each has a place in the queue, so that no stage
  // before it waits.
  localparam int unsigned QueueDepth = 8;
  localparam int unsigned PlaceBits = $clog2(QueueDepth);
  logic [PlaceBits:0] pairs_q, pairs_d;
  logic nest_ready_q, pop_q, popped_q;  // the count follows a pop by a cycle
  assign nest_ready = nest_ready_q;
  assign uop_read_o = nest_valid[0] && nest_ready_q;

  always_comb begin
    pairs_d = pairs_q;
    if (uop_read_o != popped_q) pairs_d = uop_read_o ? pairs_q + 1'b1 : pairs_q - 1'b1;
  end

  // The micro-op buffer answers in the cycle after the loops; its words and the loops' sums are
  // there in the next. past: the index is past the buffer.
  logic [1:0] read_valid_q, read_past_q, uop_valid_q, uop_past_q;
  logic on_way_q;  // a pair is between the loops and the queue
  logic [UopEndBits-1:0] read_index_q[2], uop_index_q[2];
  logic [UopBits-1:0] uop_q[2];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pairs_q <= '0;
      nest_ready_q <= 1'b1;
      read_valid_q <= '0;
      uop_valid_q <= '0;
      popped_q <= 1'b0;
    end else begin
      popped_q <= pop_q;
      pairs_q <= pairs_d;
      nest_ready_q <= pairs_d != (PlaceBits + 1)'(QueueDepth);
      read_valid_q <= uop_read_o ? nest_valid : '0;
      uop_valid_q <= read_valid_q;
    end
  end

  for (genvar n = 0; n < 2; n++) begin : g_uop
    assign uop_index_o[n] = LogUopDepth'(nest_uop[n]);

    always_ff @(posedge clk_i) begin
      if (uop_read_o) begin
        read_index_q[n] <= nest_uop[n];
        read_past_q[n] <= (nest_uop[n] >> LogUopDepth) != '0;
      end
      if (read_valid_q[0]) begin
        uop_index_q[n] <= read_index_q[n];
        uop_past_q[n] <= read_past_q[n];
        uop_q[n] <= uop_i[n];
      end
    end

    logic [UopBits-1:0] unused_uop;  // its fields need not fill the word
    assign unused_uop = uop_q[n];
  end

  logic [WgtFactorBits+19:0] unused_nest;  // the operation on accumulators does not matter here
  assign unused_nest = {nest_i.reset, nest_i.skip_out, nest_i.alu_opcode, nest_i.imm};

  // ---- Indices ----------------------------------------------------------------------------------
  logic [1:0] index_valid_q, past_q;
  // dst: of one that is past the buffer the micro-op's own
  index_t dst_index_q[2], src_index_q[2], wgt_index_q[2];

  always_ff @(posedge clk_i) begin
    index_valid_q <= rst_ni ? uop_valid_q : '0;
    if (uop_valid_q[0]) begin
      past_q <= uop_past_q;
      for (int n = 0; n < 2; n++) begin
        dst_index_q[n] <= (uop_past_q[n] ? index_t'(uop_index_q[n]) : nest_dst[n])
            + (uop_past_q[n] ? '0 : index_t'(uop_q[n][UopDstBits-1:0]));
        src_index_q[n] <= nest_src[n] + index_t'(uop_q[n][UopSrcLsb+:UopSrcBits]);
        wgt_index_q[n] <= nest_wgt[n] + index_t'(uop_q[n][UopWgtLsb+:UopWgtBits]);
      end
    end
  end

  // ---- Checks -----------------------------------------------------------------------------------
  // Kinds are registered: they hold still from the cycle after start_i.
  logic two_tensors_q, gemm_q, window_q;
  always_ff @(posedge clk_i) begin
    gemm_q <= gemm_i;
    two_tensors_q <= !gemm_i && !nest_i.use_imm;
    window_q <= nest_i.window;
  end

  // Whether what a window GEMM writes goes up from one micro-op to the next.
  logic rising_q;
  index_t row_step_q;
  always_ff @(posedge clk_i) begin
    row_step_q <= nest_i.dst_factor_out + index_t'(nest_i.skip_in);
    rising_q <= Window && window_q && nest_i.dst_factor_in == index_t'(1)
        && row_step_q >= index_t'(nest_i.iter_in);
  end

  // Whether a micro-op has a fault. Which is told of the first one of the instruction, a cycle
  // later.
  typedef struct packed {
    logic uop;
    logic inp;
    logic wgt;
    logic dst;
    logic src;
  } past_t;
  past_t [1:0] past, past_1_q;
  logic [1:0] faults, faults_1_q;
  index_t dst_index_1_q[2], src_index_1_q[2], wgt_index_1_q[2];
  always_comb begin
    past = '0;
    for (int n = 0; n < 2; n++) begin
      if (index_valid_q[n]) begin
        past[n].uop = past_q[n];
        past[n].inp = gemm_q && (src_index_q[n] >> LogInpDepth) != '0;
        past[n].wgt = gemm_q && (wgt_index_q[n] >> LogWgtDepth) != '0;
        past[n].dst = (dst_index_q[n] >> LogAccDepth) != '0;
        past[n].src = two_tensors_q && (src_index_q[n] >> LogAccDepth) != '0;
      end
      faults[n] = past[n] != '0;
    end
  end

  logic fault_seen_q;
  fault_e fault_code_q;
  index_t fault_index_q;
  logic faulty;  // which of the two
  assign faulty = !faults_1_q[0];
  fault_e fault_code[2];
  index_t fault_index[2];
  always_comb begin
    for (int n = 0; n < 2; n++) begin
      fault_code[n] = FaultAcc;
      fault_index[n] = dst_index_1_q[n];
      if (past_1_q[n].uop) begin
        fault_code[n] = FaultUop;
      end else if (past_1_q[n].inp) begin
        fault_code[n] = FaultInp;
        fault_index[n] = src_index_1_q[n];
      end else if (past_1_q[n].wgt) begin
        fault_code[n] = FaultWgt;
        fault_index[n] = wgt_index_1_q[n];
      end else if (!past_1_q[n].dst) begin
        fault_index[n] = src_index_1_q[n];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (faults_1_q != '0 && !fault_seen_q) begin
      fault_seen_q <= 1'b1;
      fault_code_q <= fault_code[faulty];
      fault_index_q <= fault_index[faulty];
    end
    faults_1_q <= faults;
    if (index_valid_q[0] && !fault_seen_q) begin
      past_1_q <= past;
      for (int n = 0; n < 2; n++) begin
        dst_index_1_q[n] <= dst_index_q[n];
        src_index_1_q[n] <= src_index_q[n];
        wgt_index_1_q[n] <= wgt_index_q[n];
      end
    end
    if (!rst_ni || start_i) begin
      fault_seen_q <= 1'b0;
      faults_1_q <= '0;
    end
  end

  // Two micro-ops with all that can be said of them beforehand. Indices are within their buffers
  // unless there is a fault.
  localparam int unsigned SrcBits = LogAccDepth > LogInpDepth ? LogAccDepth : LogInpDepth;
  typedef logic [LogAccDepth-1:0] dst_t;
  typedef logic [SrcBits-1:0] src_t;
  typedef logic [LogWgtDepth-1:0] wgt_t;
  typedef struct packed {
    logic [1:0] valid;
    logic [1:0] fault;
    // the two may go in one cycle, if the second need not wait and has no fault
    logic       may_pair;
    // Whether a micro-op reads the destination of one of before_q, and whether the second reads
    // that of the first.
    logic [1:0][3:0] conflicts;
    logic       second_conflicts;
    dst_t [1:0] dst;
    src_t [1:0] src;
    wgt_t [1:0] wgt;
  } pair_t;

  // The destinations of the two pairs before, the nearer one first, and whether there were such.
  dst_t before_q[4];
  logic [3:0] before_valid_q;

  pair_t checked, checked_q;
  logic same_operands, sources_fit;
  always_comb begin
    checked = '0;
    same_operands = 1'b0;
    sources_fit = 1'b0;
    if (index_valid_q[0]) begin
      checked.valid = index_valid_q;
      checked.fault = faults;
      for (int n = 0; n < 2; n++) begin
        checked.dst[n] = dst_t'(dst_index_q[n]);
        checked.src[n] = src_t'(src_index_q[n]);
        checked.wgt[n] = wgt_t'(wgt_index_q[n]);
      end
      same_operands = src_t'(src_index_q[0]) == src_t'(src_index_q[1])
          && wgt_t'(wgt_index_q[0]) == wgt_t'(wgt_index_q[1]);
      sources_fit = dst_t'(src_index_q[1]) != dst_t'(dst_index_q[0])
          && (src_index_q[0][0] != src_index_q[1][0]
              || dst_t'(src_index_q[0]) == dst_t'(src_index_q[1]));
      checked.may_pair = HazardInterlock && index_valid_q[1]
          && dst_index_q[0][0] != dst_index_q[1][0] && !window_q
          && (gemm_q ? same_operands : !two_tensors_q || sources_fit);
      if (HazardInterlock && !rising_q) begin
        for (int n = 0; n < 2; n++) begin
          for (int m = 0; m < 4; m++) begin
            checked.conflicts[n][m] = before_valid_q[m] &&
                reads(checked.dst[n], dst_t'(checked.src[n]), before_q[m]);
          end
        end
        checked.second_conflicts = reads(checked.dst[1], dst_t'(checked.src[1]), checked.dst[0]);
      end
    end
  end

  function automatic logic reads(input dst_t dst, input dst_t src, input dst_t earlier);
    return dst == earlier || (two_tensors_q && src == earlier);
  endfunction

  always_ff @(posedge clk_i) begin
    if (index_valid_q[0]) begin
      before_q[0] <= checked.dst[0];
      before_q[1] <= checked.dst[1];
      before_q[2] <= before_q[0];
      before_q[3] <= before_q[1];
      before_valid_q <= {before_valid_q[1:0], index_valid_q};
    end
    if (!rst_ni || start_i) before_valid_q <= '0;
    if (index_valid_q[0]) checked_q <= checked;
    checked_q.valid <= rst_ni ? index_valid_q : '0;
  end

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
  assign fault_code_o = fault_code_q;
  assign fault_index_o = fault_index_q;
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

  always_ff @(posedge clk_i)
    on_way_q <= rst_ni && (uop_read_o || read_valid_q[0] || uop_valid_q[0] || index_valid_q[0]);
  assign busy_o = nest_valid[0] || on_way_q || queued_any_q || head_q.valid[0];

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
      queued_any_q == (queued_q != '0)
      && on_way_q == (read_valid_q[0] || uop_valid_q[0] || index_valid_q[0] || push))
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

  // The interlock by the rows themselves: nothing goes to a destination of the last two cycles.
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
        HazardInterlock && dst_banks[bank] && !rising_q ->
        !(dst_q_o[bank] && dst_row_q[bank] == next_row[bank])
        && !(issued_2_q[bank] && issued_row_2_q[bank] == next_row[bank]))
    else $error("a destination was issued within two cycles of itself");
  end

  cover_pair : cover property (@(posedge clk_i) rst_ni && dst_issue_q && pair_q);
  cover_wait : cover property (@(posedge clk_i) rst_ni && head_q.valid[0] && !fault_o && !go_q);
  cover_full : cover property (@(posedge clk_i) rst_ni && nest_valid[0] && !nest_ready_q);
  // verilog_format: on
`endif

endmodule
