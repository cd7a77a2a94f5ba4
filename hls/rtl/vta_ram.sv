// SPDX-License-Identifier: Apache-2.0
//
// A buffer of whole elements with one write and one read port; reading the element being written
// gives its old value. data_o has the element of the last cycle in which read_i was high. Contents
// are zero after configuration and kept through every reset.

module vta_ram #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 2
) (
  input  logic                     clk_i,
  input  logic                     write_i,
  input  logic [$clog2(Depth)-1:0] write_index_i,
  input  logic [        Width-1:0] data_i,
  input  logic                     read_i,
  input  logic [$clog2(Depth)-1:0] read_index_i,
  output logic [        Width-1:0] data_o
);

  (* ram_style = "block" *) logic [Width-1:0] memory[Depth];
  logic [Width-1:0] data_q;

  initial for (int n = 0; n < Depth; n++) memory[n] = '0;

  // No always_ff: nothing else may write its variables, not even initial (IEEE 1800, 9.2.2.4).
  always @(posedge clk_i) begin
    if (read_i) data_q <= memory[read_index_i];
    if (write_i) memory[write_index_i] <= data_i;
  end

  assign data_o = data_q;

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_index : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      !(write_i && 32'(write_index_i) >= Depth) && !(read_i && 32'(read_index_i) >= Depth))
  else $error("an index is past its RAM");
  assert_hold : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      $past(powered_q[2] && !read_i) -> $stable(data_o))
  else $error("a RAM's output changed without a read");
  // verilog_format: on
`endif

endmodule
