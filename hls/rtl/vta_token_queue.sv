// SPDX-License-Identifier: Apache-2.0
//
// A queue of dependence tokens. Tokens carry nothing, so it is a counter. A token pushed in cycle t
// can be popped in t+1. The pusher waits while ready_o is low, the popper while valid_o is low.

module vta_token_queue #(
  parameter int unsigned Depth = 1024
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic push_i,
  output logic ready_o,
  input  logic pop_i,
  output logic valid_o
);

  localparam int unsigned CountBits = $clog2(Depth + 1);

  logic [CountBits-1:0] count_q;
  logic any_q, full_q, one_q;  // as the count says
  logic [CountBits-1:0] more, less;
  assign more = count_q + 1'b1;
  assign less = count_q - 1'b1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
      any_q <= 1'b0;
      full_q <= 1'b0;
      one_q <= 1'b0;
    end else begin
      if (push_i != pop_i) begin
        count_q <= push_i ? more : less;
        one_q <= push_i ? !any_q : less == CountBits'(1);
      end
      // Pushes and pops come late: one look-up table each.
      any_q <= push_i || (any_q && !(pop_i && one_q));
      full_q <= !pop_i && (full_q || (push_i && more == CountBits'(Depth)));
    end
  end

  assign valid_o = any_q;
  assign ready_o = !full_q;

`ifndef SYNTHESIS
  // verilog_format: off
  assert_no_underflow : assert property (@(posedge clk_i) disable iff (!rst_ni) pop_i -> valid_o)
  else $error("a token was popped from an empty queue");
  assert_no_overflow : assert property (@(posedge clk_i) disable iff (!rst_ni) push_i -> ready_o)
  else $error("a token was pushed to a full queue");
  assert_flags : assert property (@(posedge clk_i) disable iff (!rst_ni)
      any_q == (count_q != '0) && full_q == (count_q == CountBits'(Depth))
          && one_q == (count_q == CountBits'(1)) && count_q <= CountBits'(Depth))
  else $error("vta_token_queue: a flag differs from its count");
  cover_full : cover property (@(posedge clk_i) rst_ni && !ready_o);
  cover_both : cover property (@(posedge clk_i) rst_ni && push_i && pop_i);
  // verilog_format: on
`endif

endmodule
