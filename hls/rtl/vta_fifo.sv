// SPDX-License-Identifier: Apache-2.0
//
// A queue of up to Depth entries whose head is shown while valid_o is high.
//
// A memory with one write and one read port and an output register, so that deep queues map to
// block RAM. An entry pushed in cycle t is at the head in t+2 at the earliest. One push and one pop
// a cycle.

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
  logic [CountBits-1:0] total_q;  // entries, the one in the output register included
  logic head_valid_q;
  logic [Width-1:0] head_q;

  logic push, pop, advance, head_free;
  // As the count says; stored: in memory. refills_q, follows_q: something is stored, and the head
  // is not valid, or is. Whether the head is taken comes late, so that all else is a register, or
  // is decided beside it.
  logic full_q, stored_any_q, stored_one_q, stored_two, refills_q, follows_q;
  logic no_head_q;  // the other one of head_valid_q, for the head's enable alone
  logic stored_any_d, head_valid_d, one_if_kept, one_if_advanced;
  assign ready_o = !full_q;
  assign push = valid_i && ready_o;
  assign pop = head_valid_q && ready_i;
  assign head_free = no_head_q || ready_i;
  assign advance = refills_q || (follows_q && ready_i);
  // No entry is stored any more if the last one becomes the head.
  assign stored_any_d = push || (refills_q && !stored_one_q)
      || (follows_q && !(stored_one_q && ready_i));
  assign head_valid_d = refills_q || follows_q || (head_valid_q && !ready_i);
  assign one_if_kept = push ? !stored_any_q : stored_one_q;
  assign one_if_advanced = push ? stored_one_q : stored_two;
  assign stored_two = total_q == (head_valid_q ? CountBits'(3) : CountBits'(2));

  always_ff @(posedge clk_i) begin
    // Whether or not something is stored: the enables of the head do not wait for that.
    if (head_free) head_q <= memory[read_q];
    if (advance) read_q <= read_q == LastEntry ? '0 : read_q + 1'b1;
    if (push) begin
      memory[write_q] <= data_i;
      write_q <= write_q == LastEntry ? '0 : write_q + 1'b1;
    end
    stored_any_q <= stored_any_d;
    stored_one_q <= (advance && one_if_advanced) || (!advance && one_if_kept);
    refills_q <= push && !refills_q && !follows_q && (!head_valid_q || ready_i);
    follows_q <= (refills_q && (push || !stored_one_q))
        || (follows_q && (push || !(stored_one_q && ready_i)))
        || (push && head_valid_q && !ready_i);
    if (push != pop) begin
      total_q <= push ? total_q + 1'b1 : total_q - 1'b1;
      full_q <= push && total_q == CountBits'(Depth - 1);
    end
    head_valid_q <= head_valid_d;
    no_head_q <= !head_valid_d;
    if (!rst_ni) begin
      write_q <= '0;
      read_q <= '0;
      total_q <= '0;
      full_q <= 1'b0;
      stored_any_q <= 1'b0;
      stored_one_q <= 1'b0;
      refills_q <= 1'b0;
      follows_q <= 1'b0;
      head_valid_q <= 1'b0;
      no_head_q <= 1'b1;
    end
  end

  assign valid_o = head_valid_q;
  assign data_o = head_q;

  if (Depth < 2) begin : g_check
    $error("vta_fifo: Depth must be at least 2");
  end

`ifndef SYNTHESIS
  // verilog_format: off
  assert_count : assert property (@(posedge clk_i) disable iff (!rst_ni)
      total_q <= CountBits'(Depth))
  else $error("vta_fifo holds more than its depth");
  assert_head : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !head_valid_q || total_q != '0)
  else $error("vta_fifo lost count of its head");
  assert_flags : assert property (@(posedge clk_i) disable iff (!rst_ni)
      full_q == (total_q == CountBits'(Depth))
          && stored_any_q == (total_q != CountBits'(head_valid_q))
          && stored_one_q == (total_q == CountBits'(head_valid_q) + 1'b1)
          && no_head_q == !head_valid_q && refills_q == (stored_any_q && !head_valid_q)
          && follows_q == (stored_any_q && head_valid_q))
  else $error("vta_fifo: a flag differs from its count");
  assert_output_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && valid_o && !ready_i) -> valid_o && $stable(data_o))
  else $error("vta_fifo: the head changed before it was taken");
  cover_full : cover property (@(posedge clk_i) rst_ni && full_q);
  assert_empty : assert property (@(posedge clk_i) disable iff (!rst_ni) pop -> total_q != '0)
  else $error("vta_fifo was popped while it was empty");
  cover_both : cover property (@(posedge clk_i) rst_ni && push && pop);
  // verilog_format: on
`endif

endmodule
