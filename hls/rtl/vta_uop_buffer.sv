// SPDX-License-Identifier: Apache-2.0
//
// The micro-op buffer, and the LOAD that fills it at one beat a cycle.
//
// A beat holds several micro-ops, which may start anywhere in their beat and go anywhere in the buffer. So the buffer
// is a bank for each micro-op of a beat: every bank takes the lane that belongs to it, at a row of its own. A bank writes
// through one of its two ports and reads through both, for no instruction reads while a LOAD writes.
//
// done_o marks the last write (or, for an empty LOAD, the cycle after start_i). A LOAD that would pass the end of the
// buffer raises fault_o for the cycle after start_i, before anything is written. Reading: uop_o has the two
// micro-ops of the last cycle in which read_i was high.

module vta_uop_buffer
  import vta_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  // LOAD: x_size_i micro-ops to sram_base_i on, the first in lane first_lane_i of the first beat.
  input  logic                   start_i,
  input  logic [           15:0] sram_base_i,
  input  logic [           15:0] x_size_i,
  input  logic [LogBusBytes-1:0] first_lane_i,
  output logic                   done_o,
  output logic                   waiting_o,
  output logic                   fault_o,
  output logic [           16:0] fault_index_o,
  output logic [LogBusBytes-1:0] lanes_o,       // micro-ops in the beat that is being taken
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

  // ---- Writing -----------------------------------------------------------------------------------------------------------
  // The buffer index of lane 0 of the coming beat; below zero where the first beat begins before the block.
  logic [CountBits-1:0] lane0_q;
  logic [CountBits-1:0] begin_q, end_q;  // the block's indices are begin_q to end_q - 1
  logic active_q, empty_q, fault_q, last_q;  // last_q: the coming beat is the last one

  logic [CountBits-1:0] block_end;
  assign block_end = CountBits'(sram_base_i) + CountBits'(x_size_i);

  logic take, last;
  assign beat_ready_o = active_q;
  assign take = active_q && beat_valid_i;
  assign last = last_q;

  always_ff @(posedge clk_i) begin
    empty_q <= 1'b0;
    fault_q <= 1'b0;
    if (take) begin
      active_q <= !last;
      lane0_q <= lane0_q + CountBits'(Lanes);
      last_q <= $signed(lane0_q + CountBits'(2 * Lanes)) >= $signed(end_q);
    end
    if (start_i) begin
      empty_q <= x_size_i == '0;
      fault_q <= x_size_i != '0 && block_end > CountBits'(UopDepth);
      active_q <= x_size_i != '0 && block_end <= CountBits'(UopDepth);
      lane0_q <= CountBits'(sram_base_i) - CountBits'(first_lane_i);
      begin_q <= CountBits'(sram_base_i);
      last_q <= 17'(first_lane_i) + 17'(x_size_i) <= 17'(Lanes);
      end_q <= block_end;
    end
    if (!rst_ni) {active_q, empty_q, fault_q} <= '0;
  end

  assign done_o = (take && last) || empty_q;
  assign waiting_o = active_q && !beat_valid_i;
  assign fault_o = fault_q;
  assign fault_index_o = begin_q[16:0] > 17'(UopDepth) ? begin_q[16:0] : 17'(UopDepth);

  // ---- Banks ---------------------------------------------------------------------------------------------------------------
  logic [Lanes-1:0] bank_write;
  logic [UopBits-1:0] bank_uop[2][Lanes];

  for (genvar bank = 0; bank < Lanes; bank++) begin : g_bank
    // The lane of the beat whose index falls in this bank.
    logic [CountBits-1:0] lane, index;
    always_comb begin
      lane = '0;
      index = '0;
      bank_write[bank] = 1'b0;
      if (active_q) begin
        lane = (CountBits'(bank) - lane0_q) & CountBits'(Lanes - 1);
        index = lane0_q + lane;
        bank_write[bank] = take && $signed(index) >= $signed(begin_q) && $signed(index) < $signed(end_q);
      end
    end

    vta_dual_port_ram #(
      .Width(UopBits),
      .Depth(1 << LogRows)
    ) u_ram (
      .clk_i,
      .a_write_i(bank_write[bank]),
      .a_read_i(read_i && bank == (32'(read_index_i[0]) & (Lanes - 1))),
      .a_index_i(active_q ? LogRows'(index >> LogLanes) : LogRows'(read_index_i[0] >> LogLanes)),
      .a_data_i(UopBits'(beat_data_i >> (32'(lane) * UopBits))),
      .a_data_o(bank_uop[0][bank]),
      .b_read_i(read_i && bank == (32'(read_index_i[1]) & (Lanes - 1))),
      .b_index_i(LogRows'(read_index_i[1] >> LogLanes)),
      .b_data_o(bank_uop[1][bank])
    );
  end

  assign lanes_o = LogBusBytes'($countones(bank_write));

  for (genvar n = 0; n < 2; n++) begin : g_read
    logic [LogUopDepth-1:0] read_index_q;
    always_ff @(posedge clk_i) if (read_i) read_index_q <= read_index_i[n];
    assign uop_o[n] = bank_uop[n][32'(read_index_q)&(Lanes-1)];
  end

  if (UopBits > BusBits) begin : g_check
    $error("vta_uop_buffer: the bus must be at least as wide as a micro-op");
  end
  if (UopDepth < 2 * Lanes) begin : g_check_rows
    $error("vta_uop_buffer: a bank must have two rows; LOG_UOP_BUFF_SIZE must make two beats of the bus");
  end

`ifndef SYNTHESIS
  assert_one_use : assert property (@(posedge clk_i) disable iff (!rst_ni) bank_write != '0 |-> !read_i)
  else $error("the micro-op buffer was read while a LOAD wrote it");
`endif

endmodule
