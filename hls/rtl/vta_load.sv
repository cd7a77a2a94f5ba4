// SPDX-License-Identifier: Apache-2.0
//
// The load stage: LOAD of INP and WGT. Pads of WGT loads are ignored, as the public hardware does.
//
// Cycle costs of a LOAD: see docs/microarchitecture.md.

module vta_load
  import vta_pkg::*;
  import vta_registers_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   bus_rst_ni,
  input  logic                   drain_i,
  output logic                   idle_o,
  input  logic                   enable_i,
  input  logic [           31:0] inp_addr_i,
  input  logic [           31:0] wgt_addr_i,
  // Instruction queue.
  input  logic                   insn_valid_i,
  input  logic [   InsnBits-1:0] insn_i,
  output logic                   insn_ready_o,
  // Tokens from and to the compute stage.
  input  logic                   next_valid_i,
  output logic                   next_pop_o,
  input  logic                   next_ready_i,
  output logic                   next_push_o,
  // Buffers.
  output logic                   inp_write_o,
  output logic [LogInpDepth-1:0] inp_index_o,
  output logic [    InpBits-1:0] inp_o,
  output logic                   wgt_write_o,
  output logic [LogWgtDepth-1:0] wgt_index_o,
  output logic [    WgtBits-1:0] wgt_o,
  // Faults and counters.
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output address_t               fault_address_o,
  output logic                   busy_o,
  output logic                   stalled_o,
  output logic                   beat_o,
  output logic                   retire_o,
  // AXI4 read.
  output axi_read_req_t          axi_req_o,
  input  axi_read_rsp_t          axi_rsp_i,
  input  logic [BusBits-1:0]     axi_rdata_i
);

  localparam int unsigned ElementBits = WgtBits > InpBits ? WgtBits : InpBits;
  localparam int unsigned LogInpBeats = LogInpBytes - LogBusBytes;
  localparam int unsigned LogWgtBeats = LogWgtBytes - LogBusBytes;

  // ---- Instruction ------------------------------------------------------------------------------
  logic take, done, sequencer_busy;
  logic unused_prev_pop, unused_prev_push, unused_idle, unused_pushes_next;

  vta_sequencer u_sequencer (
    .clk_i,
    .rst_ni,
    .enable_i,
    .insn_valid_i,
    .insn_pop_prev_i(1'b0),
    .insn_pop_next_i(insn_i[PopNextBit]),
    .insn_push_prev_i(1'b0),
    .insn_push_next_i(insn_i[PushNextBit]),
    .prev_valid_i(1'b1),
    .prev_pop_o(unused_prev_pop),
    .next_valid_i,
    .next_pop_o,
    .prev_ready_i(1'b1),
    .prev_push_o(unused_prev_push),
    .next_ready_i,
    .next_push_o,
    .idle_o(unused_idle),
    .take_o(take),
    .busy_o(sequencer_busy),
    .pushes_next_o(unused_pushes_next),
    .join_i(1'b0),
    .done_i(done),
    .retire_o
  );
  assign insn_ready_o = take;
  assign busy_o = sequencer_busy;

  transfer_t transfer_q;
  // launch_q: its first busy cycle; begin_q: the second, in which the transfer begins
  logic launch_q, begin_q, wgt_q;
  always_ff @(posedge clk_i) begin
    launch_q <= take && rst_ni;
    begin_q <= launch_q && rst_ni;
    if (take) begin
      transfer_q <= transfer_of(insn_i);
      if (memory_type_of(insn_i) == MemWgt) begin
        transfer_q.y_pad_0 <= '0;
        transfer_q.y_pad_1 <= '0;
        transfer_q.x_pad_0 <= '0;
        transfer_q.x_pad_1 <= '0;
      end
      wgt_q <= memory_type_of(insn_i) == MemWgt;
    end
  end

  // ---- Memory -----------------------------------------------------------------------------------
  logic beat_valid, beat_ready;
  logic [BusBits-1:0] beat_data;
  logic dma_fault;
  fault_e dma_fault_code;
  address_t dma_fault_address;

  logic dma_start_q;
  address_t dma_address_q, dma_stride_q;
  logic [RowBeatsBits-1:0] dma_row_last_q;
  always_ff @(posedge clk_i) begin
    dma_start_q <= 1'b0;
    if (launch_q) begin
      dma_start_q <= rst_ni && transfer_q.y_size != '0 && transfer_q.x_size != '0;
      dma_address_q <= wgt_q ? block_address(wgt_addr_i, transfer_q.dram_base, LogWgtBytes)
                             : block_address(inp_addr_i, transfer_q.dram_base, LogInpBytes);
      dma_row_last_q <= (RowBeatsBits'(transfer_q.x_size) << (wgt_q ? LogWgtBeats
          : LogInpBeats)) - 1'b1;
      dma_stride_q <= address_t'(transfer_q.x_stride) << (wgt_q ? LogWgtBytes : LogInpBytes);
    end
  end

  vta_dma_read u_dma (
    .clk_i,
    .rst_ni(bus_rst_ni),
    .drain_i,
    .idle_o,
    .start_i(dma_start_q),
    .address_i(dma_address_q),
    .row_last_i(dma_row_last_q),
    .rows_i(transfer_q.y_size),
    .stride_i(dma_stride_q),
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

  // ---- Buffers ----------------------------------------------------------------------------------
  logic write, zero, loader_fault;
  logic [SramIndexBits-1:0] index;
  logic [ElementBits-1:0] element;

  vta_block_loader #(
    .ElementBits(ElementBits)
  ) u_loader (
    .clk_i,
    .rst_ni,
    .prepare_i(launch_q),
    .start_i(begin_q),
    .sram_base_i(transfer_q.sram_base),
    .y_size_i(transfer_q.y_size),
    .x_size_i(transfer_q.x_size),
    .y_pad_0_i(transfer_q.y_pad_0),
    .y_pad_1_i(transfer_q.y_pad_1),
    .x_pad_0_i(transfer_q.x_pad_0),
    .x_pad_1_i(transfer_q.x_pad_1),
    .log_beats_i(wgt_q ? 4'(LogWgtBeats) : 4'(LogInpBeats)),
    .depth_i(wgt_q ? SramIndexBits'(WgtDepth) : SramIndexBits'(InpDepth)),
    .done_o(done),
    .waiting_o(stalled_o),
    .fault_o(loader_fault),
    .beat_valid_i(beat_valid),
    .beat_ready_o(beat_ready),
    .beat_data_i(beat_data),
    .write_o(write),
    .index_o(index),
    .zero_o(zero),
    .element_o(element)
  );

  assign inp_write_o = write && !wgt_q;
  assign inp_index_o = LogInpDepth'(index);
  assign inp_o = zero ? '0 : element[InpBits-1:0];
  assign wgt_write_o = write && wgt_q;
  assign wgt_index_o = LogWgtDepth'(index);
  assign wgt_o = element[WgtBits-1:0];

  assign fault_o = dma_fault || loader_fault;
  assign fault_code_o = loader_fault ? (wgt_q ? FaultWgt : FaultInp) : dma_fault_code;
  assign fault_address_o = loader_fault ? address_t'(index) : dma_fault_address;

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_beat : assert property (@(posedge clk_i) disable iff (!rst_ni) beat_o -> busy_o)
  else $error("data arrives for no instruction");
  assert_write : assert property (@(posedge clk_i) disable iff (!rst_ni)
      inp_write_o || wgt_write_o -> busy_o && !(inp_write_o && wgt_write_o))
  else $error("a buffer is written by no instruction, or two are by one");
  assert_no_pads : assert property (@(posedge clk_i) disable iff (!rst_ni) wgt_write_o -> !zero)
  else $error("a weight is padded");
  cover_pad : cover property (@(posedge clk_i) rst_ni && inp_write_o && zero);
  cover_fault : cover property (@(posedge clk_i) rst_ni && loader_fault && !drain_i);
  // verilog_format: on
`endif

endmodule
