// SPDX-License-Identifier: Apache-2.0
//
// Executes GEMM and ALU on the accumulator's two banks. vta_issue says which micro-ops begin in a
// cycle.
//
//   GEMM: issue -> read operands -> operands -> products -> products + 2^15 - 128 * x -> sums of 4
//         -> dot -> new accumulator -> write
//   ALU:  issue -> read accumulator -> accumulator -> new accumulator -> write
//
// done_o comes while the last micro-ops are on their way, as soon as nothing that follows can reach
// what they have yet to write: in the cycle after the last went, or, of a GEMM with pushes_next_i,
// three cycles later. From done_o on
//   - a later micro-op reads an accumulator nine cycles or more later, and the last write is seven
//     cycles later;
//   - a LOAD of ACC begins after the last write (vta_compute);
//   - a STORE reads the output buffer five cycles or more later.
// Where there is no micro-op it is the cycle after start_i.

module vta_execute
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
  input  nest_t                  nest_i,  // holds still from start_i until done_o
  input  logic                   hold_next_i,  // issue nothing in the next cycle
  // bounds of the ALU's results, which hold still from the cycle after the first issue
  input  logic signed [31:0]     low_i,
  input  logic signed [31:0]     high_i,
  // the instruction pushes a token to the store stage
  input  logic                   pushes_next_i,
  // A reset ends unexecuted: the next instruction, a GEMM, is to clear these accumulators.
  input  logic                   fold_i,
  input  logic [LogAccDepth-1:0] fold_first_i,
  input  logic [  LogAccDepth:0] fold_count_i,
  // nest_i is to become the reset's, and start_i to follow in two cycles
  output logic                   replay_o,
  output logic                   done_o,
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output index_t                 fault_index_o,
  // so many GEMM micro-ops begin, or are done by others in passing
  output logic [            2:0] gemm_issue_o,
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
  // LOAD of ACC, while nothing executes; loads_i: one is in execution.
  input  logic                   loads_i,
  input  logic                   load_i,
  input  logic [LogAccDepth-1:0] load_index_i,
  input  logic [    AccBits-1:0] load_data_i,
  // Each write of the accumulator goes to the output buffer too, its low bytes.
  output banks_t                 write_o,
  output rows_t                  write_row_o,
  output logic [    OutBits-1:0] out_o[AccBanks]
);

  logic issue_busy, issue_fault, abandon, src_read;
  logic [1:0] issue_count;
  banks_t dst_issue, gemm_issue, alu_issue, src_issue, src_bank;
  rows_t dst_row, src_row;

  vta_issue #(
    `include "vta_passed.svh"
  ) u_issue (
    .clk_i,
    .rst_ni(rst_ni && !abandon),
    .stop_i,
    .start_i,
    .gemm_i,
    .nest_i,
    .hold_next_i,
    .busy_o(issue_busy),
    .fault_o(issue_fault),
    .fault_code_o,
    .fault_index_o,
    .count_o(issue_count),
    .uop_read_o,
    .uop_index_o,
    .uop_i,
    .dst_o(dst_issue),
    .dst_row_o(dst_row),
    .gemm_o(gemm_issue),
    .operand_read_o,
    .inp_index_o,
    .wgt_index_o,
    .src_o(src_issue),
    .src_read_o(src_read),
    .src_row_o(src_row),
    .src_bank_o(src_bank)
  );
  assign alu_issue = gemm_i ? '0 : dst_issue;

  // ---- GEMM: reads its operands when issued and its accumulators four cycles later --------------
  localparam int unsigned GemmStages = 6;
  localparam int unsigned GemmRead = 4;  // read accumulators
  localparam int unsigned GemmAdd = 6;
  banks_t gemm_q[1:GemmStages];  // gemm_q[n]: issued n cycles ago
  rows_t gemm_row_q[1:GemmStages];
  logic [GemmStages:1] gemm_valid;
  logic gemm_reads_q;  // gemm_valid[GemmRead]
  logic [AccBits-1:0] gemm_dot;
  // clear_q: accumulators are zero afterwards; replaces_q: they are the products alone
  logic clear_q, replaces_q;

  // ---- Window GEMM: reads inputs of earlier iterations, writes where its window is whole --------
  logic [InpBits-1:0] taps[WindowTaps];
  logic window_q, writes;

  if (HasWindow) begin : g_window
    vta_window #(
      `include "vta_passed.svh"
    ) u_window (
      .clk_i,
      .start_i,
      .window_i(nest_i.window),
      .columns_i(nest_i.iter_in),
      .skip_rows_i(nest_i.skip_out),
      .skip_columns_i(nest_i.skip_in),
      .issue_i(operand_read_o),
      .inp_i,
      .taps_o(taps),
      .window_o(window_q),
      .writes_o(writes)
    );
  end else begin : g_no_window
    assign taps = '{default: '0};
    assign window_q = 1'b0;
    assign writes = 1'b1;
  end

  // ---- Folded reset: GEMM adds to zero where it first comes to an accumulator of it -------------
  // The accumulators to which the GEMM did not come are left to the reset itself, which runs after
  // it: replay_q. So it is too where the GEMM ends in a fault, before that is told.
  localparam int unsigned GemmFirst = 2;  // the micro-op is known to be the first
  banks_t first;
  banks_t zero_q[GemmFirst+1:GemmRead+1];
  logic fold_q, replay_q, flush_q, fault_q, covered;

  vta_first_use #(
    `include "vta_passed.svh"
  ) u_first_use (
    .clk_i,
    .rst_ni,
    .begin_i(fold_i),
    .first_i(fold_first_i),
    .count_i(fold_count_i),
    .active_i(fold_q),
    .end_i(fold_q && done_o),
    .issue_i(gemm_issue),
    .row_i(dst_row),
    .first_o(first),
    .covered_o(covered)
  );

  always_ff @(posedge clk_i) begin
    zero_q[GemmFirst+1] <= rst_ni && !replay_q ? first : '0;
    if (rst_ni && replaces_q && writes) zero_q[GemmFirst+1] <= gemm_q[GemmFirst];
    for (int n = GemmFirst + 2; n <= GemmRead + 1; n++) zero_q[n] <= rst_ni ? zero_q[n-1] : '0;
  end

  // Each micro-op of the reset counts once, when it is done.
  assign gemm_issue_o = 3'(first[0]) + 3'(first[1]) + (gemm_i && !replay_q ? 3'(issue_count) : '0);

  // ---- GEMM's stages ----------------------------------------------------------------------------

  always_comb begin
    for (int n = 1; n <= GemmStages; n++) gemm_valid[n] = gemm_q[n] != '0;
  end

  always_ff @(posedge clk_i) begin
    gemm_q[1] <= rst_ni ? gemm_issue : '0;
    gemm_row_q[1] <= dst_row;
    for (int n = 2; n <= GemmStages; n++) begin
      gemm_q[n] <= rst_ni ? gemm_q[n-1] : '0;
      gemm_row_q[n] <= gemm_row_q[n-1];
    end
    gemm_reads_q <= rst_ni && gemm_valid[GemmRead-1];
    if (replay_q) gemm_q[GemmFirst+1] <= rst_ni ? gemm_q[GemmFirst] & first : '0;
    if (!writes) gemm_q[GemmFirst+1] <= '0;
    // The instruction may have changed by the time of the write.
    if (gemm_valid[1]) begin
      clear_q <= nest_i.reset && !nest_i.window;
      replaces_q <= nest_i.reset && nest_i.window;
    end
  end

  vta_gemm #(
    `include "vta_passed.svh"
  ) u_gemm (
    .clk_i,
    .valid_i(gemm_valid[5:1]),
    .inp_i,
    .wgt_i,
    .window_i(window_q),
    .taps_i(taps),
    .dot_o(gemm_dot)
  );

  // ---- ALU: reads sources, if there are any, then destinations ----------------------------------
  logic alu_src_1_q, alu_src_2_q;  // sources were read one and two cycles ago
  banks_t alu_src_bank_1_q, alu_src_bank_2_q;
  banks_t alu_dst_1_q, alu_dst_2_q;  // destinations were read one and two cycles ago
  rows_t alu_row_1_q, alu_row_2_q;
  // Of the instruction, which may have changed by the time of the operation.
  logic [2:0] opcode_q;
  bound_t low_q, high_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      alu_src_1_q <= 1'b0;
      alu_src_2_q <= 1'b0;
      alu_dst_1_q <= '0;
      alu_dst_2_q <= '0;
    end else begin
      alu_src_1_q <= src_read;
      alu_src_2_q <= alu_src_1_q;
      alu_dst_1_q <= alu_issue;
      alu_dst_2_q <= alu_dst_1_q;
    end
    alu_src_bank_1_q <= src_bank;
    alu_src_bank_2_q <= alu_src_bank_1_q;
    alu_row_1_q <= dst_row;
    alu_row_2_q <= alu_row_1_q;
    if (alu_dst_1_q != '0) begin
      opcode_q <= nest_i.alu_opcode;
      low_q <= {low_i[31], low_i[15:0]};
      high_q <= {high_i[31], high_i[15:0]};
    end
  end

  // ---- Accumulator ------------------------------------------------------------------------------
  banks_t read;
  rows_t read_row;
  logic [AccBits-1:0] acc[AccBanks];
  assign read = gemm_q[GemmRead] | src_issue | alu_issue;
  assign read_row = gemm_reads_q ? gemm_row_q[GemmRead] : src_read ? src_row : dst_row;

  // The results are registers of the banks, and so is all that goes with their write.
  banks_t write_q;
  rows_t write_row_q;
  logic write_gemm_q, write_zero_q;
  always_ff @(posedge clk_i) begin
    write_q <= rst_ni ? gemm_q[GemmAdd] | alu_dst_2_q : '0;
    write_row_q <= gemm_valid[GemmAdd] ? gemm_row_q[GemmAdd] : alu_row_2_q;
    write_gemm_q <= gemm_valid[GemmAdd];
    write_zero_q <= gemm_valid[GemmAdd] && clear_q;
  end
  assign write_o = write_q;
  assign write_row_o = write_row_q;

  for (genvar bank = 0; bank < AccBanks; bank++) begin : g_bank
    // amount_q: a shift's, so that what compares and adds has few pins to drive
    logic [AccBits-1:0] source_q;
    logic [AmountBits-1:0] amount_q;
    always_ff @(posedge clk_i) begin
      if (alu_src_2_q) source_q <= acc[alu_src_bank_2_q[bank]];
      else if (alu_dst_1_q[bank] && nest_i.use_imm)
        source_q <= {(Batch * Block) {32'($signed(nest_i.imm))}};
      if (alu_dst_1_q[bank]) begin
        for (int n = 0; n < Batch * Block; n++)
        amount_q[n*5+:5] <= nest_i.alu_opcode != AluShr ? '0
            : nest_i.use_imm ? nest_i.imm[4:0] : acc[alu_src_bank_2_q[bank]][n*32+:5];
      end
    end

    // The bank stores what it is given a cycle later, and until then gives it to those that read.
    // What a LOAD gives is stored long before an instruction reads.
    logic load, store_q;
    logic [2:1] forward_q;
    logic [LogAccRows-1:0] store_row_q;
    assign load = load_i && load_index_i[0] == 1'(bank);
    always_ff @(posedge clk_i) begin
      store_q <= write_q[bank] || load;
      store_row_q <= write_q[bank] ? write_row_q[bank] : LogAccRows'(load_index_i >> 1);
      forward_q[1] <= write_q[bank] && read_row[bank] == write_row_q[bank];
      forward_q[2] <= store_q && read_row[bank] == store_row_q;
    end

    vta_acc_bank #(
      `include "vta_passed.svh"
    ) u_bank (
      .clk_i,
      .read_i(read[bank]),
      .read_row_i(read_row[bank]),
      .acc_o(acc[bank]),
      .zero_i(zero_q[GemmRead+1][bank]),
      .add_i(gemm_q[GemmAdd][bank]),
      .dot_i(gemm_dot),
      .execute_i(alu_dst_2_q[bank]),
      .opcode_i(opcode_q),
      .low_i(low_q),
      .high_i(high_q),
      .src_i(source_q),
      .amount_i(amount_q),
      .write_i(write_q[bank]),
      .gemm_i(write_gemm_q),
      .clear_i(write_zero_q),
      .out_o(out_o[bank]),
      .loads_i,
      .load_i(load),
      .load_data_i,
      .store_i(store_q),
      .store_row_i(store_row_q),
      .forward_i(forward_q)
    );
  end

  // ---- End --------------------------------------------------------------------------------------
  logic running_q, known, quiet_q, writes_soon, folded_end;
  // which accumulators were come to
  assign known = gemm_issue == '0 && quiet_q;
  // as gemm_valid[GemmFirst:1] says, of the last two issues
  always_ff @(posedge clk_i) quiet_q <= !rst_ni || (gemm_issue == '0 && !gemm_valid[1]);
  assign writes_soon = (!pushes_next_i && !fold_q) || known;
  assign folded_end = running_q && fold_q && known && (!issue_busy || issue_fault);
  assign replay_o = folded_end && !covered;
  assign done_o = running_q && !issue_busy && writes_soon && !(fold_q && (!covered || fault_q));
  assign fault_o = fold_q ? folded_end && covered && (issue_fault || fault_q) : issue_fault;
  assign abandon = fold_i || flush_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || done_o || replay_o || fold_i) running_q <= 1'b0;
    else if (start_i) running_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    flush_q <= replay_o && rst_ni;
    if (replay_o) begin
      replay_q <= 1'b1;
      fault_q <= issue_fault;
    end
    if (fold_i) fold_q <= 1'b1;
    if (!rst_ni || done_o) {fold_q, replay_q, fault_q} <= '0;
  end

`ifndef SYNTHESIS
  // verilog_format: off
  assert_one_writer : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !gemm_valid[GemmAdd] || alu_dst_2_q == '0)
  else $error("GEMM and ALU write the accumulator in one cycle");
  assert_written : assert property (@(posedge clk_i) disable iff (!rst_ni)
      src_issue != '0 || alu_issue != '0 -> gemm_valid == '0)
  else $error("the ALU reads accumulators that GEMM has yet to write");
  assert_no_load : assert property (@(posedge clk_i) disable iff (!rst_ni)
      load_i -> read == '0 && write_o == '0 && gemm_valid == '0 && alu_dst_1_q == '0 && alu_dst_2_q == '0)
  else $error("a LOAD writes accumulators that an instruction has yet to write");
  assert_fold : assert property (@(posedge clk_i) disable iff (!rst_ni)
      fold_i -> running_q && gemm_i && nest_i.reset && dst_issue == '0 && gemm_valid[2:1] == '0)
  else $error("a reset that has begun was left to the next GEMM");
  assert_covered : assert property (@(posedge clk_i) disable iff (!rst_ni)
      folded_end && replay_q -> covered)
  else $error("a reset left accumulators behind");
  assert_folded : assert property (@(posedge clk_i) disable iff (!rst_ni)
      fold_q && running_q -> gemm_i)
  else $error("a reset was left to an instruction that is no GEMM");
  assert_quiet : assert property (@(posedge clk_i) disable iff (!rst_ni)
      quiet_q == (gemm_valid[GemmFirst:1] == '0) && gemm_reads_q == gemm_valid[GemmRead])
  else $error("vta_execute: a flag differs from its stages");
  assert_bounds : assert property (@(posedge clk_i) disable iff (!rst_ni)
      alu_dst_1_q != '0
      -> {low_i[30:16], high_i[30:16]} == {{15{low_i[15]}}, {15{high_i[15]}}})
  else $error("a bound is no immediate and no end of 32 bits");
  cover_replay : cover property (@(posedge clk_i) rst_ni && replay_o);
  cover_fault : cover property (@(posedge clk_i) rst_ni && replay_o && issue_fault);
  cover_source : cover property (@(posedge clk_i) rst_ni && src_issue != '0);
  cover_two : cover property (@(posedge clk_i) rst_ni && write_o == '1);
  // verilog_format: on
`endif

endmodule
