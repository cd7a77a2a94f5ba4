// SPDX-License-Identifier: Apache-2.0
//
// vta_first_use with eight accumulators: first_o marks the first micro-op at each accumulator of the
// reset, two cycles after it, and no other; covered_o says that all have been come to. So each is
// cleared once, before anything is added to it, and what is left is known.

module first_use_proof
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   begin_i,
  input logic [LogAccDepth-1:0] first_i,
  input logic [  LogAccDepth:0] count_i,
  input logic                   end_i,
  input banks_t                 issue_i,
  input rows_t                  row_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  logic active_q;
  banks_t first_o;
  logic covered_o;

  vta_first_use #(
    `include "vta_passed.svh"
  ) dut (
    .clk_i,
    .rst_ni,
    .begin_i,
    .first_i,
    .count_i,
    .active_i(active_q),
    .end_i,
    .issue_i,
    .row_i,
    .first_o,
    .covered_o
  );

  // Accumulators of the reset, and those that were come to: seen_q until the last cycle, seen_2_q
  // until two cycles before, recent_q[n] n cycles ago.
  typedef logic [AccDepth-1:0] set_t;
  set_t range_q, seen_q, seen_1_q, seen_2_q, issued, recent_q[1:2];
  banks_t expected, expected_q[1:2];
  logic [3:0] rest_q;  // cycles until marks are wiped
  always_comb begin
    issued = '0;
    for (int bank = 0; bank < AccBanks; bank++) begin
      if (issue_i[bank] && active_q) issued[{row_i[bank], 1'(bank)}] = 1'b1;
      expected[bank] = issue_i[bank] && active_q && range_q[{row_i[bank], 1'(bank)}]
          && !seen_q[{row_i[bank], 1'(bank)}];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || end_i) active_q <= 1'b0;
    else if (begin_i) active_q <= 1'b1;
    if (begin_i) begin
      for (int n = 0; n < AccDepth; n++)
      range_q[n] <= n >= 32'(first_i) && n < 32'(first_i) + 32'(count_i);
      seen_q <= '0;
    end else begin
      seen_q <= seen_q | issued;
    end
    recent_q[1] <= rst_ni ? issued : '0;
    recent_q[2] <= rst_ni ? recent_q[1] : '0;
    expected_q[1] <= rst_ni ? expected : '0;
    expected_q[2] <= rst_ni ? expected_q[1] : '0;
    seen_1_q <= begin_i ? '0 : seen_q;
    seen_2_q <= begin_i ? '0 : seen_1_q;
    rest_q <= !rst_ni || end_i ? 4'd4 : rest_q == '0 ? '0 : rest_q - 1'b1;
  end

  // The contract: a reset of accumulators that there are; one accumulator's micro-ops three cycles
  // apart; the end two cycles after the last micro-op, and no micro-op of the next reset's before
  // the marks are wiped.
  always_comb begin
    if (!started_q) assume (!rst_ni);
    if (begin_i)
      assume (rst_ni && !active_q && rest_q == '0 && count_i != '0
          && 32'(first_i) + 32'(count_i) <= AccDepth);
    if (end_i) assume (active_q && issue_i == '0 && recent_q[1] == '0 && recent_q[2] == '0);
    if (active_q) assume ((issued & (recent_q[1] | recent_q[2])) == '0);
  end

  logic [2:0] since_q;  // the reset began; up to 7 cycles
  always_ff @(posedge clk_i)
    since_q <= !rst_ni || begin_i || !active_q ? '0 : since_q == '1 ? '1 : since_q + 1'b1;

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni && active_q) begin
      a_first : assert (first_o == expected_q[2]);
      a_covered : assert (since_q < 3'd3 || covered_o == ((range_q & ~seen_2_q) == '0));
    end
    c_covered : cover (started_q && rst_ni && end_i && covered_o && $countones(range_q) == 3);
    c_again : cover (started_q && rst_ni && active_q && (issued & seen_q) != '0);
  end

endmodule
