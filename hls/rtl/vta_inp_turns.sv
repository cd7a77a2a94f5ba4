// SPDX-License-Identifier: Apache-2.0
//
// The one place at which inputs of several masters are written: each master's element is held until
// its turn, which comes every InpPorts cycles, and goes to a register before the buffer. An element
// has as many beats as there are turns, so the next one never comes before the turn.
//
// Turns count from start_i on. Pads come alone, and wait for no turn.

module vta_inp_turns
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                                     clk_i,
  input  logic                                     rst_ni,
  input  logic                                     start_i,
  // Elements of the masters: the last one of a LOAD, or none, comes with last_i.
  input  logic [   InpPorts-1:0]                   valid_i,
  input  logic [   InpPorts-1:0]                   last_i,
  input  logic [   InpPorts-1:0][LogInpDepth-1:0] index_i,
  input  logic [   InpPorts-1:0][   InpBits-1:0]  element_i,
  output logic [   InpPorts-1:0]                   ended_o,    // its last one goes to the register
  // Pads.
  input  logic                                     pad_i,
  input  logic [LogInpDepth-1:0]                   pad_index_i,
  // What is written.
  output logic                                     write_o,
  output logic                                     zero_o,
  output logic [LogInpDepth-1:0]                   index_o,
  output logic [    InpBits-1:0]                   element_o
);

  localparam int unsigned TurnBits = InpPorts > 1 ? LogInpPorts : 1;
  logic [TurnBits-1:0] turn_q;
  logic [InpPorts-1:0] turns, held_q, last_q;
  logic [InpPorts-1:0][LogInpDepth-1:0] held_index_q;
  logic [InpPorts-1:0][InpBits-1:0] held_element_q;
  logic write_q, zero_q;
  logic [LogInpDepth-1:0] index_q;
  logic [InpBits-1:0] element_q;
  assign turns = InpPorts'(1) << turn_q;
  assign ended_o = (turns & held_q & last_q) | (last_i & ~valid_i);

  always_ff @(posedge clk_i) begin
    turn_q <= InpPorts == 1 ? '0 : start_i ? TurnBits'(1) : turn_q + 1'b1;
    for (int p = 0; p < InpPorts; p++)
    if (valid_i[p]) begin
      held_index_q[p] <= index_i[p];
      held_element_q[p] <= element_i[p];
      last_q[p] <= last_i[p];
    end
    held_q <= valid_i | (held_q & ~turns);
    write_q <= pad_i || (held_q & turns) != '0;
    zero_q <= pad_i;
    index_q <= pad_i ? pad_index_i : held_index_q[turn_q];
    element_q <= held_element_q[turn_q];
    if (!rst_ni) {held_q, write_q} <= '0;
  end
  assign write_o = write_q;
  assign zero_o = zero_q;
  assign index_o = index_q;
  assign element_o = element_q;

`ifndef SYNTHESIS
  // verilog_format: off
  assert_room : assert property (@(posedge clk_i) disable iff (!rst_ni)
      (valid_i & held_q & ~turns) == '0)
  else $error("an input comes before the one before it is written");
  assert_alone : assert property (@(posedge clk_i) disable iff (!rst_ni)
      pad_i -> held_q == '0)
  else $error("a pad is written beside data");
  cover_waits : cover property (@(posedge clk_i) rst_ni && (held_q & ~turns) != '0);
  // verilog_format: on
`endif

endmodule
