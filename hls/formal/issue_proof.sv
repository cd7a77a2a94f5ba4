// SPDX-License-Identifier: Apache-2.0
//
// vta_issue with vta_pairs and vta_nest, eight accumulators, and instructions of at most four
// micro-ops: each goes once, in order, and none reads an accumulator (as its destination or as a
// source) within two cycles after one that changes it. An accumulator is read three cycles before it
// has its new value, so no update is lost.
//
// One accumulator is followed. The solver chooses it, the kind of the instruction and its micro-ops.
// The loops are one iteration, unless Loops is set, which takes the solver very long: random programs
// have them. With passes_proof (what joins a chain or folds goes over each accumulator
// once) and first_use_proof (what folds is cleared once, before the first sum) this is so of what
// changes the order of instructions, too.

module issue_proof
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  parameter int unsigned Most  = 4,    // micro-ops that go
  parameter bit          Loops = 1'b0,  // else one iteration
  `include "vta_parameters.svh"
) (
  input logic                           clk_i,
  input logic                           rst_ni,
  input logic                           start_i,
  input logic                           hold_next_i,
  // Chosen in the first cycle.
  input logic                           gemm_i,
  input nest_t                          nest_i,
  input logic [UopDepth-1:0][UopBits-1:0] uops_i,
  input logic [LogAccDepth-1:0]         watch_i
);

  typedef logic [6:0] small_t;  // an index: no sum is larger here

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  logic gemm_q, begun_q, began_q;
  nest_t nest_q;
  logic [UopDepth-1:0][UopBits-1:0] uops_q;
  logic [LogAccDepth-1:0] watch_q;
  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      gemm_q <= gemm_i;
      // Few bits of each, so that the solver has little to multiply.
      nest_q <= '{
          reset: nest_i.reset,
          uop_bgn: '0,  // micro-ops may be anything
          uop_end: nest_i.uop_end,
          uop_count: nest_i.uop_count,
          iter_out: Loops ? IterBits'(nest_i.iter_out[1:0]) : IterBits'(1),
          iter_in: Loops ? IterBits'(nest_i.iter_in[1:0]) : IterBits'(1),
          dst_factor_out: Loops ? index_t'(nest_i.dst_factor_out[1:0]) : '0,
          dst_factor_in: Loops ? index_t'(nest_i.dst_factor_in[1:0]) : '0,
          src_factor_out: Loops ? index_t'(nest_i.src_factor_out[1:0]) : '0,
          src_factor_in: Loops ? index_t'(nest_i.src_factor_in[1:0]) : '0,
          wgt_factor_out: Loops ? index_t'(nest_i.wgt_factor_out[0]) : '0,
          wgt_factor_in: Loops ? index_t'(nest_i.wgt_factor_in[0]) : '0,
          use_imm: nest_i.use_imm,
          default: '0
      };
      uops_q <= uops_i;
      watch_q <= watch_i;
    end
    begun_q <= rst_ni && (begun_q || start_i);
    began_q <= rst_ni && begun_q;
  end

  logic busy_o, fault_o, uop_read_o, operand_read_o, src_read_o;
  fault_e fault_code_o;
  index_t fault_index_o;
  logic [1:0] count_o;
  logic [LogUopDepth-1:0] uop_index_o[2];
  logic [UopBits-1:0] uop_q[2];
  banks_t dst_o, gemm_o, src_o, src_bank_o;
  rows_t dst_row_o, src_row_o;
  logic [LogInpDepth-1:0] inp_index_o;
  logic [LogWgtDepth-1:0] wgt_index_o;
  for (genvar n = 0; n < 2; n++) begin : g_uop
    always_ff @(posedge clk_i) if (uop_read_o) uop_q[n] <= uops_q[uop_index_o[n]];
  end

  vta_issue #(
    `include "vta_passed.svh"
  ) dut (
    .clk_i,
    .rst_ni,
    .stop_i(1'b0),
    .start_i,
    .gemm_i(gemm_q),
    .nest_i(nest_q),
    .hold_next_i,
    .busy_o,
    .fault_o,
    .fault_code_o,
    .fault_index_o,
    .count_o,
    .uop_read_o,
    .uop_index_o,
    .uop_i(uop_q),
    .dst_o,
    .dst_row_o,
    .gemm_o,
    .operand_read_o,
    .inp_index_o,
    .wgt_index_o,
    .src_o,
    .src_read_o,
    .src_row_o,
    .src_bank_o
  );

  // ---- The instruction's micro-ops, one after the other -----------------------------------------
  logic [3:0] total;
  logic past;  // an index past its buffer
  small_t dst[Most], src[Most], wgt[Most];
  function automatic small_t product(input logic [2:0] iteration, input index_t factor);
    return small_t'({4'd0, iteration} * {5'd0, factor[1:0]});
  endfunction
  always_comb begin
    automatic logic [UopEndBits-1:0] uop = '0;
    automatic logic [2:0] out = '0, in = '0;
    total = '0;
    past = 1'b0;
    for (int n = 0; n < Most; n++) begin
      dst[n] = small_t'(uops_q[LogUopDepth'(uop)][UopDstBits-1:0]) + product(out, nest_q.dst_factor_out)
          + product(in, nest_q.dst_factor_in);
      src[n] = small_t'(uops_q[LogUopDepth'(uop)][UopSrcLsb+:UopSrcBits])
          + product(out, nest_q.src_factor_out) + product(in, nest_q.src_factor_in);
      wgt[n] = small_t'(uops_q[LogUopDepth'(uop)][UopWgtLsb+:UopWgtBits])
          + product(out, nest_q.wgt_factor_out) + product(in, nest_q.wgt_factor_in);
      if (out < nest_q.iter_out[2:0]) begin
        total += 1'b1;
        if (dst[n] >= small_t'(AccDepth)
            || (gemm_q && (src[n] >= small_t'(InpDepth) || wgt[n] >= small_t'(WgtDepth)))
            || (!gemm_q && !nest_q.use_imm && src[n] >= small_t'(AccDepth)))
          past = 1'b1;
      end
      uop += 1'b1;
      if (uop == nest_q.uop_end) begin
        uop = '0;
        in += 1'b1;
        if (in == nest_q.iter_in[2:0]) begin
          in = '0;
          out += 1'b1;
        end
      end
    end
  end

  // Those that have gone, as their accumulators show a cycle later.
  logic [3:0] gone_q, gone_1_q;
  logic [1:0] count_q;
  always_ff @(posedge clk_i) begin
    count_q <= rst_ni ? count_o : '0;
    gone_q <= rst_ni ? gone_q + 4'(count_o) : '0;
    gone_1_q <= gone_q;
  end
  banks_t shown;  // of the micro-ops whose turn it was
  logic [LogAccDepth-1:0] one, two;
  assign one = LogAccDepth'(dst[gone_1_q]);
  assign two = LogAccDepth'(dst[gone_1_q+1'b1]);
  always_comb begin
    shown = '0;
    if (count_q != '0) shown[one[0]] = 1'b1;
    if (count_q == 2'd2) shown[two[0]] = 1'b1;
  end

  logic changes, reads, changes_1_q, changes_2_q;  // the accumulator that is followed
  assign changes = dst_o[watch_q[0]] && dst_row_o[watch_q[0]] == LogAccRows'(watch_q >> 1);
  assign reads = changes
      || (src_o[watch_q[0]] && src_row_o[watch_q[0]] == LogAccRows'(watch_q >> 1));
  always_ff @(posedge clk_i) begin
    changes_1_q <= rst_ni && changes;
    changes_2_q <= rst_ni && changes_1_q;
  end

  // The contract: one instruction, of few micro-ops, legal, without a fault.
  always_comb begin
    if (!started_q) assume (!rst_ni);
    if (start_i) assume (rst_ni && started_q && !begun_q);
    if (started_q) begin
      assume (nest_q.uop_bgn < nest_q.uop_end && nest_q.uop_end <= UopEndBits'(UopDepth));
      assume (nest_q.uop_count == {
        nest_q.uop_end - nest_q.uop_bgn == UopEndBits'(3),
        nest_q.uop_end - nest_q.uop_bgn == UopEndBits'(2),
        nest_q.uop_end - nest_q.uop_bgn == UopEndBits'(1)
      });
      assume (nest_q.iter_out != '0 && nest_q.iter_out <= IterBits'(Most));
      assume (nest_q.iter_in != '0 && nest_q.iter_in <= IterBits'(Most));
      assume (8'(nest_q.uop_end - nest_q.uop_bgn) * 8'(nest_q.iter_out) * 8'(nest_q.iter_in)
          <= 8'(Most));
      assume (!past);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      a_apart : assert (!reads || (!changes_1_q && !changes_2_q));
      a_turn : assert (dst_o == shown);
      a_first : assert (count_q == '0 || dst_row_o[one[0]] == LogAccRows'(one >> 1));
      a_second : assert (count_q != 2'd2
          || (one[0] != two[0] && dst_row_o[two[0]] == LogAccRows'(two >> 1)));
      a_operands : assert (gemm_o == '0 || (inp_index_o == LogInpDepth'(src[gone_1_q])
          && wgt_index_o == LogWgtDepth'(wgt[gone_1_q])
          && (count_q != 2'd2 || (src[gone_1_q] == src[gone_1_q+1'b1]
              && wgt[gone_1_q] == wgt[gone_1_q+1'b1]))));
      a_all : assert (!began_q || busy_o || gone_q == total);
      a_no_fault : assert (!fault_o);
    end
    c_all : cover (started_q && rst_ni && began_q && !busy_o && total == 4'(Most));
    c_pair : cover (started_q && rst_ni && count_q == 2'd2 && !gemm_q && !nest_q.use_imm);
  end

endmodule
