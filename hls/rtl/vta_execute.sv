// SPDX-License-Identifier: Apache-2.0
//
// Executes GEMM and ALU on the accumulator's two banks. vta_issue says which micro-ops begin in a cycle.
//
//   issue -> operands -> products -> sums of 4 -> dot -> new accumulator -> write
//            ALU: issue -> accumulator -> new accumulator -> write
//
// done_o marks the last write, or the cycle after start_i when there is no micro-op. Instructions do not overlap.

module vta_execute
  import vta_pkg::*;
  import vta_registers_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   stop_i,  // another fault: issue nothing more
  input  logic                   start_i,
  input  logic                   gemm_i,  // else ALU
  input  nest_t                  nest_i,  // holds still from start_i until done_o
  input  logic                   hold_i,  // issue nothing yet
  input  logic signed [31:0]     low_i,   // bounds of the ALU's results, which hold still but with hold_i
  input  logic signed [31:0]     high_i,
  output logic                   done_o,
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output index_t                 fault_index_o,
  output logic [            1:0] gemm_issue_o,  // so many GEMM micro-ops begin
  // Micro-op buffer, one cycle.
  output logic                   uop_read_o,
  output logic [LogUopDepth-1:0] uop_index_o[2],
  input  logic [    UopBits-1:0] uop_i[2],
  // Input and weight buffers, one cycle.
  output logic                   operand_read_o,
  output logic [LogInpDepth-1:0] inp_index_o,
  input  logic [    InpBits-1:0] inp_i,
  output logic [LogWgtDepth-1:0] wgt_index_o,
  input  logic [    WgtBits-1:0] wgt_i,
  // LOAD of ACC, while nothing executes.
  input  logic                   load_i,
  input  logic [LogAccDepth-1:0] load_index_i,
  input  logic [    AccBits-1:0] load_data_i,
  // Each write of the accumulator goes to the output buffer too, its low bytes.
  output banks_t                 write_o,
  output rows_t                  write_row_o,
  output logic [    OutBits-1:0] out_o[AccBanks]
);

  logic issue_busy;
  banks_t dst_issue, gemm_issue, alu_issue, src_issue, src_bank;
  rows_t dst_row, src_row;

  vta_issue u_issue (
    .clk_i,
    .rst_ni,
    .stop_i,
    .start_i,
    .gemm_i,
    .nest_i,
    .hold_i,
    .busy_o(issue_busy),
    .fault_o,
    .fault_code_o,
    .fault_index_o,
    .uop_read_o,
    .uop_index_o,
    .uop_i,
    .dst_o(dst_issue),
    .dst_row_o(dst_row),
    .inp_index_o,
    .wgt_index_o,
    .src_o(src_issue),
    .src_row_o(src_row),
    .src_bank_o(src_bank)
  );
  assign gemm_issue = gemm_i ? dst_issue : '0;
  assign alu_issue = gemm_i ? '0 : dst_issue;
  assign operand_read_o = gemm_issue != '0;
  assign gemm_issue_o = 2'(gemm_issue[0]) + 2'(gemm_issue[1]);

  // ---- GEMM: reads its operands at issue and its accumulators three cycles later ----------------------------------------
  localparam int unsigned GemmStages = 5;
  banks_t gemm_q[1:GemmStages];  // gemm_q[n]: issued n cycles ago
  rows_t gemm_row_q[1:GemmStages];
  logic [GemmStages-1:1] gemm_valid;
  logic [AccBits-1:0] gemm_dot;

  always_comb begin
    for (int n = 1; n < GemmStages; n++) gemm_valid[n] = gemm_q[n] != '0;
  end

  always_ff @(posedge clk_i) begin
    gemm_q[1] <= rst_ni ? gemm_issue : '0;
    gemm_row_q[1] <= dst_row;
    for (int n = 2; n <= GemmStages; n++) begin
      gemm_q[n] <= rst_ni ? gemm_q[n-1] : '0;
      gemm_row_q[n] <= gemm_row_q[n-1];
    end
  end

  vta_gemm u_gemm (
    .clk_i,
    .valid_i(gemm_valid[3:1]),
    .inp_i,
    .wgt_i,
    .dot_o(gemm_dot)
  );

  // ---- ALU: reads sources, if there are any, then destinations ----------------------------------------------------------
  logic alu_src_q;  // sources are read
  banks_t alu_src_bank_q, alu_dst_1_q, alu_dst_2_q;  // destinations are read; their results are there
  rows_t alu_row_1_q, alu_row_2_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      alu_src_q <= 1'b0;
      alu_dst_1_q <= '0;
      alu_dst_2_q <= '0;
    end else begin
      alu_src_q <= src_issue != '0;
      alu_dst_1_q <= alu_issue;
      alu_dst_2_q <= alu_dst_1_q;
    end
    alu_src_bank_q <= src_bank;
    alu_row_1_q <= dst_row;
    alu_row_2_q <= alu_row_1_q;
  end

  // ---- Accumulator ---------------------------------------------------------------------------------------------------------
  banks_t read;
  rows_t read_row;
  assign read = gemm_q[3] | src_issue | alu_issue;
  assign read_row = gemm_valid[3] ? gemm_row_q[3] : (src_issue != '0 ? src_row : dst_row);
  assign write_o = rst_ni ? gemm_q[GemmStages] | alu_dst_2_q : '0;
  assign write_row_o = gemm_i ? gemm_row_q[GemmStages] : alu_row_2_q;

  for (genvar bank = 0; bank < AccBanks; bank++) begin : g_bank
    logic [AccBits-1:0] acc, source_q;
    always_ff @(posedge clk_i) if (alu_src_q) source_q <= alu_src_bank_q[bank] ? g_bank[1].acc : g_bank[0].acc;

    vta_acc_bank u_bank (
      .clk_i,
      .read_i(read[bank]),
      .read_row_i(read_row[bank]),
      .acc_o(acc),
      .add_i(gemm_q[4][bank]),
      .dot_i(gemm_dot),
      .execute_i(alu_dst_1_q[bank]),
      .opcode_i(nest_i.alu_opcode),
      .use_imm_i(nest_i.use_imm),
      .imm_i(nest_i.imm),
      .low_i,
      .high_i,
      .src_i(source_q),
      .write_i(write_o[bank]),
      .write_row_i(write_row_o[bank]),
      .gemm_i,
      .clear_i(gemm_i && nest_i.reset),
      .out_o(out_o[bank]),
      .load_i(load_i && load_index_i[0] == 1'(bank)),
      .load_row_i(LogAccRows'(load_index_i >> 1)),
      .load_data_i
    );
  end

  // ---- End ---------------------------------------------------------------------------------------------------------------------
  logic running_q;
  assign done_o = running_q && !issue_busy && gemm_valid == '0 && !alu_src_q && alu_dst_1_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || done_o) running_q <= 1'b0;
    else if (start_i) running_q <= 1'b1;
  end

`ifndef SYNTHESIS
  assert_one_writer : assert property (@(posedge clk_i) disable iff (!rst_ni)
      gemm_q[GemmStages] == '0 || alu_dst_2_q == '0)
  else $error("GEMM and ALU write the accumulator in one cycle");
  assert_one_reader : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !gemm_valid[3] || (src_issue == '0 && alu_issue == '0))
  else $error("GEMM and ALU read the accumulator in one cycle");
`endif

endmodule
