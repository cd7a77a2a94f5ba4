// SPDX-License-Identifier: Apache-2.0
//
// A memory with two ports: a writes or reads, b reads, but not the word being written. a_data_o and
// b_data_o have the word of the last cycle in which their port read. Contents are zero after
// configuration and kept through every reset.
//
// Port a is written as block RAM does it whose output holds still in a write (UG901, "No-Change
// Mode"), so that each port is one of the RAM's; with a read and a write that do not exclude each
// other it would take a RAM for each reader.

module vta_dual_port_ram #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 2
) (
  input  logic                     clk_i,
  input  logic                     a_write_i,
  input  logic                     a_read_i,
  input  logic [$clog2(Depth)-1:0] a_index_i,
  input  logic [        Width-1:0] a_data_i,
  output logic [        Width-1:0] a_data_o,
  input  logic                     b_read_i,
  input  logic [$clog2(Depth)-1:0] b_index_i,
  output logic [        Width-1:0] b_data_o
);

  (* ram_style = "block" *) logic [Width-1:0] memory[Depth];
  logic [Width-1:0] a_data_q, b_data_q;

  initial for (int n = 0; n < Depth; n++) memory[n] = '0;

  // No always_ff: nothing else may write its variables, not even initial (IEEE 1800, 9.2.2.4).
  always @(posedge clk_i) begin
    if (a_read_i || a_write_i) begin
      if (a_write_i) memory[a_index_i] <= a_data_i;
      else a_data_q <= memory[a_index_i];
    end
  end
  always_ff @(posedge clk_i) if (b_read_i) b_data_q <= memory[b_index_i];

  assign a_data_o = a_data_q;
  assign b_data_o = b_data_q;

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_port_a : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      !(a_write_i && a_read_i))
  else $error("port a of a RAM reads and writes in one cycle");
  assert_port_b : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      !(a_write_i && b_read_i && a_index_i == b_index_i))
  else $error("port b of a RAM reads the word being written");
  assert_hold : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      ($past(!powered_q[2] || a_read_i) || $stable(a_data_o))
          && ($past(!powered_q[2] || b_read_i) || $stable(b_data_o)))
  else $error("a RAM's output changed without a read");
  // verilog_format: on
`endif

endmodule
