// SPDX-License-Identifier: Apache-2.0
//
// A stage's use of its time, since the start of the program: docs/microarchitecture.md defines the
// counters.

module vta_counters
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                 clk_i,
  input  logic                 clear_i,
  input  logic                 count_i,  // the program runs
  input  logic                 busy_i,
  input  logic                 starved_i,
  input  logic                 stalled_i,
  input  logic                 beat_i,
  input  logic [BeatBytesBits-1:0] beat_bytes_i,
  input  logic                 retire_i,
  output logic [         63:0] busy_o,
  output logic [         63:0] starved_o,
  output logic [         63:0] stalled_o,
  output logic [         63:0] bytes_o,
  output logic [         63:0] instructions_o
);

  // Inputs are registered: a count follows by a cycle.
  logic clear_q, count_q, busy_1_q, starved_1_q, stalled_1_q, beat_1_q, retire_1_q;
  logic [BeatBytesBits-1:0] beat_bytes_1_q;
  logic [63:0] busy_q, starved_q, stalled_q, bytes_q, instructions_q;

  always_ff @(posedge clk_i) begin
    if (count_q) begin
      if (busy_1_q) busy_q <= busy_q + 1'b1;
      if (starved_1_q) starved_q <= starved_q + 1'b1;
      if (stalled_1_q) stalled_q <= stalled_q + 1'b1;
      if (beat_1_q) bytes_q <= bytes_q + 64'(beat_bytes_1_q);
      if (retire_1_q) instructions_q <= instructions_q + 1'b1;
    end
    clear_q <= clear_i;
    count_q <= count_i;
    busy_1_q <= busy_i;
    starved_1_q <= starved_i;
    stalled_1_q <= stalled_i;
    beat_1_q <= beat_i;
    beat_bytes_1_q <= beat_bytes_i;
    retire_1_q <= retire_i;
    if (clear_q) begin
      busy_q <= '0;
      starved_q <= '0;
      stalled_q <= '0;
      bytes_q <= '0;
      instructions_q <= '0;
    end
  end

  assign busy_o = busy_q;
  assign starved_o = starved_q;
  assign stalled_o = stalled_q;
  assign bytes_o = bytes_q;
  assign instructions_o = instructions_q;

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_beat : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      beat_i -> beat_bytes_i <= BeatBytesBits'(ReadPorts * BusBytes))
  else $error("a beat has more bytes than the buses");
  assert_clear : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      $past(clear_q) -> {busy_o, starved_o, stalled_o, bytes_o, instructions_o} == '0)
  else $error("a counter was not cleared");
  assert_step : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      !$past(clear_q) -> busy_o - $past(busy_o) <= 1 && starved_o - $past(starved_o) <= 1
      && stalled_o - $past(stalled_o) <= 1 && instructions_o - $past(instructions_o) <= 1
      && bytes_o - $past(bytes_o) <= 64'(ReadPorts * BusBytes))
  else $error("a counter jumped");
  // verilog_format: on
`endif

endmodule
