// SPDX-License-Identifier: Apache-2.0
//
// Reads the program and routes its instructions: STORE to the store queue, LOAD of INP and WGT to
// the load queue, all else to the compute queue, illegal instructions included.
//
// Instructions are prefetched in bursts into a small buffer that is asked for no more than it can
// hold, so that a full queue never leaves the memory with data that nobody takes. One instruction
// is routed a cycle at best, and no faster than its beats arrive. done_o marks the end of the
// program (with insn_count_i 0, two cycles after start).

module vta_fetch
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                clk_i,
  input  logic                rst_ni,      // falls with a soft reset too
  // only with a power-on reset: bursts are drained, not forgotten
  input  logic                bus_rst_ni,
  input  logic                drain_i,
  output logic                idle_o,
  input  logic                start_i,     // level, until done_o
  input  logic [        31:0] insn_count_i,
  input  logic [        31:0] insn_addr_i,
  output logic                begin_o,     // the program begins
  output logic                done_o,
  // Queues.
  output logic [InsnBits-1:0] insn_o,
  // insn_o clamps what the last one to compute went over (vta_chain)
  output logic                continues_o,
  output logic                load_valid_o,
  input  logic                load_ready_i,
  output logic                compute_valid_o,
  input  logic                compute_ready_i,
  output logic                store_valid_o,
  input  logic                store_ready_i,
  // of the first illegal instruction that was routed to compute and to store
  output logic [        31:0] illegal_number_o,
  output logic [        31:0] illegal_store_number_o,
  // Faults and counters.
  output logic                fault_o,
  output fault_e              fault_code_o,
  output address_t            fault_address_o,
  output logic                busy_o,
  output logic                blocked_o,  // by a full queue
  output logic                stalled_o,  // by the memory
  output logic                beat_o,
  output logic                retire_o,
  // AXI4 read.
  output axi_read_req_t       axi_req_o,
  input  axi_read_rsp_t       axi_rsp_i,
  input  logic [BusBits-1:0]  axi_rdata_i
);

  `include "vta_instruction.svh"

  localparam int unsigned InsnBeats = InsnBits / BusBits;
  localparam int unsigned BeatBits = InsnBeats > 1 ? $clog2(InsnBeats) : 1;
  localparam int unsigned PrefetchBeats = 64;

  // ---- The program in beats ---------------------------------------------------------------------
  logic running_q, launch_q, dma_start_q;
  logic [RowBeatsBits-1:0] dma_row_last_q;
  logic [31:0] left_q, number_q;
  logic none_left_q, one_left_q;  // as the count says

  logic dma_valid, dma_ready, beat_valid, beat_ready;
  logic [BusBits-1:0] dma_data, beat_data;

  vta_dma_read #(
    .MaxBurstBeats(16),
    .MaxBeats(PrefetchBeats),
    .Rows(1'b0),
    `include "vta_passed.svh"
  ) u_dma (
    .clk_i,
    .rst_ni(bus_rst_ni),
    .drain_i,
    .idle_o,
    .start_i(dma_start_q),
    .address_i({{(AddrBits - 32) {1'b0}}, insn_addr_i[31:LogInsnBytes], {LogInsnBytes{1'b0}}}),
    .row_last_i(dma_row_last_q),
    .rows_i(16'd1),
    .stride_i('0),
    .planes_i(16'd1),
    .plane_stride_i('0),
    .beat_valid_o(dma_valid),
    .beat_ready_i(dma_ready),
    .beat_data_o(dma_data),
    .beat_taken_i(beat_valid && beat_ready),
    .fault_o,
    .fault_code_o,
    .fault_address_o,
    .axi_req_o,
    .axi_rsp_i,
    .axi_rdata_i
  );

  vta_fifo #(
    .Width(BusBits),
    .Depth(PrefetchBeats)
  ) u_prefetched (
    .clk_i,
    .rst_ni,
    .valid_i(dma_valid),
    .ready_o(dma_ready),
    .data_i(dma_data),
    .valid_o(beat_valid),
    .ready_i(beat_ready),
    .data_o(beat_data)
  );

  logic [LogInsnBytes-1:0] unused_address;
  assign unused_address = insn_addr_i[LogInsnBytes-1:0];

  // ---- Beats to instructions --------------------------------------------------------------------
  logic full_q;
  logic [BeatBits-1:0] beat_q;
  logic [InsnBits-1:0] insn_q;
  logic route, take;
  logic to_load, to_store, to_load_q, to_store_q;  // neither: to compute
  // Registers, so that one look-up table says whether the instruction leaves: it is offered to one
  // queue.
  logic offer_load_q, offer_store_q, offer_compute_q;

  // Routing goes on while the stages drain: none takes an instruction then.
  // Beats are of the program that runs.
  assign beat_ready = !blocked_o;
  assign take = beat_valid && beat_ready;

  // The first beat says where the instruction goes.
  always_comb begin
    to_load = to_load_q;
    to_store = to_store_q;
    if (take && beat_q == '0) begin
      to_store = beat_data[OpcodeBits-1:0] == OpStore;
      to_load = beat_data[OpcodeBits-1:0] == OpLoad
          && (3'(beat_data[MemoryTypeLsb+:MemoryTypeBits]) == MemInp
              || 3'(beat_data[MemoryTypeLsb+:MemoryTypeBits]) == MemWgt);
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      insn_q[32'(beat_q)*BusBits+:BusBits] <= beat_data;
      to_load_q <= to_load;
      to_store_q <= to_store;
      full_q <= beat_q == BeatBits'(InsnBeats - 1);
      offer_load_q <= beat_q == BeatBits'(InsnBeats - 1) && to_load;
      offer_store_q <= beat_q == BeatBits'(InsnBeats - 1) && to_store;
      offer_compute_q <= beat_q == BeatBits'(InsnBeats - 1) && !to_load && !to_store;
      beat_q <= beat_q == BeatBits'(InsnBeats - 1) ? '0 : beat_q + 1'b1;
    end else if (route) begin
      {full_q, offer_load_q, offer_store_q, offer_compute_q} <= '0;
    end
    if (!rst_ni) begin
      {full_q, offer_load_q, offer_store_q, offer_compute_q} <= '0;
      beat_q <= '0;
    end
  end

  // ---- Routing ----------------------------------------------------------------------------------
  logic offer;
  assign offer = full_q;
  assign load_valid_o = offer_load_q;
  assign store_valid_o = offer_store_q;
  assign compute_valid_o = offer_compute_q;
  assign route = (load_valid_o && load_ready_i) || (store_valid_o && store_ready_i)
      || (compute_valid_o && compute_ready_i);
  assign insn_o = insn_q;

  logic [DestinationsBits-1:0] destinations_q;  // of the last one to compute
  always_comb begin
    continues_o = 1'b0;
    if (compute_valid_o) continues_o = clamps(insn_q) && destinations_of(insn_q) == destinations_q;
  end
  always_ff @(posedge clk_i)
    if (compute_valid_o && compute_ready_i)
      destinations_q <= destinations_of(insn_q);

  // Whether an instruction is illegal is looked at in the cycle after it left: its number is there
  // before a stage takes it from its queue.
  logic route_1_q, illegal_1_q, illegal_store_1_q;
  logic illegal_seen_q, illegal_store_seen_q;
  logic [31:0] illegal_number_q, illegal_store_number_q;

  assign begin_o = start_i && !running_q && !drain_i && rst_ni;
  assign done_o = running_q && !launch_q && (none_left_q || (one_left_q && route));

  always_ff @(posedge clk_i) begin
    launch_q <= begin_o;
    dma_start_q <= begin_o && insn_count_i != '0;
    if (begin_o)
      dma_row_last_q <= (RowBeatsBits'(insn_count_i) << (LogInsnBytes - LogBusBytes)) - 1'b1;
    if (done_o) running_q <= 1'b0;
    route_1_q <= rst_ni && route;
    illegal_1_q <= illegal(insn_q);
    illegal_store_1_q <= illegal_store(insn_q);
    if (route_1_q && illegal_1_q && !illegal_seen_q) begin
      illegal_seen_q <= 1'b1;
      illegal_number_q <= number_q;
    end
    if (route_1_q && illegal_store_1_q && !illegal_store_seen_q) begin
      illegal_store_seen_q <= 1'b1;
      illegal_store_number_q <= number_q;
    end
    if (route) begin
      left_q <= left_q - 1'b1;
      none_left_q <= one_left_q;
      one_left_q <= left_q == 32'd2;
    end
    if (route_1_q) number_q <= number_q + 1'b1;
    if (begin_o) begin
      running_q <= 1'b1;
      left_q <= insn_count_i;
      none_left_q <= insn_count_i == '0;
      one_left_q <= insn_count_i == 32'd1;
      number_q <= '0;
    end
    if (!rst_ni) running_q <= 1'b0;
    if (!rst_ni || begin_o) {illegal_seen_q, illegal_store_seen_q} <= '0;
  end

  assign illegal_number_o = illegal_number_q;
  assign illegal_store_number_o = illegal_store_number_q;
  assign busy_o = running_q;
  assign blocked_o = (load_valid_o && !load_ready_i) || (store_valid_o && !store_ready_i)
      || (compute_valid_o && !compute_ready_i);
  assign stalled_o = running_q && !offer;
  assign beat_o = dma_valid && dma_ready;
  assign retire_o = route;

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_one_queue : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $countones({load_valid_o, compute_valid_o, store_valid_o}) == 32'(full_q))
  else $error("an instruction goes to two queues");
  assert_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && blocked_o) && !drain_i -> offer && $stable(insn_o))
  else $error("an instruction changed before its queue took it");
  assert_blocked : assert property (@(posedge clk_i) disable iff (!rst_ni)
      blocked_o == (offer && !route))
  else $error("an instruction is held back that leaves, or the other way round");
  assert_count : assert property (@(posedge clk_i) disable iff (!rst_ni)
      route -> running_q && left_q != '0)
  else $error("more instructions than the program has");
  assert_running : assert property (@(posedge clk_i) disable iff (!rst_ni) take -> running_q)
  else $error("fetch has a beat of no program");
  assert_left : assert property (@(posedge clk_i) disable iff (!rst_ni)
      running_q -> none_left_q == (left_q == '0) && one_left_q == (left_q == 32'd1))
  else $error("vta_fetch: a flag differs from its count");
  assert_prefetch : assert property (@(posedge clk_i) disable iff (!rst_ni)
      dma_valid && !drain_i -> dma_ready)
  else $error("fetch asked for more than it has room for");
  cover_blocked : cover property (@(posedge clk_i) rst_ni && blocked_o);
  cover_illegal : cover property (@(posedge clk_i) rst_ni && route && illegal(insn_q));
  cover_illegal_store : cover property (@(posedge clk_i)
      rst_ni && route && illegal_store(insn_q));
  // verilog_format: on
`endif

endmodule
