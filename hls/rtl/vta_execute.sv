// Executes GEMM and ALU: one micro-op a cycle, two cycles for an ALU micro-op of two accumulator tensors.
//
//   loops -> micro-op buffer -> indices -> operands -> products -> sums of 4 -> dot -> new accumulator -> write
//            ALU with the same indices:  indices -> accumulator -> new accumulator -> write
//
// A micro-op's indices are checked in the order micro-op, input, weight, accumulator (ALU: destination, source); the
// first that is past its buffer raises fault_o and nothing follows. Micro-ops before it are completed.
//
// An accumulator is read three cycles before it is written can be read again. With the interlock a micro-op whose
// destination (or ALU source) was issued in the last two cycles waits; without it the older update is lost.
//
// done_o marks the last write, or the cycle after start_i when there is no micro-op. Instructions do not overlap.

module vta_execute
  import vta_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   stop_i,  // another fault: issue nothing more
  input  logic                   start_i,
  input  logic                   gemm_i,  // else ALU
  input  nest_t                  nest_i,  // holds still from start_i until done_o
  output logic                   done_o,
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output index_t                 fault_index_o,
  output logic                   gemm_issue_o,  // one GEMM micro-op begins
  // Micro-op buffer, one cycle.
  output logic                   uop_read_o,
  output logic [LogUopDepth-1:0] uop_index_o,
  input  logic [    UopBits-1:0] uop_i,
  // Input and weight buffers, one cycle.
  output logic                   operand_read_o,
  output logic [LogInpDepth-1:0] inp_index_o,
  input  logic [    InpBits-1:0] inp_i,
  output logic [LogWgtDepth-1:0] wgt_index_o,
  input  logic [    WgtBits-1:0] wgt_i,
  // Accumulator, one cycle; its write port also writes the low bytes to the output buffer.
  output logic                   acc_read_o,
  output logic [LogAccDepth-1:0] acc_read_index_o,
  input  logic [    AccBits-1:0] acc_i,
  output logic                   write_o,
  output logic [LogAccDepth-1:0] write_index_o,
  output logic [    AccBits-1:0] acc_o,
  output logic [    OutBits-1:0] out_o
);

  // ---- Loops and micro-op buffer -------------------------------------------------------------------------------------------
  logic nest_valid, nest_ready;
  logic [UopEndBits-1:0] nest_uop;
  index_t nest_dst, nest_src, nest_wgt;

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

  logic uop_valid_q, uop_ready;
  logic uop_past_q;  // its index is past the buffer, and is in uop_dst_q
  index_t uop_dst_q, uop_src_q, uop_wgt_q;
  logic uop_past;
  assign uop_past = nest_uop >= UopEndBits'(UopDepth);
  assign nest_ready = !uop_valid_q || uop_ready;
  assign uop_read_o = nest_valid && nest_ready;
  assign uop_index_o = LogUopDepth'(nest_uop);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) uop_valid_q <= 1'b0;
    else if (nest_ready) uop_valid_q <= nest_valid;
    if (uop_read_o) begin
      uop_past_q <= uop_past;
      uop_dst_q <= uop_past ? index_t'(nest_uop) : nest_dst;
      uop_src_q <= nest_src;
      uop_wgt_q <= nest_wgt;
    end
  end

  logic [UopBits-1:0] unused_uop;  // its fields need not fill the word
  assign unused_uop = uop_i;

  // ---- Indices ---------------------------------------------------------------------------------------------------------------
  logic index_valid_q, index_past_q, index_ready;
  index_t dst_q, src_q, wgt_q;
  assign uop_ready = !index_valid_q || index_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) index_valid_q <= 1'b0;
    else if (uop_ready) index_valid_q <= uop_valid_q;
    if (uop_valid_q && uop_ready) begin
      index_past_q <= uop_past_q;
      dst_q <= uop_dst_q + (uop_past_q ? '0 : index_t'(uop_i[UopDstBits-1:0]));
      src_q <= uop_src_q + index_t'(uop_i[UopSrcLsb+:UopSrcBits]);
      wgt_q <= uop_wgt_q + index_t'(uop_i[UopWgtLsb+:UopWgtBits]);
    end
  end

  always_comb begin
    fault_code_o = FaultNone;
    fault_index_o = dst_q;
    if (index_past_q) begin
      fault_code_o = FaultUop;
    end else if (gemm_i && src_q >= index_t'(InpDepth)) begin
      fault_code_o = FaultInp;
      fault_index_o = src_q;
    end else if (gemm_i && wgt_q >= index_t'(WgtDepth)) begin
      fault_code_o = FaultWgt;
      fault_index_o = wgt_q;
    end else if (dst_q >= index_t'(AccDepth)) begin
      fault_code_o = FaultAcc;
    end else if (!gemm_i && !nest_i.use_imm && src_q >= index_t'(AccDepth)) begin
      fault_code_o = FaultAcc;
      fault_index_o = src_q;
    end
  end
  assign fault_o = index_valid_q && fault_code_o != FaultNone;

  // ---- Issue ------------------------------------------------------------------------------------------------------------------
  logic [LogAccDepth-1:0] dst, src, issued_dst_1_q, issued_dst_2_q;
  logic issued_1_q, issued_2_q;  // a destination was issued one and two cycles ago
  assign dst = LogAccDepth'(dst_q);
  assign src = LogAccDepth'(src_q);

  logic two_tensors, src_phase_q, dst_pending, src_pending, wait_for_write, go, src_issue, dst_issue;
  assign two_tensors = !gemm_i && !nest_i.use_imm;
  assign dst_pending = (issued_1_q && issued_dst_1_q == dst) || (issued_2_q && issued_dst_2_q == dst);
  assign src_pending = (issued_1_q && issued_dst_1_q == src) || (issued_2_q && issued_dst_2_q == src);
  assign wait_for_write = HazardInterlock && (dst_pending || (two_tensors && src_pending));
  assign go = index_valid_q && fault_code_o == FaultNone && !wait_for_write && !stop_i;
  assign src_issue = go && two_tensors && !src_phase_q;
  assign dst_issue = go && !src_issue;
  assign index_ready = dst_issue;
  assign gemm_issue_o = dst_issue && gemm_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      issued_1_q <= 1'b0;
      issued_2_q <= 1'b0;
      src_phase_q <= 1'b0;
    end else begin
      issued_1_q <= dst_issue;
      issued_2_q <= issued_1_q;
      if (go && two_tensors) src_phase_q <= !src_phase_q;
    end
    if (dst_issue) issued_dst_1_q <= dst;
    if (issued_1_q) issued_dst_2_q <= issued_dst_1_q;
  end

  // ---- GEMM: reads its operands at issue and its accumulator three cycles later -----------------------------------------
  localparam int unsigned GemmStages = 5;
  logic [GemmStages:1] gemm_valid_q;
  logic [LogAccDepth-1:0] gemm_dst_1_q, gemm_dst_2_q, gemm_dst_3_q, gemm_dst_4_q, gemm_dst_5_q;
  logic [AccBits-1:0] gemm_sum;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) gemm_valid_q <= '0;
    else gemm_valid_q <= {gemm_valid_q[GemmStages-1:1], gemm_issue_o};
    if (gemm_issue_o || gemm_valid_q != '0) begin
      gemm_dst_1_q <= dst;
      gemm_dst_2_q <= gemm_dst_1_q;
      gemm_dst_3_q <= gemm_dst_2_q;
      gemm_dst_4_q <= gemm_dst_3_q;
      gemm_dst_5_q <= gemm_dst_4_q;
    end
  end

  assign operand_read_o = gemm_issue_o;
  assign inp_index_o = LogInpDepth'(src_q);
  assign wgt_index_o = LogWgtDepth'(wgt_q);

  vta_gemm u_gemm (
    .clk_i,
    .valid_i(gemm_valid_q[4:1]),
    .inp_i,
    .wgt_i,
    .acc_i,
    .sum_o(gemm_sum)
  );

  // ---- ALU: reads the source, if it has one, then the destination -------------------------------------------------------
  logic alu_src_q, alu_dst_1_q, alu_dst_2_q;  // what acc_i shows; alu_dst_2_q: the result is there
  logic [LogAccDepth-1:0] alu_index_1_q, alu_index_2_q;
  logic [AccBits-1:0] alu_source_q, alu_result;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      alu_src_q <= 1'b0;
      alu_dst_1_q <= 1'b0;
      alu_dst_2_q <= 1'b0;
    end else begin
      alu_src_q <= src_issue;
      alu_dst_1_q <= dst_issue && !gemm_i;
      alu_dst_2_q <= alu_dst_1_q;
    end
    if (dst_issue && !gemm_i) alu_index_1_q <= dst;
    if (alu_dst_1_q) alu_index_2_q <= alu_index_1_q;
    if (alu_src_q) alu_source_q <= acc_i;
  end

  vta_alu u_alu (
    .clk_i,
    .execute_i(alu_dst_1_q),
    .opcode_i(nest_i.alu_opcode),
    .use_imm_i(nest_i.use_imm),
    .imm_i(nest_i.imm),
    .dst_i(acc_i),
    .src_i(alu_source_q),
    .result_o(alu_result)
  );

  // ---- Accumulator ---------------------------------------------------------------------------------------------------------
  assign acc_read_o = gemm_valid_q[3] || src_issue || (dst_issue && !gemm_i);
  assign acc_read_index_o = gemm_valid_q[3] ? gemm_dst_3_q : (src_issue ? src : dst);
  assign write_o = rst_ni && (gemm_valid_q[GemmStages] || alu_dst_2_q);
  assign write_index_o = gemm_i ? gemm_dst_5_q : alu_index_2_q;

  // A resetting GEMM clears the accumulator, while the output buffer gets the sum.
  logic [AccBits-1:0] result;
  assign result = gemm_i ? gemm_sum : alu_result;
  assign acc_o = gemm_i && nest_i.reset ? '0 : result;
  for (genvar n = 0; n < Batch * Block; n++) begin : g_out
    assign out_o[n*8+:8] = result[n*32+:8];
  end

  // ---- End ---------------------------------------------------------------------------------------------------------------------
  logic running_q;
  assign done_o = running_q && !nest_valid && !uop_valid_q && !index_valid_q && gemm_valid_q[GemmStages-1:1] == '0
      && !alu_src_q && !alu_dst_1_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || done_o) running_q <= 1'b0;
    else if (start_i) running_q <= 1'b1;
  end

`ifndef SYNTHESIS
  assert_one_writer : assert property (@(posedge clk_i) disable iff (!rst_ni) !(gemm_valid_q[GemmStages] && alu_dst_2_q))
  else $error("GEMM and ALU write the accumulator in one cycle");
  assert_one_reader : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(gemm_valid_q[3] && (src_issue || (dst_issue && !gemm_i))))
  else $error("GEMM and ALU read the accumulator in one cycle");
`endif

endmodule
