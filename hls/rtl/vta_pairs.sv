// SPDX-License-Identifier: Apache-2.0
//
// Makes the pairs of micro-ops that vta_issue issues: the first and second of the instruction, the
// third and fourth, and so on, with all that can be said of them beforehand. Stages, a cycle each:
//
//   loops    their index; read of the micro-op buffer
//   word     the micro-op's word; the loops' sums for its fields
//   indices  fields and sums added
//   checks   bounds, hazards with the pairs before, whether the two may go together
//   pair_o   all of it
//
// No stage waits. The loops show the next pair while ready_i is high, which promises it a place.
//
// A micro-op's indices are checked in the order micro-op, input, weight, accumulator (ALU:
// destination, source). What is told of the first that is past its buffer stays until start_i.
//
// The two of a pair may go together where their destinations are in different banks and
//   GEMM: they multiply the same operands, as those of a reset do, and it is no window GEMM;
//   ALU of two tensors: their sources are in different banks or the same one, and the second's is
//   not the first's result.

module vta_pairs
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   start_i,
  input  logic                   gemm_i,         // else ALU
  input  nest_t                  nest_i,         // holds still from start_i until all have gone
  output logic                   gemm_o,         // gemm_i of the last cycle
  output logic                   two_tensors_o,  // likewise
  // Micro-op buffer, one cycle.
  output logic                   uop_read_o,
  output logic [LogUopDepth-1:0] uop_index_o[2],
  input  logic [    UopBits-1:0] uop_i[2],
  input  logic                   ready_i,
  output logic                   busy_o,         // a pair has yet to come, or comes
  output pair_t                  pair_o,
  // Of the first micro-op with a fault, from the cycle after its pair.
  output fault_e                 fault_code_o,
  output index_t                 fault_index_o
);

  // ---- Loops and micro-op buffer ----------------------------------------------------------------
  logic [1:0] nest_valid;
  logic [UopEndBits-1:0] nest_uop[2];
  index_t nest_dst[2], nest_src[2], nest_wgt[2];

  vta_nest #(
    `include "vta_passed.svh"
  ) u_nest (
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
    .ready_i,
    .uop_index_o(nest_uop),
    .dst_o(nest_dst),
    .src_o(nest_src),
    .wgt_o(nest_wgt)
  );
  assign uop_read_o = nest_valid[0] && ready_i;

  // The micro-op buffer answers in the cycle after the loops; its words and the loops' sums are
  // there in the next. past: the index is past the buffer.
  logic [1:0] read_valid_q, read_past_q, uop_valid_q, uop_past_q;
  logic on_way_q;  // a pair is between the loops and the queue
  logic [UopEndBits-1:0] read_index_q[2], uop_index_q[2];
  logic [UopBits-1:0] uop_q[2];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_valid_q <= '0;
      uop_valid_q <= '0;
    end else begin
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
    rising_q <= HasWindow && window_q && nest_i.dst_factor_in == index_t'(1)
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

  always_ff @(posedge clk_i)
    on_way_q <= rst_ni && (uop_read_o || read_valid_q[0] || uop_valid_q[0] || index_valid_q[0]);

  assign busy_o = nest_valid[0] || on_way_q;
  assign pair_o = checked_q;
  assign gemm_o = gemm_q;
  assign two_tensors_o = two_tensors_q;
  assign fault_code_o = fault_code_q;
  assign fault_index_o = fault_index_q;

`ifndef SYNTHESIS
  // verilog_format: off
  assert_on_way : assert property (@(posedge clk_i) disable iff (!rst_ni)
      on_way_q == (read_valid_q[0] || uop_valid_q[0] || index_valid_q[0] || checked_q.valid[0]))
  else $error("vta_pairs: the flag differs from its stages");
  assert_valid : assert property (@(posedge clk_i) disable iff (!rst_ni)
      checked_q.valid != 2'b10)
  else $error("the second micro-op of a pair without the first");
  assert_fault : assert property (@(posedge clk_i) disable iff (!rst_ni)
      checked_q.valid[0] && checked_q.fault != '0 -> fault_seen_q || faults_1_q != '0)
  else $error("nothing is told of an index past its buffer");
  cover_fault : cover property (@(posedge clk_i) rst_ni && checked_q.valid[0] && checked_q.fault != '0);
  cover_together : cover property (@(posedge clk_i) rst_ni && checked_q.valid == 2'b11 && checked_q.may_pair);
  // verilog_format: on
`endif

endmodule
