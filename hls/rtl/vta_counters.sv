// SPDX-License-Identifier: Apache-2.0
//
// A stage's use of its time, since the start of the program: docs/microarchitecture.md defines the counters.

module vta_counters
  import vta_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 clear_i,
  input  logic                 count_i,  // the program runs
  input  logic                 busy_i,
  input  logic                 starved_i,
  input  logic                 stalled_i,
  input  logic                 beat_i,
  input  logic [LogBusBytes:0] beat_bytes_i,
  input  logic                 retire_i,
  output logic [         63:0] busy_o,
  output logic [         63:0] starved_o,
  output logic [         63:0] stalled_o,
  output logic [         63:0] bytes_o,
  output logic [         63:0] instructions_o
);

  logic [63:0] busy_q, starved_q, stalled_q, bytes_q, instructions_q;

  always_ff @(posedge clk_i) begin
    if (count_i) begin
      busy_q <= busy_q + 64'(busy_i);
      starved_q <= starved_q + 64'(starved_i);
      stalled_q <= stalled_q + 64'(stalled_i);
      if (beat_i) bytes_q <= bytes_q + 64'(beat_bytes_i);
      if (retire_i) instructions_q <= instructions_q + 1'b1;
    end
    if (clear_i) begin
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

endmodule
