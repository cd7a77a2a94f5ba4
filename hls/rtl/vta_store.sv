// SPDX-License-Identifier: Apache-2.0
//
// The store stage: STORE from the output buffer, without pads, to memory or to the table, or to
// memory by way of the table.
//
// An instruction ends when the memory has answered every write, so that its tokens say that the
// data is there.

module vta_store
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   bus_rst_ni,
  input  logic                   drain_i,
  output logic                   idle_o,
  input  logic                   enable_i,
  input  logic [           31:0] out_addr_i,
  input  logic [           31:0] illegal_number_i,
  // Instruction queue.
  input  logic                   insn_valid_i,
  input  logic [   InsnBits-1:0] insn_i,
  output logic                   insn_ready_o,
  // Tokens from and to the compute stage.
  input  logic                   prev_valid_i,
  output logic                   prev_pop_o,
  input  logic                   prev_ready_i,
  output logic                   prev_push_o,
  // Output buffer, one cycle.
  output logic                   out_read_o,
  output logic [LogAccDepth-1:0] out_index_o,
  input  logic [    OutBits-1:0] out_i,
  // Faults and counters.
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output address_t               fault_address_o,
  output logic                   busy_o,
  output logic                   stalled_o,
  output logic                   beat_o,
  output logic                   retire_o,
  // AXI4 write.
  output axi_write_req_t         axi_req_o,
  input  axi_write_rsp_t         axi_rsp_i
);

  `include "vta_instruction.svh"

  localparam int unsigned ElementBeats = OutBits / BusBits;
  localparam int unsigned LogOutBeats = LogOutBytes - LogBusBytes;
  localparam int unsigned BeatBits = ElementBeats > 1 ? LogOutBeats : 1;

  // ---- Instruction ------------------------------------------------------------------------------
  logic take, done;
  logic idle, unused_next_pop, unused_next_push, unused_pushes_next;

  vta_sequencer u_sequencer (
    .clk_i,
    .rst_ni,
    .enable_i,
    .insn_valid_i,
    .insn_pop_prev_i(insn_i[PopPrevBit]),
    .insn_pop_next_i(1'b0),
    .insn_push_prev_i(insn_i[PushPrevBit]),
    .insn_push_next_i(1'b0),
    .prev_valid_i,
    .prev_pop_o,
    .next_valid_i(1'b1),
    .next_pop_o(unused_next_pop),
    .prev_ready_i,
    .prev_push_o,
    .next_ready_i(1'b1),
    .next_push_o(unused_next_push),
    .idle_o(idle),
    .take_o(take),
    .busy_o,
    .pushes_next_o(unused_pushes_next),
    .join_i(1'b0),
    .done_i(done),
    .retire_o
  );
  assign insn_ready_o = take;

  // What the table does: each byte goes through it (through_q), or it is written (fill_q).
  // tabled_q: either; a register of its own, since control depends on it and data on the others.
  logic through_q, fill_q, tabled_q, illegal_q;
  transfer_t transfer_q;
  logic launch_q, begin_q;  // the first busy cycle; the second, in which the transfer begins
  // All busy cycles behind these; of them, those in which the table may be written.
  logic under_way_q, under_way_d, fill_goes_q;
  assign under_way_d = (begin_q || (under_way_q && !done)) && rst_ni;
  always_ff @(posedge clk_i) begin
    launch_q <= take && rst_ni;
    begin_q <= launch_q && rst_ni;
    under_way_q <= under_way_d;
    fill_goes_q <= under_way_d && !illegal_q && !drain_i;
    // While none is in execution, whether it is taken or not: take goes to few registers.
    if (idle) begin
      transfer_q <= transfer_of(insn_i);
      through_q <= store_type_of(insn_i) == MemThrough;
      fill_q <= store_type_of(insn_i) == MemTable;
      tabled_q <= store_type_of(insn_i) == MemThrough || store_type_of(insn_i) == MemTable;
      illegal_q <= illegal_store(insn_i);
    end
  end

  logic [15:0] unused_pads;
  assign unused_pads = {
    transfer_q.y_pad_0, transfer_q.y_pad_1, transfer_q.x_pad_0, transfer_q.x_pad_1
  };

  // ---- Output buffer to beats -------------------------------------------------------------------
  // Elements are consecutive, so the reader needs no end: it reads one past the memory side's last
  // request, and is started anew by the next instruction.
  // element_q: out_i has an element; fits_q: which is not past the buffer
  logic reading_q, element_q, fits_q;
  logic [SramIndexBits-1:0] next_q, index_q;
  logic [BeatBits-1:0] beat_q;
  logic element_ends, read, beat_leaves;
  logic [BusBits-1:0] beat_data;

  assign element_ends = beat_q == BeatBits'(ElementBeats - 1);
  assign read = reading_q && (!element_q || (beat_leaves && element_ends));
  assign beat_data = out_i[32'(beat_q)*BusBits+:BusBits];

  always_ff @(posedge clk_i) begin
    if (done) reading_q <= 1'b0;
    if (read) begin
      element_q <= 1'b1;
      fits_q <= next_q < SramIndexBits'(OutDepth);
      index_q <= next_q;
      next_q <= next_q + 1'b1;
    end
    if (beat_leaves) beat_q <= element_ends ? '0 : beat_q + 1'b1;
    if (!rst_ni || begin_q) begin
      reading_q <= begin_q && rst_ni;
      {element_q, fits_q} <= '0;
      beat_q <= '0;
      next_q <= SramIndexBits'(transfer_q.sram_base);
    end
  end

  assign out_read_o = read;
  assign out_index_o = LogAccDepth'(next_q);

  // ---- Table ------------------------------------------------------------------------------------
  // The beat that is looked up, or written word by word; without the table, beats go to the memory
  // as they are read.
  localparam logic [LogTableWords-1:0] LastOfBeat = LogTableWords'(BusBits / TableWordBits - 1);
  logic held_q, held_fits_q;  // as of an element
  logic [SramIndexBits-1:0] held_index_q, at_hand_index;
  logic [BusBits-1:0] held_data_q, looked_up;
  // at_hand: there is a beat; fits: which can go
  logic at_hand, fits, ready, makes_room, fills, filled, dma_ready;
  logic [LogTableWords-1:0] fill_word_q, word_of_beat;
  logic last_word_q;  // as the number says

  assign at_hand = tabled_q ? held_q : element_q;
  assign fits = tabled_q ? held_fits_q : fits_q;
  assign at_hand_index = through_q || fill_q ? held_index_q : index_q;
  assign ready = fill_q ? fill_goes_q : dma_ready;
  assign word_of_beat = fill_word_q & LastOfBeat;

  // A beat leaves the output buffer: for the table's register when that is free, or is freed now,
  // else for the memory. Its readiness comes late, so all else is decided beside it.
  assign makes_room = tabled_q
      && (!held_q || (fill_goes_q && fill_q && held_fits_q && word_of_beat == LastOfBeat));
  assign beat_leaves = element_q && (makes_room || (dma_ready && !fill_q && fits));
  assign fills = fill_q && held_fits_q && fill_goes_q;
  assign filled = fills && last_word_q;

  if (Table) begin : g_table
    always_ff @(posedge clk_i) begin
      if (beat_leaves) begin
        held_q <= 1'b1;
        held_fits_q <= fits_q;
        held_index_q <= index_q;
        held_data_q <= beat_data;
      end
      if (fills) begin
        fill_word_q <= fill_word_q + 1'b1;
        last_word_q <= fill_word_q == LogTableWords'((1 << LogTableWords) - 2);
      end
      if (!rst_ni || begin_q) begin
        {held_q, held_fits_q} <= '0;
        fill_word_q <= '0;
        last_word_q <= 1'b0;
      end
    end

    vta_table #(
      `include "vta_passed.svh"
    ) u_table (
      .clk_i,
      .write_i(fills),
      .write_index_i(fill_word_q),
      .word_i(held_data_q[32'(word_of_beat)*TableWordBits+:TableWordBits]),
      .indices_i(held_data_q),
      .entries_o(looked_up)
    );
  end else begin : g_no_table
    assign {held_q, held_fits_q, held_index_q, held_data_q, looked_up} = '0;
    assign {fill_word_q, last_word_q} = '0;
  end

  // ---- Memory -----------------------------------------------------------------------------------
  logic dma_done, dma_fault, past;
  fault_e dma_fault_code;
  address_t dma_fault_address;

  logic dma_start_q;
  address_t dma_address_q;
  logic [RowBeatsBits-1:0] dma_row_last_q;
  always_ff @(posedge clk_i) begin
    dma_start_q <= 1'b0;
    if (launch_q) begin
      dma_start_q <= rst_ni && !fill_q && transfer_q.y_size != '0 && transfer_q.x_size != '0;
      dma_address_q <= block_address(out_addr_i, transfer_q.dram_base, LogOutBytes);
      dma_row_last_q <= (RowBeatsBits'(transfer_q.x_size) << LogOutBeats) - 1'b1;
    end
  end

  vta_dma_write #(
    `include "vta_passed.svh"
  ) u_dma (
    .clk_i,
    .rst_ni(bus_rst_ni),
    .drain_i,
    .idle_o,
    .start_i(dma_start_q),
    .address_i(dma_address_q),
    .row_last_i(dma_row_last_q),
    .rows_i(transfer_q.y_size),
    .stride_i(address_t'(transfer_q.x_stride) << LogOutBytes),
    .done_o(dma_done),
    .beat_valid_i(fits),
    .beat_ready_o(dma_ready),
    .beat_data_i(through_q ? looked_up : beat_data),
    .fault_o(dma_fault),
    .fault_code_o(dma_fault_code),
    .fault_address_o(dma_fault_address),
    .axi_req_o,
    .axi_rsp_i
  );

  assign beat_o = fits && dma_ready;
  assign past = at_hand && !fits && ready;
  always_comb begin
    done = 1'b0;
    stalled_o = 1'b0;
    if (under_way_q) begin
      done = fill_q ? filled : dma_done && !drain_i;
      stalled_o = !done && at_hand && !ready;
    end
  end

  always_comb begin
    fault_o = (launch_q && illegal_q) || dma_fault || past;
    fault_code_o = dma_fault_code;
    fault_address_o = dma_fault_address;
    if (illegal_q) begin
      fault_code_o = FaultIllegal;
      fault_address_o = address_t'(illegal_number_i);
    end else if (!dma_fault) begin
      // Of the two in one cycle that of the memory is told: it is of an earlier beat.
      fault_code_o = FaultOut;
      fault_address_o = address_t'(at_hand_index);
    end
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_beat : assert property (@(posedge clk_i) disable iff (!rst_ni)
      beat_o || out_read_o -> busy_o)
  else $error("the output buffer is read for no instruction");
  assert_under_way : assert property (@(posedge clk_i) disable iff (!rst_ni)
      under_way_q == (busy_o && !launch_q && !begin_q))
  else $error("vta_store: the flag differs from the state");
  assert_leaves : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !tabled_q -> beat_leaves == beat_o)
  else $error("vta_store: a beat leaves the output buffer and does not reach the memory");
  assert_end : assert property (@(posedge clk_i) disable iff (!rst_ni) retire_o -> dma_done)
  else $error("a STORE ended before the memory answered");
  assert_past : assert property (@(posedge clk_i) disable iff (!rst_ni)
      beat_o || fills -> at_hand_index < SramIndexBits'(OutDepth))
  else $error("a STORE reads past its buffer");
  assert_table : assert property (@(posedge clk_i) disable iff (!rst_ni)
      beat_o -> !fill_q)
  else $error("what is for the table goes to memory");
  assert_filled : assert property (@(posedge clk_i) disable iff (!rst_ni)
      retire_o && fill_q -> !illegal_q && fill_word_q == '0)
  else $error("a STORE to the table ended before the table was full");
  cover_past : cover property (@(posedge clk_i) rst_ni && past && !drain_i);
  cover_past_through : cover property (@(posedge clk_i) rst_ni && past && through_q);
  cover_past_fill : cover property (@(posedge clk_i) rst_ni && past && fill_q);
  cover_filled : cover property (@(posedge clk_i) rst_ni && filled);
  cover_illegal : cover property (@(posedge clk_i) rst_ni && launch_q && illegal_q);
  // verilog_format: on
`endif

endmodule
