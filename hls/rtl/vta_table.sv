// SPDX-License-Identifier: Apache-2.0
//
// A table of 256 bytes in LUT RAM that looks up all bytes of a beat at once: it has a copy for each.
// It is written a word of 64 bits at a time, in the cycle after write_i. Contents are zero after configuration and kept through
// every reset.

module vta_table
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                     clk_i,
  input  logic                     write_i,
  input  logic [LogTableWords-1:0] write_index_i,  // in words
  input  logic [TableWordBits-1:0] word_i,
  input  logic [      BusBits-1:0] indices_i,
  output logic [      BusBits-1:0] entries_o
);

  logic write_q;
  logic [LogTableWords-1:0] write_index_q;
  logic [TableWordBits-1:0] word_q;
  always_ff @(posedge clk_i) begin
    write_q <= write_i;
    {write_index_q, word_q} <= {write_index_i, word_i};
  end

  for (genvar lane = 0; lane < BusBytes; lane++) begin : g_lane
    (* ram_style = "distributed" *) logic [TableWordBits-1:0] memory[1 << LogTableWords];
    logic [LogTableBytes-1:0] index;
    logic [TableWordBits-1:0] word;

    initial for (int n = 0; n < 1 << LogTableWords; n++) memory[n] = '0;

    // No always_ff: nothing else may write its variables, not even initial (IEEE 1800, 9.2.2.4).
    always @(posedge clk_i) if (write_q) memory[write_index_q] <= word_q;

    assign index = indices_i[8*lane+:8];
    assign word = memory[index[LogTableBytes-1:LogTableWordBytes]];
    assign entries_o[8*lane+:8] = word[8*32'(index[LogTableWordBytes-1:0])+:8];
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_copies : assert property (@(posedge clk_i)
      indices_i[7:0] == indices_i[BusBits-8+:8] -> entries_o[7:0] == entries_o[BusBits-8+:8])
  else $error("two copies of the table differ");
  // verilog_format: on
`endif

endmodule
