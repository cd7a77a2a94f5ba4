// SPDX-License-Identifier: Apache-2.0
//
// The micro-op buffer, and the LOAD that fills it at one beat a cycle.
//
// A beat holds several micro-ops, which may start anywhere in their beat and go anywhere in the
// buffer. So the buffer is a bank for each micro-op of a beat: every bank takes the lane that
// belongs to it, at a row of its own. A bank writes through one of its two ports and reads through
// both, for no instruction reads while a LOAD writes.
//
// done_o marks the last write (or, for an empty LOAD, the cycle after start_i). A LOAD that would
// pass the end of the buffer raises fault_o for the cycle after start_i, before anything is
// written. Reading: uop_o has the two micro-ops of the last cycle in which read_i was high.

module vta_uop_buffer
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  // LOAD: x_size_i micro-ops to sram_base_i on, the first in lane first_lane_i of the first beat.
  // prepare_i comes in the cycle before start_i; the description holds still in both.
  input  logic                   prepare_i,
  input  logic                   start_i,
  input  logic [           15:0] sram_base_i,
  input  logic [           15:0] x_size_i,
  input  logic [LogBusBytes-1:0] first_lane_i,
  output logic                   done_o,
  output logic                   waiting_o,
  output logic                   fault_o,
  output logic [           16:0] fault_index_o,
  output logic [LogBusBytes-1:0] lanes_o,       // micro-ops in the beat that is taken next
  input  logic                   beat_valid_i,
  output logic                   beat_ready_o,
  input  logic [    BusBits-1:0] beat_data_i,
  // Reading.
  input  logic                   read_i,
  input  logic [LogUopDepth-1:0] read_index_i[2],
  output logic [    UopBits-1:0] uop_o[2]
);

  localparam int unsigned Lanes = BusBits / UopBits;
  localparam int unsigned LogLanes = $clog2(Lanes);
  localparam int unsigned LogRows = LogUopDepth - LogLanes;
  localparam int unsigned CountBits = 18;

  // ---- Writing ----------------------------------------------------------------------------------
  // The coming beat: its lanes up to the block's end, those before the block included; whether it
  // is the last one.
  logic [CountBits-1:0] lanes_q;
  logic active_q, last_q;
  logic empty_q, fault_q;
  // Of the block: the buffer index of lane 0 of its first beat, below zero where that begins before
  // the buffer; the lane where it begins; the index where it ends; whether it begins past the
  // buffer.
  logic [CountBits-1:0] lane0_q, end_q;
  logic [LogBusBytes-1:0] first_lane_q;
  logic begin_past_q;
  // By bank: the lane of a beat whose index falls there, which is one for the whole block; its row;
  // whether it is of the block.
  logic [CountBits-1:0] bank_lane_q[Lanes];
  logic [LogRows-1:0] bank_row_q[Lanes];
  logic [Lanes-1:0] bank_write_q;

  logic take, last;
  assign beat_ready_o = active_q;
  assign take = active_q && beat_valid_i;
  assign last = last_q;

  logic [CountBits-1:0] bank_lane[Lanes];
  always_comb begin
    for (int unsigned bank = 0; bank < Lanes; bank++) bank_lane[bank] = '0;
    if (start_i) begin
      for (int unsigned bank = 0; bank < Lanes; bank++)
      bank_lane[bank] = (CountBits'(bank) - lane0_q) & CountBits'(Lanes - 1);
    end
  end

  always_ff @(posedge clk_i) begin
    empty_q <= 1'b0;
    fault_q <= 1'b0;
    if (take) begin
      active_q <= !last;
      lanes_q <= lanes_q - CountBits'(Lanes);
      last_q <= lanes_q <= CountBits'(2 * Lanes);
      for (int unsigned bank = 0; bank < Lanes; bank++) begin
        bank_row_q[bank] <= bank_row_q[bank] + 1'b1;
        bank_write_q[bank] <= bank_lane_q[bank] + CountBits'(Lanes) < lanes_q;
      end
    end
    if (prepare_i) begin
      lane0_q <= CountBits'(sram_base_i) - CountBits'(first_lane_i);
      first_lane_q <= first_lane_i;
      lanes_q <= CountBits'(first_lane_i) + CountBits'(x_size_i);
      end_q <= CountBits'(sram_base_i) + CountBits'(x_size_i);
      begin_past_q <= 17'(sram_base_i) > 17'(UopDepth);
    end
    if (start_i) begin
      empty_q <= x_size_i == '0;
      fault_q <= x_size_i != '0 && end_q > CountBits'(UopDepth);
      active_q <= x_size_i != '0 && end_q <= CountBits'(UopDepth);
      last_q <= lanes_q <= CountBits'(Lanes);
      for (int unsigned bank = 0; bank < Lanes; bank++) begin
        bank_lane_q[bank] <= bank_lane[bank];
        bank_row_q[bank] <= LogRows'((lane0_q + bank_lane[bank]) >> LogLanes);
        bank_write_q[bank] <= bank_lane[bank] >= CountBits'(first_lane_q)
            && bank_lane[bank] < lanes_q;
      end
    end
    if (!rst_ni) {active_q, empty_q, fault_q} <= '0;
  end

  assign done_o = (take && last) || empty_q;
  assign waiting_o = active_q && !beat_valid_i;
  assign fault_o = fault_q;
  assign fault_index_o = begin_past_q ? 17'(sram_base_i) : 17'(UopDepth);

  // ---- Banks ------------------------------------------------------------------------------------
  logic [Lanes-1:0] bank_write;
  logic [UopBits-1:0] bank_uop[2][Lanes];
  assign bank_write = take ? bank_write_q : '0;

  for (genvar bank = 0; bank < Lanes; bank++) begin : g_bank
    vta_dual_port_ram #(
      .Width(UopBits),
      .Depth(1 << LogRows)
    ) u_ram (
      .clk_i,
      .a_write_i(bank_write[bank]),
      .a_read_i(read_i && bank == (32'(read_index_i[0]) & (Lanes - 1))),
      .a_index_i(active_q ? bank_row_q[bank] : LogRows'(read_index_i[0] >> LogLanes)),
      .a_data_i(UopBits'(beat_data_i >> (32'(bank_lane_q[bank]) * UopBits))),
      .a_data_o(bank_uop[0][bank]),
      .b_read_i(read_i && bank == (32'(read_index_i[1]) & (Lanes - 1))),
      .b_index_i(LogRows'(read_index_i[1] >> LogLanes)),
      .b_data_o(bank_uop[1][bank])
    );
  end

  assign lanes_o = LogBusBytes'($countones(bank_write_q));

  for (genvar n = 0; n < 2; n++) begin : g_read
    logic [LogUopDepth-1:0] read_index_q;
    always_ff @(posedge clk_i) if (read_i) read_index_q <= read_index_i[n];
    assign uop_o[n] = bank_uop[n][32'(read_index_q)&(Lanes-1)];
  end

  if (UopBits > BusBits) begin : g_check
    $error("vta_uop_buffer: the bus must be at least as wide as a micro-op");
  end
  if (UopDepth < 2 * Lanes) begin : g_check_rows
    $error("vta_uop_buffer: a bank needs two rows; raise LOG_UOP_BUFF_SIZE");
  end

`ifndef SYNTHESIS
  // verilog_format: off
  assert_one_use : assert property (@(posedge clk_i) disable iff (!rst_ni)
      bank_write != '0 -> !read_i)
  else $error("the micro-op buffer was read while a LOAD wrote it");
  assert_range : assert property (@(posedge clk_i) disable iff (!rst_ni)
      bank_write != '0 -> active_q && beat_valid_i
          && $signed(end_q) <= $signed(CountBits'(UopDepth)))
  else $error("a LOAD wrote past the micro-op buffer");
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni) start_i -> !active_q)
  else $error("a LOAD of UOP began before the last one ended");
  assert_lanes : assert property (@(posedge clk_i) disable iff (!rst_ni)
      active_q -> last_q == (lanes_q <= CountBits'(Lanes)) && lanes_q != '0)
  else $error("vta_uop_buffer lost count of its lanes");
  cover_part : cover property (@(posedge clk_i) rst_ni && bank_write != '0 && bank_write != '1);
  // verilog_format: on
`endif

endmodule
