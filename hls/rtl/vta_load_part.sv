// SPDX-License-Identifier: Apache-2.0
//
// What the load stage has for each of its AXI4 read masters: it reads its part of the elements of a
// LOAD of WGT, or its rows of a LOAD of INP, and writes it to the buffer.
//
// The parts of an element are the same count of neighbouring bytes. Of InpPorts masters, each has
// every InpPorts-th row of inputs. The LOAD's description must hold still from launch_i, its first
// busy cycle, until done_o. begin_i is high in the cycle after launch_i or later, but before a beat
// can come; from then on the place of the first element and the distance of rows must hold still.

module vta_load_part
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  parameter int unsigned Part = 0,
  // The largest piece of an element that is loaded.
  parameter int unsigned PieceBits = 64,
  `include "vta_parameters.svh"
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     bus_rst_ni,
  input  logic                     drain_i,
  output logic                     idle_o,
  // The LOAD.
  input  logic                     launch_i,
  input  logic                     begin_i,
  input  logic                     hold_i,           // write nothing yet
  input  logic                     wgt_i,
  input  transfer_t                transfer_i,       // of this part's rows alone
  input  address_t                 base_i,           // of the block in memory
  input  logic [             17:0] behind_i,         // elements of inputs before this part's first
  input  logic [SramIndexBits-1:0] next_row_i,       // in the buffer: see vta_block_loader
  output logic                     done_o,
  output logic                     waiting_o,        // for a beat, and for nothing else
  output logic                     beat_o,
  // The buffer.
  output logic                     write_o,
  output logic [SramIndexBits-1:0] index_o,
  output logic                     zero_o,
  output logic [    PieceBits-1:0] piece_o,
  // Faults.
  output logic                     fault_o,
  output fault_e                   fault_code_o,
  output address_t                 fault_address_o,
  // AXI4 read.
  output axi_read_req_t            axi_req_o,
  input  axi_read_rsp_t            axi_rsp_i,
  input  logic [      BusBits-1:0] axi_rdata_i
);

  localparam bit Parted = ReadPorts > 1;
  localparam int unsigned LogInpBeats = LogInpBytes - LogBusBytes;
  localparam int unsigned LogWgtBeats = LogWgtPartBytes - LogBusBytes;
  localparam address_t Offset = address_t'(Part) << LogWgtPartBytes;

  // ---- Memory -----------------------------------------------------------------------------------
  // A row of a LOAD of INP is one row of memory. So is that of a LOAD of WGT if elements have one
  // part; else each element's part is a row, and a row of elements a plane.
  logic parted;
  assign parted = Parted && wgt_i;

  address_t row_bytes;
  assign row_bytes = address_t'(transfer_i.x_stride) << LogInpBytes;
  logic [31:0] unused_dram_base;
  assign unused_dram_base = transfer_i.dram_base;

  logic dma_start_q;
  logic [15:0] dma_rows_q, dma_planes_q;
  address_t dma_address_q, dma_stride_q, dma_plane_stride_q;
  logic [RowBeatsBits-1:0] dma_row_last_q;
  always_ff @(posedge clk_i) begin
    dma_start_q <= 1'b0;
    if (launch_i) begin
      dma_start_q <= rst_ni && transfer_i.y_size != '0 && transfer_i.x_size != '0;
      dma_address_q <= base_i + (wgt_i ? Offset : address_t'(behind_i) << LogInpBytes);
      dma_rows_q <= parted ? transfer_i.x_size : transfer_i.y_size;
      dma_planes_q <= parted ? transfer_i.y_size : 16'd1;
      dma_row_last_q <= (RowBeatsBits'(parted ? 16'd1 : transfer_i.x_size)
          << (wgt_i ? LogWgtBeats : LogInpBeats)) - 1'b1;
      dma_stride_q <= parted && transfer_i.x_size != 16'd1 ? address_t'(1) << LogWgtBytes
          : wgt_i ? address_t'(transfer_i.x_stride) << LogWgtBytes : row_bytes << LogInpPorts;
      dma_plane_stride_q <= wgt_i ? address_t'(transfer_i.x_stride) << LogWgtBytes
          : row_bytes << LogInpPorts;
    end
  end

  logic beat_valid, beat_ready;
  logic [BusBits-1:0] beat_data;
  logic dma_fault;
  fault_e dma_fault_code;
  address_t dma_fault_address;

  vta_dma_read #(
    .Planes(Parted),
    `include "vta_passed.svh"
  ) u_dma (
    .clk_i,
    .rst_ni(bus_rst_ni),
    .drain_i,
    .idle_o,
    .start_i(dma_start_q),
    .address_i(dma_address_q),
    .row_last_i(dma_row_last_q),
    .rows_i(dma_rows_q),
    .stride_i(dma_stride_q),
    .planes_i(dma_planes_q),
    .plane_stride_i(dma_plane_stride_q),
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

  // ---- Buffer -----------------------------------------------------------------------------------
  logic loader_fault;

  vta_block_loader #(
    .ElementBits(PieceBits),
    `include "vta_passed.svh"
  ) u_loader (
    .clk_i,
    .rst_ni,
    .prepare_i(launch_i),
    .start_i(begin_i),
    .hold_i,
    .sram_base_i(transfer_i.sram_base),
    .next_row_i,
    .y_size_i(transfer_i.y_size),
    .x_size_i(transfer_i.x_size),
    .y_pad_0_i(transfer_i.y_pad_0),
    .y_pad_1_i(transfer_i.y_pad_1),
    .x_pad_0_i(transfer_i.x_pad_0),
    .x_pad_1_i(transfer_i.x_pad_1),
    .log_beats_i(wgt_i ? 4'(LogWgtBeats) : 4'(LogInpBeats)),
    .last_i(wgt_i ? SramIndexBits'(WgtDepth - 1) : SramIndexBits'(InpDepth - 1)),
    .done_o,
    .waiting_o,
    .fault_o(loader_fault),
    .beat_valid_i(beat_valid),
    .beat_ready_o(beat_ready),
    .beat_data_i(beat_data),
    .write_o,
    .index_o,
    .zero_o,
    .element_o(piece_o)
  );

  assign fault_o = dma_fault || loader_fault;
  assign fault_code_o = loader_fault ? (wgt_i ? FaultWgt : FaultInp) : dma_fault_code;
  assign fault_address_o = loader_fault ? address_t'(index_o) : dma_fault_address;

  if (WgtPartBits < BusBits) begin : g_check
    $error("vta_load_part: a part of a weight's element is less than a beat; take fewer ports");
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_past : assert property (@(posedge clk_i) disable iff (!rst_ni)
      loader_fault -> fault_o && fault_code_o == (wgt_i ? FaultWgt : FaultInp))
  else $error("an element past its buffer has no fault of that buffer");
  // verilog_format: on
`endif

endmodule
