// SPDX-License-Identifier: Apache-2.0
//
// The buffers of inputs and of weights: what the load stage writes, and GEMM reads, both at once.
//
// The lanes of an input are RAMs that are written apart, and so are the parts of a weight.

module vta_operands
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                                   clk_i,
  // From the load stage.
  input  logic [    InpRams-1:0]                 inp_write_i,
  input  logic [LogInpDepth-1:0]                 inp_write_index_i,
  input  logic [    InpBits-1:0]                 inp_i,
  input  logic [  ReadPorts-1:0]                 wgt_write_i,
  input  logic [  ReadPorts-1:0][LogWgtDepth-1:0] wgt_write_index_i,
  input  logic [  ReadPorts-1:0][WgtPartBits-1:0] wgt_i,
  // To GEMM: what is read is there in the next cycle.
  input  logic                                   read_i,
  input  logic [LogInpDepth-1:0]                 inp_read_index_i,
  output logic [    InpBits-1:0]                 inp_o,
  input  logic [LogWgtDepth-1:0]                 wgt_read_index_i,
  output logic [  ReadPorts-1:0][WgtPartBits-1:0] wgt_o
);

  localparam int unsigned InpRamBits = InpBits / InpRams;
  for (genvar ram = 0; ram < InpRams; ram++) begin : g_inp
    vta_ram #(
      .Width(InpRamBits),
      .Depth(InpDepth)
    ) u_inp (
      .clk_i,
      .write_i(inp_write_i[ram]),
      .write_index_i(inp_write_index_i),
      .data_i(inp_i[ram*InpRamBits+:InpRamBits]),
      .read_i,
      .read_index_i(inp_read_index_i),
      .data_o(inp_o[ram*InpRamBits+:InpRamBits])
    );
  end

  for (genvar part = 0; part < ReadPorts; part++) begin : g_wgt
    vta_ram #(
      .Width(WgtPartBits),
      .Depth(WgtDepth)
    ) u_wgt (
      .clk_i,
      .write_i(wgt_write_i[part]),
      .write_index_i(wgt_write_index_i[part]),
      .data_i(wgt_i[part]),
      .read_i,
      .read_index_i(wgt_read_index_i),
      .data_o(wgt_o[part])
    );
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_one_kind : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      inp_write_i == '0 || wgt_write_i == '0)
  else $error("one LOAD writes inputs, and weights");
  cover_apart : cover property (@(posedge clk_i) powered_q[2] && wgt_write_i != '0 && wgt_write_i != '1);
  // verilog_format: on
`endif

endmodule
