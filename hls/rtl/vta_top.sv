// SPDX-License-Identifier: Apache-2.0
//
// The accelerator: four stages joined by instruction queues, token queues and buffers, vta_control
// with an AXI4-Lite slave for its registers, three AXI4 read masters, or four, and one AXI4 write
// master.
//
// Ports of a bus have the names that tools recognise (m_axi_fetch_araddr), not ours. Each master
// has one ID: responses come in order. Addresses and data of a master are independent of the
// others'.

module vta_top
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                clk,
  input  logic                rst_n,
  // The state that the registers show too: a program runs or is about to, has finished, has
  // faulted.
  output logic                running,
  output logic                finished,
  output logic                fault,
  // AXI4-Lite slave.
  input  logic [15:0]         s_axi_awaddr,
  input  logic                s_axi_awvalid,
  output logic                s_axi_awready,
  input  logic [31:0]         s_axi_wdata,
  input  logic [3:0]          s_axi_wstrb,
  input  logic                s_axi_wvalid,
  output logic                s_axi_wready,
  output logic [1:0]          s_axi_bresp,
  output logic                s_axi_bvalid,
  input  logic                s_axi_bready,
  input  logic [15:0]         s_axi_araddr,
  input  logic                s_axi_arvalid,
  output logic                s_axi_arready,
  output logic [31:0]         s_axi_rdata,
  output logic [1:0]          s_axi_rresp,
  output logic                s_axi_rvalid,
  input  logic                s_axi_rready,
  // AXI4 read master: fetch.
  output logic [AddrBits-1:0] m_axi_fetch_araddr,
  output logic [7:0]          m_axi_fetch_arlen,
  output logic [2:0]          m_axi_fetch_arsize,
  output logic [1:0]          m_axi_fetch_arburst,
  output logic [3:0]          m_axi_fetch_arcache,
  output logic [2:0]          m_axi_fetch_arprot,
  output logic                m_axi_fetch_arvalid,
  input  logic                m_axi_fetch_arready,
  input  logic [BusBits-1:0]  m_axi_fetch_rdata,
  input  logic [1:0]          m_axi_fetch_rresp,
  input  logic                m_axi_fetch_rlast,
  input  logic                m_axi_fetch_rvalid,
  output logic                m_axi_fetch_rready,
  // AXI4 read master: load.
  output logic [AddrBits-1:0] m_axi_load_araddr,
  output logic [7:0]          m_axi_load_arlen,
  output logic [2:0]          m_axi_load_arsize,
  output logic [1:0]          m_axi_load_arburst,
  output logic [3:0]          m_axi_load_arcache,
  output logic [2:0]          m_axi_load_arprot,
  output logic                m_axi_load_arvalid,
  input  logic                m_axi_load_arready,
  input  logic [BusBits-1:0]  m_axi_load_rdata,
  input  logic [1:0]          m_axi_load_rresp,
  input  logic                m_axi_load_rlast,
  input  logic                m_axi_load_rvalid,
  output logic                m_axi_load_rready,
  // AXI4 read masters: the others of the load stage, as many as there are; the rest ask for nothing.
  output logic [AddrBits-1:0] m_axi_weights1_araddr,
  output logic [7:0]          m_axi_weights1_arlen,
  output logic [2:0]          m_axi_weights1_arsize,
  output logic [1:0]          m_axi_weights1_arburst,
  output logic [3:0]          m_axi_weights1_arcache,
  output logic [2:0]          m_axi_weights1_arprot,
  output logic                m_axi_weights1_arvalid,
  input  logic                m_axi_weights1_arready,
  input  logic [BusBits-1:0]  m_axi_weights1_rdata,
  input  logic [1:0]          m_axi_weights1_rresp,
  input  logic                m_axi_weights1_rlast,
  input  logic                m_axi_weights1_rvalid,
  output logic                m_axi_weights1_rready,
  output logic [AddrBits-1:0] m_axi_weights2_araddr,
  output logic [7:0]          m_axi_weights2_arlen,
  output logic [2:0]          m_axi_weights2_arsize,
  output logic [1:0]          m_axi_weights2_arburst,
  output logic [3:0]          m_axi_weights2_arcache,
  output logic [2:0]          m_axi_weights2_arprot,
  output logic                m_axi_weights2_arvalid,
  input  logic                m_axi_weights2_arready,
  input  logic [BusBits-1:0]  m_axi_weights2_rdata,
  input  logic [1:0]          m_axi_weights2_rresp,
  input  logic                m_axi_weights2_rlast,
  input  logic                m_axi_weights2_rvalid,
  output logic                m_axi_weights2_rready,
  output logic [AddrBits-1:0] m_axi_weights3_araddr,
  output logic [7:0]          m_axi_weights3_arlen,
  output logic [2:0]          m_axi_weights3_arsize,
  output logic [1:0]          m_axi_weights3_arburst,
  output logic [3:0]          m_axi_weights3_arcache,
  output logic [2:0]          m_axi_weights3_arprot,
  output logic                m_axi_weights3_arvalid,
  input  logic                m_axi_weights3_arready,
  input  logic [BusBits-1:0]  m_axi_weights3_rdata,
  input  logic [1:0]          m_axi_weights3_rresp,
  input  logic                m_axi_weights3_rlast,
  input  logic                m_axi_weights3_rvalid,
  output logic                m_axi_weights3_rready,
  // AXI4 read master: compute.
  output logic [AddrBits-1:0] m_axi_compute_araddr,
  output logic [7:0]          m_axi_compute_arlen,
  output logic [2:0]          m_axi_compute_arsize,
  output logic [1:0]          m_axi_compute_arburst,
  output logic [3:0]          m_axi_compute_arcache,
  output logic [2:0]          m_axi_compute_arprot,
  output logic                m_axi_compute_arvalid,
  input  logic                m_axi_compute_arready,
  input  logic [BusBits-1:0]  m_axi_compute_rdata,
  input  logic [1:0]          m_axi_compute_rresp,
  input  logic                m_axi_compute_rlast,
  input  logic                m_axi_compute_rvalid,
  output logic                m_axi_compute_rready,
  // AXI4 write master: store.
  output logic [AddrBits-1:0] m_axi_store_awaddr,
  output logic [7:0]          m_axi_store_awlen,
  output logic [2:0]          m_axi_store_awsize,
  output logic [1:0]          m_axi_store_awburst,
  output logic [3:0]          m_axi_store_awcache,
  output logic [2:0]          m_axi_store_awprot,
  output logic                m_axi_store_awvalid,
  input  logic                m_axi_store_awready,
  output logic [BusBits-1:0]  m_axi_store_wdata,
  output logic [BusBytes-1:0] m_axi_store_wstrb,
  output logic                m_axi_store_wlast,
  output logic                m_axi_store_wvalid,
  input  logic                m_axi_store_wready,
  input  logic [1:0]          m_axi_store_bresp,
  input  logic                m_axi_store_bvalid,
  output logic                m_axi_store_bready
);

  `include "vta_instruction.svh"

  localparam logic [1:0] AxiBurstIncr = 2'b01;
  localparam logic [3:0] AxiCache = 4'b0011;  // normal, bufferable, not cached: the driver flushes

  // ---- Control ----------------------------------------------------------------------------------
  // Arrays are in register page order: fetch, load, compute, store.
  logic stage_rst_n, stop, drain, start_fetch, fetch_begins, fetch_done, finish;
  logic [Stages-1:1] enable;
  logic compute_repeat, fetch_blocked;
  logic [31:0] insn_count, insn_addr, inp_addr, wgt_addr, uop_addr, bias_addr, out_addr;
  logic idle[Stages], stage_fault[Stages];
  fault_e stage_fault_code[Stages];
  address_t stage_fault_address[Stages];
  logic [2:0] gemm_issue;
  logic busy[Stages], stalled[Stages], beat[Stages], retire[Stages];
  logic [LogBusBytes:0] compute_beat_bytes;
  logic [BeatBytesBits-1:0] beat_bytes[Stages];
  assign beat_bytes[0] = BeatBytesBits'(BusBytes);
  assign beat_bytes[2] = BeatBytesBits'(compute_beat_bytes);
  assign beat_bytes[3] = BeatBytesBits'(BusBytes);

  vta_control #(
    `include "vta_passed.svh"
  ) u_control (
    .clk_i(clk),
    .rst_ni(rst_n),
    .running_o(running),
    .finished_o(finished),
    .fault_o(fault),
    .awaddr_i(s_axi_awaddr),
    .awvalid_i(s_axi_awvalid),
    .awready_o(s_axi_awready),
    .wdata_i(s_axi_wdata),
    .wstrb_i(s_axi_wstrb),
    .wvalid_i(s_axi_wvalid),
    .wready_o(s_axi_wready),
    .bresp_o(s_axi_bresp),
    .bvalid_o(s_axi_bvalid),
    .bready_i(s_axi_bready),
    .araddr_i(s_axi_araddr),
    .arvalid_i(s_axi_arvalid),
    .arready_o(s_axi_arready),
    .rdata_o(s_axi_rdata),
    .rresp_o(s_axi_rresp),
    .rvalid_o(s_axi_rvalid),
    .rready_i(s_axi_rready),
    .stage_rst_no(stage_rst_n),
    .stop_o(stop),
    .drain_o(drain),
    .start_fetch_o(start_fetch),
    .enable_o(enable),
    .compute_repeat_o(compute_repeat),
    .insn_count_o(insn_count),
    .insn_addr_o(insn_addr),
    .inp_addr_o(inp_addr),
    .wgt_addr_o(wgt_addr),
    .uop_addr_o(uop_addr),
    .bias_addr_o(bias_addr),
    .out_addr_o(out_addr),
    .fetch_begins_i(fetch_begins),
    .fetch_done_i(fetch_done),
    .finish_i(finish),
    .idle_i(idle),
    .fault_i(stage_fault),
    .fault_code_i(stage_fault_code),
    .fault_address_i(stage_fault_address),
    .gemm_issue_i(gemm_issue),
    .fetch_blocked_i(fetch_blocked),
    .busy_i(busy),
    .stalled_i(stalled),
    .beat_i(beat),
    .beat_bytes_i(beat_bytes),
    .retire_i(retire)
  );

  // ---- Queues -----------------------------------------------------------------------------------
  logic [InsnBits-1:0] fetch_insn;
  logic
      fetch_load_valid,
      fetch_load_ready,
      fetch_compute_valid,
      fetch_compute_ready,
      fetch_store_valid,
      fetch_store_ready;
  logic load_insn_valid, load_insn_ready;
  logic [InsnBits-1:0] load_insn;
  vta_fifo #(
    .Width(InsnBits),
    .Depth(InsnQueueDepth)
  ) u_load_queue (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .valid_i(fetch_load_valid),
    .ready_o(fetch_load_ready),
    .data_i(fetch_insn),
    .valid_o(load_insn_valid),
    .ready_i(load_insn_ready),
    .data_o(load_insn)
  );
  logic compute_insn_valid, compute_insn_take, compute_insn_join;
  logic fetch_continues, compute_continues;
  logic [InsnBits-1:0] compute_insn;
  vta_fifo #(
    .Width(InsnBits + 1),
    .Depth(InsnQueueDepth)
  ) u_compute_queue (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .valid_i(fetch_compute_valid),
    .ready_o(fetch_compute_ready),
    .data_i({fetch_continues, fetch_insn}),
    .valid_o(compute_insn_valid),
    .ready_i(compute_insn_take || compute_insn_join),
    .data_o({compute_continues, compute_insn})
  );
  logic store_insn_valid, store_insn_ready;
  logic [InsnBits-1:0] store_insn;
  vta_fifo #(
    .Width(InsnBits),
    .Depth(InsnQueueDepth)
  ) u_store_queue (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .valid_i(fetch_store_valid),
    .ready_o(fetch_store_ready),
    .data_i(fetch_insn),
    .valid_o(store_insn_valid),
    .ready_i(store_insn_ready),
    .data_o(store_insn)
  );

  logic load_to_compute_push, load_to_compute_ready, load_to_compute_pop, load_to_compute_valid;
  vta_token_queue #(
    .Depth(TokenQueueDepth)
  ) u_load_to_compute (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .push_i(load_to_compute_push),
    .ready_o(load_to_compute_ready),
    .pop_i(load_to_compute_pop),
    .valid_o(load_to_compute_valid)
  );
  logic compute_to_load_push, compute_to_load_ready, compute_to_load_pop, compute_to_load_valid;
  vta_token_queue #(
    .Depth(TokenQueueDepth)
  ) u_compute_to_load (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .push_i(compute_to_load_push),
    .ready_o(compute_to_load_ready),
    .pop_i(compute_to_load_pop),
    .valid_o(compute_to_load_valid)
  );
  logic compute_to_store_push, compute_to_store_ready, compute_to_store_pop, compute_to_store_valid;
  vta_token_queue #(
    .Depth(TokenQueueDepth)
  ) u_compute_to_store (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .push_i(compute_to_store_push),
    .ready_o(compute_to_store_ready),
    .pop_i(compute_to_store_pop),
    .valid_o(compute_to_store_valid)
  );
  logic store_to_compute_push, store_to_compute_ready, store_to_compute_pop, store_to_compute_valid;
  vta_token_queue #(
    .Depth(TokenQueueDepth)
  ) u_store_to_compute (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .push_i(store_to_compute_push),
    .ready_o(store_to_compute_ready),
    .pop_i(store_to_compute_pop),
    .valid_o(store_to_compute_valid)
  );

  // ---- Stages -----------------------------------------------------------------------------------
  axi_read_req_t fetch_req, load_req, compute_req, weights_req[1:MostReadPorts-1];
  axi_read_rsp_t fetch_rsp, load_rsp, compute_rsp, weights_rsp[1:MostReadPorts-1];
  logic [BusBits-1:0] weights_rdata[1:MostReadPorts-1];
  axi_write_req_t store_req;
  axi_write_rsp_t store_rsp;
  logic [31:0] illegal_number, illegal_store_number;

  vta_fetch #(
    `include "vta_passed.svh"
  ) u_fetch (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .bus_rst_ni(rst_n),
    .drain_i(drain),
    .idle_o(idle[0]),
    .start_i(start_fetch),
    .insn_count_i(insn_count),
    .insn_addr_i(insn_addr),
    .begin_o(fetch_begins),
    .done_o(fetch_done),
    .insn_o(fetch_insn),
    .continues_o(fetch_continues),
    .load_valid_o(fetch_load_valid),
    .load_ready_i(fetch_load_ready),
    .compute_valid_o(fetch_compute_valid),
    .compute_ready_i(fetch_compute_ready),
    .store_valid_o(fetch_store_valid),
    .store_ready_i(fetch_store_ready),
    .illegal_number_o(illegal_number),
    .illegal_store_number_o(illegal_store_number),
    .fault_o(stage_fault[0]),
    .fault_code_o(stage_fault_code[0]),
    .fault_address_o(stage_fault_address[0]),
    .busy_o(busy[0]),
    .blocked_o(fetch_blocked),
    .stalled_o(stalled[0]),
    .beat_o(beat[0]),
    .retire_o(retire[0]),
    .axi_req_o(fetch_req),
    .axi_rsp_i(fetch_rsp),
    .axi_rdata_i(m_axi_fetch_rdata)
  );

  // Buffers between the stages.
  logic operand_read, out_read;
  logic [InpRams-1:0] inp_write;
  logic [ReadPorts-1:0] wgt_write;
  logic [LogInpDepth-1:0] inp_write_index, inp_read_index;
  logic [ReadPorts-1:0][LogWgtDepth-1:0] wgt_write_index;
  logic [LogWgtDepth-1:0] wgt_read_index;
  banks_t out_write;
  rows_t out_write_row;
  logic [LogAccDepth-1:0] out_read_index;
  logic [InpBits-1:0] inp_write_data, inp_read_data;
  logic [ReadPorts-1:0][WgtPartBits-1:0] wgt_write_data, wgt_read_data;
  logic [OutBits-1:0] out_write_data[AccBanks], out_read_data;

  vta_load #(
    `include "vta_passed.svh"
  ) u_load (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .bus_rst_ni(rst_n),
    .drain_i(drain),
    .idle_o(idle[1]),
    .enable_i(enable[1]),
    .inp_addr_i(inp_addr),
    .wgt_addr_i(wgt_addr),
    .insn_valid_i(load_insn_valid),
    .insn_i(load_insn),
    .insn_ready_o(load_insn_ready),
    .next_valid_i(compute_to_load_valid),
    .next_pop_o(compute_to_load_pop),
    .next_ready_i(load_to_compute_ready),
    .next_push_o(load_to_compute_push),
    .inp_write_o(inp_write),
    .inp_index_o(inp_write_index),
    .inp_o(inp_write_data),
    .wgt_write_o(wgt_write),
    .wgt_index_o(wgt_write_index),
    .wgt_o(wgt_write_data),
    .fault_o(stage_fault[1]),
    .fault_code_o(stage_fault_code[1]),
    .fault_address_o(stage_fault_address[1]),
    .busy_o(busy[1]),
    .stalled_o(stalled[1]),
    .beat_o(beat[1]),
    .beat_bytes_o(beat_bytes[1]),
    .retire_o(retire[1]),
    .axi_req_o(load_req),
    .axi_rsp_i(load_rsp),
    .axi_rdata_i(m_axi_load_rdata),
    .weights_req_o(weights_req),
    .weights_rsp_i(weights_rsp),
    .weights_rdata_i(weights_rdata)
  );

  vta_compute #(
    `include "vta_passed.svh"
  ) u_compute (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .bus_rst_ni(rst_n),
    .stop_i(stop),
    .idle_o(idle[2]),
    .enable_i(enable[2]),
    .repeat_i(compute_repeat),
    .uop_addr_i(uop_addr),
    .bias_addr_i(bias_addr),
    .illegal_number_i(illegal_number),
    .finish_o(finish),
    .insn_valid_i(compute_insn_valid),
    .insn_i(compute_insn),
    .insn_continues_i(compute_continues),
    .insn_take_o(compute_insn_take),
    .insn_join_o(compute_insn_join),
    .prev_valid_i(load_to_compute_valid),
    .prev_pop_o(load_to_compute_pop),
    .prev_ready_i(compute_to_load_ready),
    .prev_push_o(compute_to_load_push),
    .next_valid_i(store_to_compute_valid),
    .next_pop_o(store_to_compute_pop),
    .next_ready_i(compute_to_store_ready),
    .next_push_o(compute_to_store_push),
    .operand_read_o(operand_read),
    .inp_index_o(inp_read_index),
    .inp_i(inp_read_data),
    .wgt_index_o(wgt_read_index),
    .wgt_i(wgt_read_data),
    .out_write_o(out_write),
    .out_row_o(out_write_row),
    .out_o(out_write_data),
    .fault_o(stage_fault[2]),
    .fault_code_o(stage_fault_code[2]),
    .fault_address_o(stage_fault_address[2]),
    .busy_o(busy[2]),
    .stalled_o(stalled[2]),
    .beat_o(beat[2]),
    .beat_bytes_o(compute_beat_bytes),
    .retire_o(retire[2]),
    .gemm_issue_o(gemm_issue),
    .axi_req_o(compute_req),
    .axi_rsp_i(compute_rsp),
    .axi_rdata_i(m_axi_compute_rdata)
  );

  vta_store #(
    `include "vta_passed.svh"
  ) u_store (
    .clk_i(clk),
    .rst_ni(stage_rst_n),
    .bus_rst_ni(rst_n),
    .drain_i(drain),
    .idle_o(idle[3]),
    .enable_i(enable[3]),
    .out_addr_i(out_addr),
    .illegal_number_i(illegal_store_number),
    .insn_valid_i(store_insn_valid),
    .insn_i(store_insn),
    .insn_ready_o(store_insn_ready),
    .prev_valid_i(compute_to_store_valid),
    .prev_pop_o(compute_to_store_pop),
    .prev_ready_i(store_to_compute_ready),
    .prev_push_o(store_to_compute_push),
    .out_read_o(out_read),
    .out_index_o(out_read_index),
    .out_i(out_read_data),
    .fault_o(stage_fault[3]),
    .fault_code_o(stage_fault_code[3]),
    .fault_address_o(stage_fault_address[3]),
    .busy_o(busy[3]),
    .stalled_o(stalled[3]),
    .beat_o(beat[3]),
    .retire_o(retire[3]),
    .axi_req_o(store_req),
    .axi_rsp_i(store_rsp)
  );

  vta_operands #(
    `include "vta_passed.svh"
  ) u_operands (
    .clk_i(clk),
    .inp_write_i(inp_write),
    .inp_write_index_i(inp_write_index),
    .inp_i(inp_write_data),
    .wgt_write_i(wgt_write),
    .wgt_write_index_i(wgt_write_index),
    .wgt_i(wgt_write_data),
    .read_i(operand_read),
    .inp_read_index_i(inp_read_index),
    .inp_o(inp_read_data),
    .wgt_read_index_i(wgt_read_index),
    .wgt_o(wgt_read_data)
  );

  vta_out_buffer #(
    `include "vta_passed.svh"
  ) u_out (
    .clk_i(clk),
    .write_i(out_write),
    .write_row_i(out_write_row),
    .data_i(out_write_data),
    .read_i(out_read),
    .read_index_i(out_read_index),
    .data_o(out_read_data)
  );

  // ---- Buses ------------------------------------------------------------------------------------
  // Size, burst, cache, protection.
  localparam logic [11:0] Beats = {3'(LogBusBytes), AxiBurstIncr, AxiCache, 3'd0};
  assign {m_axi_fetch_araddr, m_axi_fetch_arlen, m_axi_fetch_arvalid, m_axi_fetch_rready} = fetch_req;
  assign {m_axi_fetch_arsize, m_axi_fetch_arburst, m_axi_fetch_arcache, m_axi_fetch_arprot} = Beats;
  assign fetch_rsp = {m_axi_fetch_arready, m_axi_fetch_rresp, m_axi_fetch_rlast, m_axi_fetch_rvalid};
  assign {m_axi_load_araddr, m_axi_load_arlen, m_axi_load_arvalid, m_axi_load_rready} = load_req;
  assign {m_axi_load_arsize, m_axi_load_arburst, m_axi_load_arcache, m_axi_load_arprot} = Beats;
  assign load_rsp = {m_axi_load_arready, m_axi_load_rresp, m_axi_load_rlast, m_axi_load_rvalid};
  assign {m_axi_compute_araddr, m_axi_compute_arlen, m_axi_compute_arvalid, m_axi_compute_rready} = compute_req;
  assign {m_axi_compute_arsize, m_axi_compute_arburst, m_axi_compute_arcache, m_axi_compute_arprot} = Beats;
  assign compute_rsp = {m_axi_compute_arready, m_axi_compute_rresp, m_axi_compute_rlast, m_axi_compute_rvalid};
  assign {m_axi_weights1_araddr, m_axi_weights1_arlen, m_axi_weights1_arvalid, m_axi_weights1_rready} = weights_req[1];
  assign {m_axi_weights1_arsize, m_axi_weights1_arburst, m_axi_weights1_arcache, m_axi_weights1_arprot} = Beats;
  assign weights_rsp[1] = {m_axi_weights1_arready, m_axi_weights1_rresp, m_axi_weights1_rlast, m_axi_weights1_rvalid};
  assign weights_rdata[1] = m_axi_weights1_rdata;
  assign {m_axi_weights2_araddr, m_axi_weights2_arlen, m_axi_weights2_arvalid, m_axi_weights2_rready} = weights_req[2];
  assign {m_axi_weights2_arsize, m_axi_weights2_arburst, m_axi_weights2_arcache, m_axi_weights2_arprot} = Beats;
  assign weights_rsp[2] = {m_axi_weights2_arready, m_axi_weights2_rresp, m_axi_weights2_rlast, m_axi_weights2_rvalid};
  assign weights_rdata[2] = m_axi_weights2_rdata;
  assign {m_axi_weights3_araddr, m_axi_weights3_arlen, m_axi_weights3_arvalid, m_axi_weights3_rready} = weights_req[3];
  assign {m_axi_weights3_arsize, m_axi_weights3_arburst, m_axi_weights3_arcache, m_axi_weights3_arprot} = Beats;
  assign weights_rsp[3] = {m_axi_weights3_arready, m_axi_weights3_rresp, m_axi_weights3_rlast, m_axi_weights3_rvalid};
  assign weights_rdata[3] = m_axi_weights3_rdata;
  assign m_axi_store_awaddr = store_req.awaddr;
  assign m_axi_store_awlen = store_req.awlen;
  assign m_axi_store_awvalid = store_req.awvalid;
  assign m_axi_store_wdata = store_req.wdata;
  assign m_axi_store_wstrb = store_req.wstrb;
  assign m_axi_store_wlast = store_req.wlast;
  assign m_axi_store_wvalid = store_req.wvalid;
  assign m_axi_store_bready = store_req.bready;
  assign store_rsp.awready = m_axi_store_awready;
  assign store_rsp.wready = m_axi_store_wready;
  assign store_rsp.bresp = m_axi_store_bresp;
  assign store_rsp.bvalid = m_axi_store_bvalid;
  assign {m_axi_store_awsize, m_axi_store_awburst, m_axi_store_awcache, m_axi_store_awprot} = Beats;

  if (LogInpWidth != 3 || LogWgtWidth != 3 || LogAccWidth != 5) begin : g_check_widths
    $error("vta_top: LOG_INP_WIDTH, LOG_WGT_WIDTH, LOG_ACC_WIDTH must be 3, 3, 5");
  end
  if (BusBits != 64 && BusBits != 128) begin : g_check_bus
    $error("vta_top: BusBits must be 64 or 128");
  end
  if (InpBits < BusBits || WgtBits < BusBits) begin : g_check_elements
    $error("vta_top: the bus is wider than an element; choose a narrower bus or larger blocks");
  end
  if (AccDepth < 4) begin : g_check_banks
    $error("vta_top: a bank of the accumulator needs two rows; raise LOG_ACC_BUFF_SIZE");
  end
  if (ReadPorts != 1 && ReadPorts != 2 && ReadPorts != MostReadPorts) begin : g_check_ports
    $error("vta_top: ReadPorts must be 1, 2 or 4");
  end
  if (IsaRevision > 2) begin : g_check_isa
    $error("vta_top: IsaRevision must be 0 (A), 1 (B) or 2 (wide)");
  end
  if (!IsaWide && (WgtFactorInLsb + WgtFactorBits > 128 || ImmLsb + 16 > 128
      || IterInLsb + IterBits > 64
      || UopWgtLsb + UopWgtBits > 32)) begin : g_check_fields
    $error("vta_top: a field overflows its word; these parameters need the wide ISA");
  end

`ifndef SYNTHESIS
  // verilog_format: off
  assert_one_queue : assert property (@(posedge clk) disable iff (!rst_n)
      stage_rst_n -> $onehot0({fetch_load_valid, fetch_compute_valid, fetch_store_valid}))
  else $error("an instruction goes to two stages");
  // verilog_format: on
`endif

endmodule
