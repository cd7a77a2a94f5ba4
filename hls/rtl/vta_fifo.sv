// SPDX-License-Identifier: Apache-2.0
//
// A queue of up to Depth entries whose head is shown while valid_o is high.
//
// A memory with one write and one read port and an output register, so that deep queues map to block RAM. An entry
// pushed in cycle t is at the head in t+2 at the earliest. One push and one pop a cycle.

module vta_fifo #(
  parameter int unsigned Width = 1,
  // Entries, the one in the output register included; at least 2.
  parameter int unsigned Depth = 2
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,
  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o
);

  localparam int unsigned PointerBits = $clog2(Depth);
  localparam int unsigned CountBits = $clog2(Depth + 1);
  localparam logic [PointerBits-1:0] LastEntry = PointerBits'(Depth - 1);

  logic [Width-1:0] memory[Depth];
  logic [PointerBits-1:0] write_q, read_q;
  logic [CountBits-1:0] stored_q;  // in memory, without the output register
  logic [CountBits-1:0] total_q;   // with it
  logic head_valid_q;
  logic [Width-1:0] head_q;

  logic push, pop, advance;
  assign ready_o = total_q != CountBits'(Depth);
  assign push = valid_i && ready_o;
  assign pop = head_valid_q && ready_i;
  assign advance = stored_q != '0 && (!head_valid_q || pop);

  always_ff @(posedge clk_i) begin
    if (push || pop || advance) begin
      if (advance) begin
        head_q <= memory[read_q];
        read_q <= read_q == LastEntry ? '0 : read_q + 1'b1;
      end
      if (push) begin
        memory[write_q] <= data_i;
        write_q <= write_q == LastEntry ? '0 : write_q + 1'b1;
      end
      stored_q <= stored_q + CountBits'(push) - CountBits'(advance);
      total_q <= total_q + CountBits'(push) - CountBits'(pop);
      head_valid_q <= advance || (head_valid_q && !pop);
    end
    if (!rst_ni) begin
      write_q <= '0;
      read_q <= '0;
      stored_q <= '0;
      total_q <= '0;
      head_valid_q <= 1'b0;
    end
  end

  assign valid_o = head_valid_q;
  assign data_o = head_q;

  if (Depth < 2) begin : g_check
    $error("vta_fifo: Depth must be at least 2");
  end

`ifndef SYNTHESIS
  assert_count : assert property (@(posedge clk_i) disable iff (!rst_ni) total_q <= CountBits'(Depth))
  else $error("vta_fifo holds more than its depth");
  assert_head : assert property (@(posedge clk_i) disable iff (!rst_ni) total_q == stored_q + CountBits'(head_valid_q))
  else $error("vta_fifo lost count of its head");
`endif

endmodule
