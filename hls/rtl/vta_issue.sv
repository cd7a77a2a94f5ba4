// SPDX-License-Identifier: Apache-2.0
//
// Decides which micro-ops of GEMM and ALU begin in which cycle: one, or two together in one cycle.
//
//   loops -> micro-op buffer -> indices -> issue
//
// Micro-ops come in pairs: the first and second of the instruction, the third and fourth, and so on. The two of a pair go
// together where their destinations are in different banks and
//   GEMM: they multiply the same operands, as those of a reset do;
//   ALU of two tensors: their sources are in different banks or the same one, and the second's is not the first's result.
// Otherwise the second goes after the first. An ALU micro-op of two tensors takes two cycles, together or not: for the
// sources, then for the destinations.
//
// A micro-op's indices are checked in the order micro-op, input, weight, accumulator (ALU: destination, source); the
// first that is past its buffer raises fault_o and nothing follows. Micro-ops before it have gone.
//
// An accumulator is read three cycles before its new value can be read. With the interlock a micro-op whose
// destination (or ALU source) was issued in the last two cycles waits. Without it the older update is lost, and
// micro-ops go one by one: so do the public HLS bitstreams, whose losses are those of such a sequence.

module vta_issue
  import vta_pkg::*;
  import vta_registers_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   stop_i,  // another fault: issue nothing more
  input  logic                   start_i,
  input  logic                   gemm_i,  // else ALU
  input  nest_t                  nest_i,  // holds still from start_i until all have gone
  input  logic                   hold_i,  // issue nothing yet
  output logic                   busy_o,  // a micro-op has yet to go
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output index_t                 fault_index_o,
  // Micro-op buffer, one cycle.
  output logic                   uop_read_o,
  output logic [LogUopDepth-1:0] uop_index_o[2],
  input  logic [    UopBits-1:0] uop_i[2],
  // The banks of destinations that go, with their rows; GEMM: their operands.
  output banks_t                 dst_o,
  output rows_t                  dst_row_o,
  output logic [LogInpDepth-1:0] inp_index_o,
  output logic [LogWgtDepth-1:0] wgt_index_o,
  // The banks of sources that go in the cycle before their destinations; for each bank of a destination that of its
  // source.
  output banks_t                 src_o,
  output rows_t                  src_row_o,
  output banks_t                 src_bank_o
);

  // ---- Loops and micro-op buffer -------------------------------------------------------------------------------------------
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

  logic [1:0] uop_valid_q, uop_past_q;  // past: the index is past the buffer, and is in uop_dst_q
  logic uop_ready;
  index_t uop_dst_q[2], uop_src_q[2], uop_wgt_q[2];
  assign nest_ready = !uop_valid_q[0] || uop_ready;
  assign uop_read_o = nest_valid[0] && nest_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) uop_valid_q <= '0;
    else if (nest_ready) uop_valid_q <= nest_valid;
  end

  for (genvar n = 0; n < 2; n++) begin : g_uop
    logic past;
    assign past = nest_uop[n] >= UopEndBits'(UopDepth);
    assign uop_index_o[n] = LogUopDepth'(nest_uop[n]);

    always_ff @(posedge clk_i) begin
      if (uop_read_o) begin
        uop_past_q[n] <= past;
        uop_dst_q[n] <= past ? index_t'(nest_uop[n]) : nest_dst[n];
        uop_src_q[n] <= nest_src[n];
        uop_wgt_q[n] <= nest_wgt[n];
      end
    end

    logic [UopBits-1:0] unused_uop;  // its fields need not fill the word
    assign unused_uop = uop_i[n];
  end

  logic [19:0] unused_nest;  // the operation on the accumulators does not matter here
  assign unused_nest = {nest_i.reset, nest_i.alu_opcode, nest_i.imm};

  // ---- Indices ---------------------------------------------------------------------------------------------------------------
  logic [1:0] index_valid_q, past_q;
  index_t dst_q[2], src_q[2], wgt_q[2];
  logic dst_issue, pair;
  assign uop_ready = !index_valid_q[0] || (dst_issue && (pair || !index_valid_q[1]));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) index_valid_q <= '0;
    else if (uop_ready) index_valid_q <= uop_valid_q;
    else if (dst_issue) index_valid_q <= 2'b01;
    if (uop_ready && uop_valid_q[0]) begin
      past_q <= uop_past_q;
      for (int n = 0; n < 2; n++) begin
        dst_q[n] <= uop_dst_q[n] + (uop_past_q[n] ? '0 : index_t'(uop_i[n][UopDstBits-1:0]));
        src_q[n] <= uop_src_q[n] + index_t'(uop_i[n][UopSrcLsb+:UopSrcBits]);
        wgt_q[n] <= uop_wgt_q[n] + index_t'(uop_i[n][UopWgtLsb+:UopWgtBits]);
      end
    end else if (dst_issue) begin
      past_q[0] <= past_q[1];
      dst_q[0] <= dst_q[1];
      src_q[0] <= src_q[1];
      wgt_q[0] <= wgt_q[1];
    end
  end

  logic two_tensors;
  assign two_tensors = !gemm_i && !nest_i.use_imm;

  always_comb begin
    fault_code_o = FaultNone;
    fault_index_o = dst_q[0];
    if (past_q[0]) begin
      fault_code_o = FaultUop;
    end else if (gemm_i && src_q[0] >= index_t'(InpDepth)) begin
      fault_code_o = FaultInp;
      fault_index_o = src_q[0];
    end else if (gemm_i && wgt_q[0] >= index_t'(WgtDepth)) begin
      fault_code_o = FaultWgt;
      fault_index_o = wgt_q[0];
    end else if (dst_q[0] >= index_t'(AccDepth)) begin
      fault_code_o = FaultAcc;
    end else if (two_tensors && src_q[0] >= index_t'(AccDepth)) begin
      fault_code_o = FaultAcc;
      fault_index_o = src_q[0];
    end
  end
  assign fault_o = index_valid_q[0] && fault_code_o != FaultNone;

  // ---- Issue ------------------------------------------------------------------------------------------------------------------
  // Destinations issued one and two cycles ago.
  banks_t issued_1_q, issued_2_q;
  rows_t issued_row_1_q, issued_row_2_q;

  function automatic logic pending(input logic [LogAccDepth-1:0] index, input banks_t issued, input rows_t row);
    return (index[0] ? issued[1] : issued[0]) && (index[0] ? row[1] : row[0]) == index[LogAccDepth-1:1];
  endfunction

  logic [LogAccDepth-1:0] dst[2], src[2];
  logic [1:0] waits;
  for (genvar n = 0; n < 2; n++) begin : g_wait
    assign dst[n] = LogAccDepth'(dst_q[n]);
    assign src[n] = LogAccDepth'(src_q[n]);
    always_comb begin
      waits[n] = pending(dst[n], issued_1_q, issued_row_1_q) || pending(dst[n], issued_2_q, issued_row_2_q);
      if (two_tensors) begin
        waits[n] = waits[n] || pending(src[n], issued_1_q, issued_row_1_q) || pending(src[n], issued_2_q, issued_row_2_q);
      end
    end
  end

  logic can_pair, pair_q, src_phase_q;
  always_comb begin
    can_pair = 1'b0;
    if (HazardInterlock && dst[0][0] != dst[1][0]) begin
      can_pair = index_valid_q[1] && !past_q[1] && !waits[1] && dst_q[1] < index_t'(AccDepth)
          && (gemm_i ? src_q[0] == src_q[1] && wgt_q[0] == wgt_q[1]
                     : !two_tensors || (src_q[1] < index_t'(AccDepth) && src[1] != dst[0]
                                        && (src[0][0] != src[1][0] || src[0] == src[1])));
    end
  end
  assign pair = src_phase_q ? pair_q : can_pair;

  logic go, src_issue;
  assign go = index_valid_q[0] && fault_code_o == FaultNone && !(HazardInterlock && waits[0]) && !hold_i && !stop_i;
  assign src_issue = go && two_tensors && !src_phase_q;
  assign dst_issue = go && !src_issue;

  // By bank, the odd one first: the first micro-op's row and the second's, if that goes too.
  logic [LogAccRows-1:0] dst_row[2], src_row[2];
  for (genvar n = 0; n < 2; n++) begin : g_row
    assign dst_row[n] = LogAccRows'(dst[n] >> 1);
    assign src_row[n] = LogAccRows'(src[n] >> 1);
  end

  function automatic banks_t bank_of(input logic odd);
    return odd ? 2'b10 : 2'b01;
  endfunction

  assign dst_row_o = dst[0][0] ? {dst_row[0], dst_row[1]} : {dst_row[1], dst_row[0]};
  assign src_row_o = src[0][0] ? {src_row[0], src_row[1]} : {src_row[1], src_row[0]};
  assign src_bank_o = dst[0][0] ? {src[0][0], src[1][0]} : {src[1][0], src[0][0]};

  always_comb begin
    dst_o = '0;
    src_o = '0;
    if (dst_issue) dst_o = pair ? 2'b11 : bank_of(dst[0][0]);
    if (src_issue) src_o = pair ? bank_of(src[0][0]) | bank_of(src[1][0]) : bank_of(src[0][0]);
  end
  assign inp_index_o = LogInpDepth'(src_q[0]);
  assign wgt_index_o = LogWgtDepth'(wgt_q[0]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      issued_1_q <= '0;
      issued_2_q <= '0;
      src_phase_q <= 1'b0;
    end else begin
      issued_1_q <= dst_o;
      issued_2_q <= issued_1_q;
      if (go) src_phase_q <= src_issue;
    end
    if (dst_issue) issued_row_1_q <= dst_row_o;
    issued_row_2_q <= issued_row_1_q;
    if (src_issue) pair_q <= pair;
  end

  assign busy_o = nest_valid[0] || uop_valid_q[0] || index_valid_q[0];

endmodule
