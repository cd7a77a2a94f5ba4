// SPDX-License-Identifier: Apache-2.0
//
// The output buffer: a bank for even and one for odd elements, written both at once, read one
// element at a time. data_o has the element of the last cycle in which read_i was high.

module vta_out_buffer
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                   clk_i,
  input  banks_t                 write_i,
  input  rows_t                  write_row_i,
  input  logic [    OutBits-1:0] data_i[AccBanks],
  input  logic                   read_i,
  input  logic [LogAccDepth-1:0] read_index_i,
  output logic [    OutBits-1:0] data_o
);

  logic [OutBits-1:0] bank_data[AccBanks];
  logic read_bank_q;

  for (genvar bank = 0; bank < AccBanks; bank++) begin : g_bank
    vta_ram #(
      .Width(OutBits),
      .Depth(AccRows)
    ) u_ram (
      .clk_i,
      .write_i(write_i[bank]),
      .write_index_i(write_row_i[bank]),
      .data_i(data_i[bank]),
      .read_i(read_i && read_index_i[0] == 1'(bank)),
      .read_index_i(LogAccRows'(read_index_i >> 1)),
      .data_o(bank_data[bank])
    );
  end

  always_ff @(posedge clk_i) if (read_i) read_bank_q <= read_index_i[0];
  assign data_o = bank_data[read_bank_q];

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_hold : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      $past(powered_q[2] && !read_i) -> $stable(data_o))
  else $error("the output buffer's element changed without a read");
  cover_both : cover property (@(posedge clk_i) powered_q[2] && write_i == '1);
  // verilog_format: on
`endif

endmodule
