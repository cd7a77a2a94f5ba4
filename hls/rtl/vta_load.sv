// SPDX-License-Identifier: Apache-2.0
//
// The load stage: LOAD of INP and WGT. Pads of WGT loads are ignored, as the public hardware does.
//
// With two or four read ports each of them reads its part of every weight, all at once, and the rows
// of inputs in turn. The parts of a weight are written apart, inputs in turn; a LOAD ends with the
// last one.
//
// Cycle costs of a LOAD: see docs/microarchitecture.md.

module vta_load
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
  output logic [    InpRams-1:0] inp_write_o,
  output logic [LogInpDepth-1:0] inp_index_o,
  output logic [    InpBits-1:0] inp_o,
  output logic [ReadPorts-1:0]                  wgt_write_o,
  output logic [ReadPorts-1:0][LogWgtDepth-1:0] wgt_index_o,
  output logic [ReadPorts-1:0][WgtPartBits-1:0] wgt_o,
  // Faults and counters.
  output logic                   fault_o,
  output fault_e                 fault_code_o,
  output address_t               fault_address_o,
  output logic                   busy_o,
  output logic                   stalled_o,
  output logic                   beat_o,
  output logic [BeatBytesBits-1:0] beat_bytes_o,
  output logic                   retire_o,
  // AXI4 read: the first port, and the others of those that there are.
  output axi_read_req_t          axi_req_o,
  input  axi_read_rsp_t          axi_rsp_i,
  input  logic [BusBits-1:0]     axi_rdata_i,
  output axi_read_req_t          weights_req_o[1:MostReadPorts-1],
  input  axi_read_rsp_t          weights_rsp_i[1:MostReadPorts-1],
  input  logic [BusBits-1:0]     weights_rdata_i[1:MostReadPorts-1]
);

  `include "vta_instruction.svh"

  // ---- Instruction ------------------------------------------------------------------------------
  logic take, done, sequencer_busy;
  logic idle, unused_prev_pop, unused_prev_push, unused_pushes_next;

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
    .idle_o(idle),
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
  lanes_t lanes_q;
  // Where the block begins in memory, its rows that each part has, and three of its strides.
  address_t base_q;
  logic [ReadPorts-1:0][15:0] rows_q;
  logic [17:0] three_strides_q;
  logic to_wgt;
  assign to_wgt = memory_type_of(insn_i) == MemWgt;
  always_ff @(posedge clk_i) begin
    launch_q <= take && rst_ni;
    begin_q <= launch_q && rst_ni;
    // While none is in execution, whether it is taken or not: take goes to few registers.
    if (idle) begin
      transfer_q <= transfer_of(insn_i);
      if (to_wgt) begin
        transfer_q.y_pad_0 <= '0;
        transfer_q.y_pad_1 <= '0;
        transfer_q.x_pad_0 <= '0;
        transfer_q.x_pad_1 <= '0;
      end
      wgt_q <= to_wgt;
      lanes_q <= lanes_of(insn_i);
      base_q <= to_wgt
          ? block_address(wgt_addr_i, insn_i[DramBaseLsb+:32], LogWgtBytes)
          : block_address(inp_addr_i, insn_i[DramBaseLsb+:32], LogInpBytes);
      three_strides_q <= 18'(insn_i[XStrideLsb+:16]) + (18'(insn_i[XStrideLsb+:16]) << 1);
      // Of inputs, the first part has row 0, InpPorts, and so on; of weights all have all rows.
      for (int p = 0; p < ReadPorts; p++)
      rows_q[p] <= to_wgt || p >= InpPorts ? insn_i[YSizeLsb+:16]
          : 16'((17'(insn_i[YSizeLsb+:16]) + 17'(InpPorts - 1 - p)) >> LogInpPorts);
    end
  end

  // ---- The parts of the LOAD --------------------------------------------------------------------
  logic [ReadPorts-1:0] part_done, part_beat, part_write, part_zero, part_idle;
  logic [ReadPorts-1:0] part_fault;
  fault_e part_fault_code[ReadPorts];
  address_t part_fault_address[ReadPorts];
  logic [ReadPorts-1:0][SramIndexBits-1:0] index;
  // When the loaders begin, their blocks, and the rows that these have in the buffer.
  logic [ReadPorts-1:0] part_begin;
  logic hold;
  transfer_t part_transfer[ReadPorts];
  logic [SramIndexBits-1:0] next_row;
  logic [InpPorts-1:0][InpBits-1:0] inputs;

  axi_read_req_t part_req[ReadPorts];
  axi_read_rsp_t part_rsp[ReadPorts];
  logic [BusBits-1:0] part_rdata[ReadPorts];
  logic [ReadPorts-1:0] part_waiting;

  for (genvar p = 0; p < ReadPorts; p++) begin : g_part
    // The largest piece of an element that it loads.
    localparam int unsigned PieceBits = p < InpPorts && InpBits > WgtPartBits ? InpBits : WgtPartBits;
    logic [PieceBits-1:0] piece;
    logic takes_part;
    assign takes_part = p < InpPorts || wgt_q;

    vta_load_part #(
      .Part(p),
      .PieceBits(PieceBits),
      `include "vta_passed.svh"
    ) u_part (
      .clk_i,
      .rst_ni,
      .bus_rst_ni,
      .drain_i,
      .idle_o(part_idle[p]),
      .launch_i(launch_q && takes_part),
      .begin_i(part_begin[p]),
      .hold_i(hold),
      .wgt_i(wgt_q),
      .transfer_i(part_transfer[p]),
      .base_i(base_q),
      .behind_i(p == 3 ? three_strides_q : 18'(p) * 18'(transfer_q.x_stride)),
      .next_row_i(next_row),
      .done_o(part_done[p]),
      .waiting_o(part_waiting[p]),
      .beat_o(part_beat[p]),
      .write_o(part_write[p]),
      .index_o(index[p]),
      .zero_o(part_zero[p]),
      .piece_o(piece),
      .fault_o(part_fault[p]),
      .fault_code_o(part_fault_code[p]),
      .fault_address_o(part_fault_address[p]),
      .axi_req_o(part_req[p]),
      .axi_rsp_i(part_rsp[p]),
      .axi_rdata_i(part_rdata[p])
    );
    if (p < InpPorts) begin : g_inputs
      assign inputs[p] = piece[InpBits-1:0];
    end
    assign wgt_o[p] = piece[WgtPartBits-1:0];
    assign wgt_write_o[p] = part_write[p] && wgt_q;
    assign wgt_index_o[p] = LogWgtDepth'(index[p]);
  end
  assign stalled_o = part_waiting[0];
  logic unused_waiting;
  assign unused_waiting = ^part_waiting;

  assign axi_req_o = part_req[0];
  assign part_rsp[0] = axi_rsp_i;
  assign part_rdata[0] = axi_rdata_i;
  for (genvar p = 1; p < MostReadPorts; p++) begin : g_port
    if (p < ReadPorts) begin : g_there
      assign weights_req_o[p] = part_req[p];
      assign part_rsp[p] = weights_rsp_i[p];
      assign part_rdata[p] = weights_rdata_i[p];
    end else begin : g_none
      logic unused_weights;
      assign unused_weights = ^{weights_rsp_i[p], weights_rdata_i[p]};
      assign weights_req_o[p] = '0;
    end
  end
  assign idle_o = part_idle == '1;
  assign beat_o = part_beat != '0;

  always_comb begin
    beat_bytes_o = '0;
    for (int beats = 1; beats < 1 << ReadPorts; beats++)
    if (part_beat == ReadPorts'(beats)) beat_bytes_o = BeatBytesBits'($countones(beats) * BusBytes);
  end

  // ---- Inputs, and the end of a LOAD --------------------------------------------------------------
  logic inp_write, inp_zero;
  logic [LogInpDepth-1:0] inp_index;
  logic [InpBits-1:0] input_element;
  logic past;  // the inputs do not fit: nothing is written

  if (ReadPorts > 1) begin : g_together
    logic pads_done, pad, placed;
    logic [LogInpDepth-1:0] pad_index;
    logic [InpPorts-1:0][LogInpDepth-1:0] first, element_index;
    logic [SramIndexBits-1:0] next_row_of_inputs;

    vta_inp_pads #(
      `include "vta_passed.svh"
    ) u_pads (
      .clk_i,
      .rst_ni,
      .launch_i(launch_q && !wgt_q),
      .transfer_i(transfer_q),
      .placed_o(placed),
      .first_o(first),
      .next_row_o(next_row_of_inputs),
      .past_o(past),
      .hold_o(hold),
      .done_o(pads_done),
      .write_o(pad),
      .index_o(pad_index)
    );
    logic weights_begin_q;
    always_ff @(posedge clk_i) weights_begin_q <= launch_q && wgt_q && rst_ni;
    always_comb begin
      for (int p = 0; p < ReadPorts; p++)
      part_begin[p] = weights_begin_q || (placed && p < InpPorts);
    end
    assign next_row = wgt_q ? SramIndexBits'(1) : next_row_of_inputs;

    always_comb begin
      for (int p = 0; p < ReadPorts; p++) begin
        part_transfer[p] = transfer_q;
        part_transfer[p].y_size = rows_q[p];
        {part_transfer[p].y_pad_0, part_transfer[p].y_pad_1} = '0;
        {part_transfer[p].x_pad_0, part_transfer[p].x_pad_1} = '0;
      end
      for (int p = 0; p < InpPorts; p++) begin
        if (!wgt_q) part_transfer[p].sram_base = 16'(first[p]);
        element_index[p] = LogInpDepth'(index[p]);
      end
    end

    logic [InpPorts-1:0] ended;
    vta_inp_turns #(
      `include "vta_passed.svh"
    ) u_turns (
      .clk_i,
      .rst_ni,
      .start_i(begin_q),
      .valid_i(part_write[InpPorts-1:0] & {InpPorts{!wgt_q}}),
      .last_i(part_done[InpPorts-1:0] & {InpPorts{!wgt_q}}),
      .index_i(element_index),
      .element_i(inputs),
      .ended_o(ended),
      .pad_i(pad),
      .pad_index_i(pad_index),
      .write_o(inp_write),
      .zero_o(inp_zero),
      .index_o(inp_index),
      .element_o(input_element)
    );

    // A part that has ended waits for the others, and the data for the pads.
    logic [ReadPorts:0] ends, ended_q;
    always_comb begin
      ends = {pads_done, part_done};
      if (!wgt_q) ends[InpPorts-1:0] = ended;
    end
    always_ff @(posedge clk_i) begin
      ended_q <= ended_q | ends;
      if (launch_q) begin
        ended_q[ReadPorts] <= wgt_q;
        for (int p = 0; p < ReadPorts; p++) ended_q[p] <= !wgt_q && p >= InpPorts;
      end
      if (!rst_ni || done) ended_q <= '0;
    end
    assign done = ended_q == '1;
