// SPDX-License-Identifier: Apache-2.0
//
// The compute stage: LOAD of UOP, ACC and ACC_8BIT, GEMM, ALU and FINISH.
//
// One instruction at a time; an instruction's last write to a buffer is done before its tokens are
// pushed.

module vta_compute
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   bus_rst_ni,
  input  logic                   stop_i,    // drain from the next cycle on
  output logic                   idle_o,
  input  logic                   enable_i,
  input  logic                   repeat_i,  // started once for all instructions
  input  logic [           31:0] uop_addr_i,
  input  logic [           31:0] bias_addr_i,
  input  logic [           31:0] illegal_number_i,
  output logic                   finish_o,  // FINISH is executed
  // Instruction queue.
  input  logic                   insn_valid_i,
  input  logic [   InsnBits-1:0] insn_i,
  input  logic                   insn_continues_i,  // see vta_chain
  output logic                   insn_take_o,
  output logic                   insn_join_o,       // or it becomes part of the one in execution
  // Tokens from and to the load stage (prev) and the store stage (next).
  input  logic                   prev_valid_i,
  output logic                   prev_pop_o,
  input  logic                   prev_ready_i,
  output logic                   prev_push_o,
  input  logic                   next_valid_i,
  output logic                   next_pop_o,
  input  logic                   next_ready_i,
  output logic                   next_push_o,
  // Input and weight buffers, one cycle.
  output logic                   operand_read_o,
  output logic [LogInpDepth-1:0] inp_index_o,
  input  logic [    InpBits-1:0] inp_i,
  output logic [LogWgtDepth-1:0] wgt_index_o,
  input  logic [    WgtBits-1:0] wgt_i,
  // Output buffer.
  output banks_t                 out_write_o,
  output rows_t                  out_row_o,
  output logic [    OutBits-1:0] out_o[AccBanks],
  // Faults and counters.
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output address_t               fault_address_o,
  output logic                   busy_o,
  output logic                   stalled_o,
  output logic                   beat_o,
  output logic [  LogBusBytes:0] beat_bytes_o,  // of beat_o, that belong to the block
  output logic                   retire_o,
  output logic [            2:0] gemm_issue_o,
  // AXI4 read.
  output axi_read_req_t          axi_req_o,
  input  axi_read_rsp_t          axi_rsp_i,
  input  logic [BusBits-1:0]     axi_rdata_i
);

  `include "vta_instruction.svh"

  localparam int unsigned LogAccBeats = LogAccBytes - LogBusBytes;
  localparam int unsigned LogAcc8Beats = LogAcc8Bytes - LogBusBytes;

  logic drain_q;
  always_ff @(posedge clk_i) drain_q <= stop_i;

  // ---- Instruction ------------------------------------------------------------------------------
  logic idle, take, join_insn, done, insn_end, pushes_next;

  vta_sequencer u_sequencer (
    .clk_i,
    .rst_ni,
    .enable_i,
    .insn_valid_i,
    .insn_pop_prev_i(insn_i[PopPrevBit]),
    .insn_pop_next_i(insn_i[PopNextBit]),
    .insn_push_prev_i(insn_i[PushPrevBit]),
    .insn_push_next_i(insn_i[PushNextBit]),
    .prev_valid_i,
    .prev_pop_o,
    .next_valid_i,
    .next_pop_o,
    .prev_ready_i,
    .prev_push_o,
    .next_ready_i,
    .next_push_o,
    .idle_o(idle),
    .take_o(take),
    .busy_o,
    .pushes_next_o(pushes_next),
    .join_i(join_insn),
    .done_i(done),
    .retire_o(insn_end)
  );
  assign insn_take_o = take;
  assign insn_join_o = join_insn;
  assign retire_o = insn_end || join_insn;  // one that is joined by the next ends with that

  // The kind of the instruction. launch_q marks its first busy cycle, begin_q the second, in which
  // a LOAD of UOP begins, and settled_q the fifth, in which a LOAD of ACC does: by then the GEMM
  // before has written its results. execute_q: as launch_q, of GEMM and ALU; uop_begin_q: as
  // begin_q, of LOAD of UOP; executes_q: it is a GEMM or ALU. What is known of the instruction is registered while none is in
  // execution, whether it is taken or not: take goes to few registers.
  logic
      launch_q,
      execute_q,
      begin_q,
      uop_begin_q,
      settled_q,
      load_uop_q,
      load_acc_q,
      load_acc8_q,
      gemm_q,
      alu_q,
      executes_q,
      finish_q,
      illegal_q;
  transfer_t transfer_q;
  nest_t nest_q;
  logic [1:0] settling_q;

  // A reset that is left to the next GEMM (vta_fold): the fields that are not the same in all of
  // them. replay: it is to be executed after all, from two cycles later on.
  typedef struct packed {
    logic [UopEndBits-1:0] uop_bgn;
    logic [UopEndBits-1:0] uop_end;
    logic [IterBits-1:0] iter_out;
    logic [IterBits-1:0] iter_in;
    logic [DstFactorBits-1:0] dst_factor_out;
    logic [DstFactorBits-1:0] dst_factor_in;
  } reset_t;
  reset_t reset_q;
  logic folded, replay;
  logic replay_q;

  function automatic logic executes(input logic [InsnBits-1:0] insn);
    return (opcode_of(insn) == OpGemm || opcode_of(insn) == OpAlu) && !illegal(insn);
  endfunction

  always_ff @(posedge clk_i) begin
    launch_q <= take && rst_ni;
    execute_q <= rst_ni && ((take && executes(insn_i)) || replay_q);
    begin_q <= launch_q && rst_ni;
    uop_begin_q <= launch_q && load_uop_q && rst_ni;
    settling_q <= rst_ni ? {settling_q[0], begin_q && (load_acc_q || load_acc8_q)} : '0;
    settled_q <= settling_q[1] && rst_ni;
    if (idle && insn_valid_i) begin
      load_uop_q <= opcode_of(insn_i) == OpLoad && memory_type_of(insn_i) == MemUop;
      load_acc_q <= opcode_of(insn_i) == OpLoad && memory_type_of(insn_i) == MemAcc;
      load_acc8_q <= opcode_of(insn_i) == OpLoad && memory_type_of(insn_i) == MemAcc8;
      gemm_q <= opcode_of(insn_i) == OpGemm;
      alu_q <= opcode_of(insn_i) == OpAlu;
      executes_q <= opcode_of(insn_i) == OpGemm || opcode_of(insn_i) == OpAlu;
      finish_q <= opcode_of(insn_i) == OpFinish;
      illegal_q <= illegal(insn_i);
      transfer_q <= transfer_of(insn_i);
      nest_q <= nest_of(insn_i);
    end else if (replay_q) begin
      nest_q <= '{
          reset: 1'b1,
          uop_bgn: reset_q.uop_bgn,
          uop_end: reset_q.uop_end,
          uop_count: 3'b001,
          iter_out: reset_q.iter_out,
          iter_in: reset_q.iter_in,
          dst_factor_out: index_t'(reset_q.dst_factor_out),
          dst_factor_in: index_t'(reset_q.dst_factor_in),
          default: '0
      };
    end
    if (folded) begin
      reset_q <= '{
          uop_bgn: nest_q.uop_bgn,
          uop_end: nest_q.uop_end,
          iter_out: nest_q.iter_out,
          iter_in: nest_q.iter_in,
          dst_factor_out: DstFactorBits'(nest_q.dst_factor_out),
          dst_factor_in: DstFactorBits'(nest_q.dst_factor_in)
      };
    end
    replay_q <= replay && rst_ni;
  end

  // ---- Memory -----------------------------------------------------------------------------------
  // Micro-ops may begin anywhere in a beat.
  address_t uop_address;
  logic [LogBusBytes-1:0] uop_first_lane;
  logic [RowBeatsBits-1:0] uop_row_last;
  assign uop_address = block_address(uop_addr_i, transfer_q.dram_base, LogUopBytes);
  assign uop_first_lane = uop_address[LogBusBytes-1:0] >> LogUopBytes;
  assign uop_row_last = (RowBeatsBits'(transfer_q.x_size) + RowBeatsBits'(uop_first_lane) - 1'b1)
      >> (LogBusBytes - LogUopBytes);

  logic dma_start_q, beat_valid, beat_ready;
  logic [BusBits-1:0] beat_data;
  address_t dma_address_q, dma_stride_q;
  logic [RowBeatsBits-1:0] dma_row_last_q;
  logic dma_fault;
  fault_e dma_fault_code;
  address_t dma_fault_address;

  always_ff @(posedge clk_i) begin
    dma_start_q <= rst_ni && transfer_q.x_size != '0
        && ((launch_q && load_uop_q) || (settling_q[1] && transfer_q.y_size != '0));
    if (launch_q) begin
      if (load_uop_q) begin
        dma_address_q <= uop_address;
        dma_row_last_q <= uop_row_last;
        dma_stride_q <= '0;
      end else if (load_acc_q) begin
        dma_address_q <= block_address(bias_addr_i, transfer_q.dram_base, LogAccBytes);
        dma_row_last_q <= (RowBeatsBits'(transfer_q.x_size) << LogAccBeats) - 1'b1;
        dma_stride_q <= address_t'(transfer_q.x_stride) << LogAccBytes;
      end else begin
        dma_address_q <= block_address(bias_addr_i, transfer_q.dram_base, LogAcc8Bytes);
        dma_row_last_q <= (RowBeatsBits'(transfer_q.x_size) << LogAcc8Beats) - 1'b1;
        dma_stride_q <= address_t'(transfer_q.x_stride) << LogAcc8Bytes;
      end
    end
  end

  vta_dma_read #(
    `include "vta_passed.svh"
  ) u_dma (
    .clk_i,
    .rst_ni(bus_rst_ni),
    .drain_i(drain_q),
    .idle_o,
    .start_i(dma_start_q),
    .address_i(dma_address_q),
    .row_last_i(dma_row_last_q),
    .rows_i(load_uop_q ? 16'd1 : transfer_q.y_size),
    .stride_i(dma_stride_q),
    .planes_i(16'd1),
    .plane_stride_i('0),
    .beat_valid_o(beat_valid),
    .beat_ready_i(beat_ready),
    .beat_data_o(beat_data),
    .beat_taken_i(beat_o),
    .fault_o(dma_fault),
    .fault_code_o(dma_fault_code),
    .fault_address_o(dma_fault_address),
    .axi_req_o,
    .axi_rsp_i,
    .axi_rdata_i
  );
  assign beat_o = beat_valid && beat_ready;

  // ---- LOAD of UOP ------------------------------------------------------------------------------
  logic uop_done, uop_waiting, uop_fault, uop_beat_ready, uop_read;
  logic [16:0] uop_fault_index;
  logic [LogBusBytes-1:0] uop_lanes;
  logic [LogUopDepth-1:0] uop_read_index[2];
  logic [UopBits-1:0] uop[2];

  vta_uop_buffer #(
    `include "vta_passed.svh"
  ) u_uop (
    .clk_i,
    .rst_ni,
    .prepare_i(launch_q),
    .start_i(uop_begin_q),
    .sram_base_i(transfer_q.sram_base),
    .x_size_i(transfer_q.x_size),
    .first_lane_i(uop_first_lane),
    .done_o(uop_done),
    .waiting_o(uop_waiting),
    .fault_o(uop_fault),
    .fault_index_o(uop_fault_index),
    .lanes_o(uop_lanes),
    .beat_valid_i(beat_valid),
    .beat_ready_o(uop_beat_ready),
    .beat_data_i(beat_data),
    .read_i(uop_read),
    .read_index_i(uop_read_index),
    .uop_o(uop)
  );

  // ---- LOAD of ACC and ACC_8BIT -----------------------------------------------------------------
  logic acc_done, acc_waiting, acc_fault, acc_beat_ready, acc_load, acc_zero;
  logic [SramIndexBits-1:0] acc_load_index;
  logic [AccBits-1:0] acc_element, acc_widened;
  logic acc_loads_q;  // as the kind says, from the third cycle on: before its first write
  always_ff @(posedge clk_i) acc_loads_q <= busy_o && (load_acc_q || load_acc8_q);

  vta_block_loader #(
    .ElementBits(AccBits),
    `include "vta_passed.svh"
  ) u_acc_loader (
    .clk_i,
    .rst_ni,
    .prepare_i(launch_q),
    .start_i(settled_q),
    .hold_i(1'b0),
    .sram_base_i(transfer_q.sram_base),
    .next_row_i(SramIndexBits'(1)),
    .y_size_i(transfer_q.y_size),
    .x_size_i(transfer_q.x_size),
    .y_pad_0_i(transfer_q.y_pad_0),
    .y_pad_1_i(transfer_q.y_pad_1),
    .x_pad_0_i(transfer_q.x_pad_0),
    .x_pad_1_i(transfer_q.x_pad_1),
    .log_beats_i(load_acc8_q ? 4'(LogAcc8Beats) : 4'(LogAccBeats)),
    .last_i(SramIndexBits'(AccDepth - 1)),
    .done_o(acc_done),
    .waiting_o(acc_waiting),
    .fault_o(acc_fault),
    .beat_valid_i(beat_valid && !load_uop_q),
    .beat_ready_o(acc_beat_ready),
    .beat_data_i(beat_data),
    .write_o(acc_load),
    .index_o(acc_load_index),
    .zero_o(acc_zero),
    .element_o(acc_element)
  );

  always_comb begin
    acc_widened = acc_element;
    if (load_acc8_q)
      for (int n = 0; n < Batch * Block; n++)
      acc_widened[n*32+:32] = 32'($signed(acc_element[n*8+:8]));
  end

  assign beat_ready = load_uop_q ? uop_beat_ready : acc_beat_ready;

  // ---- GEMM and ALU -----------------------------------------------------------------------------
  logic hold_next;
  logic signed [31:0] low, high;

  vta_chain #(
    `include "vta_passed.svh"
  ) u_chain (
    .clk_i,
    .rst_ni,
    .enable_i,
    .repeat_i,
    .insn_valid_i,
    .insn_i,
    .insn_continues_i,
    .take_i(take),
    .launch_i(launch_q),
    .join_o(join_insn),
    .nest_i(nest_q),
    .uop_dst_i(uop[0][UopDstBits-1:0]),
    .hold_next_o(hold_next),
    .low_o(low),
    .high_o(high)
  );

  logic fold_hold_next;
  logic [LogAccDepth-1:0] fold_first;
  logic [LogAccDepth:0] fold_count;

  vta_fold #(
    `include "vta_passed.svh"
  ) u_fold (
    .clk_i,
    .rst_ni,
    .enable_i,
    .repeat_i,
    .insn_valid_i,
    .insn_i,
    .take_i(take),
    .nest_i(nest_q),
    .uop_i(uop[0]),
    .hold_next_o(fold_hold_next),
    .folded_o(folded),
    .first_o(fold_first),
    .count_o(fold_count)
  );

  logic execute_done, execute_fault;
  fault_e execute_fault_code;
  index_t execute_fault_index;

  vta_execute #(
    `include "vta_passed.svh"
  ) u_execute (
    .clk_i,
    .rst_ni,
    .stop_i,
    .start_i(execute_q),
    .gemm_i(gemm_q),
    .nest_i(nest_q),
    .hold_next_i(hold_next || fold_hold_next),
    .low_i(low),
    .high_i(high),
    .pushes_next_i(pushes_next),
    .fold_i(folded),
    .fold_first_i(fold_first),
    .fold_count_i(fold_count),
    .replay_o(replay),
    .done_o(execute_done),
    .fault_o(execute_fault),
    .fault_code_o(execute_fault_code),
    .fault_index_o(execute_fault_index),
    .gemm_issue_o,
    .uop_read_o(uop_read),
    .uop_index_o(uop_read_index),
    .uop_i(uop),
    .operand_read_o,
    .inp_index_o,
    .inp_i,
    .wgt_index_o,
    .wgt_i,
    .loads_i(acc_loads_q),
    .load_i(acc_load),
    .load_index_i(LogAccDepth'(acc_load_index)),
    .load_data_i(acc_zero ? '0 : acc_widened),
    .write_o(out_write_o),
    .write_row_o(out_row_o),
    .out_o
  );

  // ---- End, faults and counters -----------------------------------------------------------------
  logic finish;
  assign finish = launch_q && finish_q && busy_o;
  always_ff @(posedge clk_i) finish_o <= finish && rst_ni;
  always_comb begin
    done = 1'b0;
    if (busy_o && !drain_q) done = uop_done || acc_done || execute_done || finish || folded;
  end

  fault_e buffer_fault_code;
  index_t buffer_fault_index;
  always_comb begin
    buffer_fault_code = FaultAcc;
    buffer_fault_index = index_t'(acc_load_index);
    if (executes_q) begin
      buffer_fault_code = execute_fault_code;
      buffer_fault_index = execute_fault_index;
    end else if (load_uop_q) begin
      buffer_fault_code = FaultUop;
      buffer_fault_index = index_t'(uop_fault_index);
    end
  end

  always_comb begin
    // An instruction's kind says whose fault it can be, so that the address does not wait for
    // whether there is one.
    fault_o = (launch_q && illegal_q) || execute_fault || uop_fault || acc_fault || dma_fault;
    fault_code_o = FaultIllegal;
    fault_address_o = address_t'(illegal_number_i);
    if (!illegal_q) begin
      if (executes_q || uop_fault || acc_fault) begin
        fault_code_o = buffer_fault_code;
        fault_address_o = address_t'(buffer_fault_index);
      end else begin
        fault_code_o = dma_fault_code;
        fault_address_o = dma_fault_address;
      end
    end
  end

  assign stalled_o = uop_waiting || acc_waiting;
  assign beat_bytes_o = load_uop_q ? (LogBusBytes + 1)'(uop_lanes) << LogUopBytes
      : (LogBusBytes + 1)'(BusBytes);

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_one_kind : assert property (@(posedge clk_i) disable iff (!rst_ni)
      busy_o -> $countones({load_uop_q, load_acc_q, load_acc8_q, gemm_q, alu_q, finish_q}) <= 1)
  else $error("an instruction is of two kinds");
  assert_beat : assert property (@(posedge clk_i) disable iff (!rst_ni)
      beat_o -> busy_o && (load_uop_q || load_acc_q || load_acc8_q))
  else $error("data arrives for an instruction that loads nothing");
  assert_load : assert property (@(posedge clk_i) disable iff (!rst_ni)
      acc_load -> busy_o && (load_acc_q || load_acc8_q))
  else $error("the accumulator is loaded by an instruction that does not load it");
  assert_finish : assert property (@(posedge clk_i) disable iff (!rst_ni)
      finish_o -> $past(busy_o && finish_q && !illegal_q))
  else $error("FINISH without an instruction");
  assert_fault_kind : assert property (@(posedge clk_i) disable iff (!rst_ni)
      fault_o && !drain_q -> (illegal_q ? launch_q : gemm_q || alu_q ? execute_fault
          : uop_fault || acc_fault || dma_fault))
  else $error("a fault is not of the instruction in execution");
  assert_illegal : assert property (@(posedge clk_i) disable iff (!rst_ni)
      launch_q && illegal_q -> fault_o && fault_code_o == FaultIllegal)
  else $error("an illegal instruction raised no fault");
  cover_acc8 : cover property (@(posedge clk_i) rst_ni && acc_load && load_acc8_q);
  cover_fault : cover property (@(posedge clk_i) rst_ni && fault_o && !drain_q);
  // verilog_format: on
`endif

endmodule