`ifndef SYNTHESIS
    // verilog_format: off
    assert_once : assert property (@(posedge clk_i) disable iff (!rst_ni) (ends & ended_q) == '0)
    else $error("a part of a LOAD ended twice");
    assert_unpadded : assert property (@(posedge clk_i) disable iff (!rst_ni)
        (part_write & part_zero) == '0)
    else $error("a part of a LOAD has a pad");
    cover_apart : cover property (@(posedge clk_i)
        rst_ni && ends != '0 && (ends | ended_q) != '1 && wgt_q);
    // verilog_format: on
`endif
  end else begin : g_alone
    assign done = part_done[0];
    assign part_begin[0] = begin_q;
    assign hold = 1'b0;
    assign past = 1'b0;
    always_comb begin
      part_transfer[0] = transfer_q;
      part_transfer[0].y_size = rows_q[0];
    end
    assign next_row = SramIndexBits'(1);
    assign inp_write = part_write[0] && !wgt_q;
    assign inp_zero = part_zero[0];
    assign inp_index = LogInpDepth'(index[0]);
    assign input_element = inputs[0];
  end

  logic [InpBits-1:0] moved;
  vta_lanes #(
    `include "vta_passed.svh"
  ) u_lanes (
    .clk_i,
    .shift_i(lanes_q.shift),
    .element_i(input_element),
    .element_o(moved)
  );

  assign inp_write_o = inp_write ? ~lanes_q.kept : '0;
  assign inp_index_o = inp_index;
  assign inp_o = inp_zero ? '0 : moved;

  // Of faults in one cycle that of the first part is kept.
  always_comb begin
    fault_o = part_fault != '0 || past;
    fault_code_o = part_fault_code[ReadPorts-1];
    fault_address_o = part_fault_address[ReadPorts-1];
    for (int p = ReadPorts - 2; p >= 0; p--)
    if (part_fault[p]) begin
      fault_code_o = part_fault_code[p];
      fault_address_o = part_fault_address[p];
    end
    if (past) begin
      fault_code_o = FaultInp;
      fault_address_o = transfer_q.sram_base >> LogInpDepth != '0 ? address_t'(transfer_q.sram_base)
          : address_t'(InpDepth);
    end
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_beat : assert property (@(posedge clk_i) disable iff (!rst_ni) beat_o -> busy_o)
  else $error("data arrives for no instruction");
  assert_write : assert property (@(posedge clk_i) disable iff (!rst_ni)
      inp_write_o != '0 || wgt_write_o != '0 -> busy_o && !(inp_write_o != '0 && wgt_write_o != '0))
  else $error("a buffer is written by no instruction, or two are by one");
  assert_no_pads : assert property (@(posedge clk_i) disable iff (!rst_ni)
      (wgt_write_o & part_zero) == '0)
  else $error("a weight is padded");
  assert_parts : assert property (@(posedge clk_i) disable iff (!rst_ni)
      wgt_q || part_done >> InpPorts == '0)
  else $error("a port loads inputs that has none");
  cover_pad : cover property (@(posedge clk_i) rst_ni && inp_write_o != '0 && inp_zero);
  cover_fault : cover property (@(posedge clk_i) rst_ni && fault_o && !drain_i);
  // verilog_format: on
`endif

endmodule
