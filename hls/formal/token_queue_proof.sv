// SPDX-License-Identifier: Apache-2.0
//
// vta_token_queue: as many tokens come out as went in, never more, and its flags say how many there
// are.

module token_queue_proof #(
  parameter int unsigned Depth = 5
) (
  input logic clk_i,
  input logic rst_ni,
  input logic push_i,
  input logic pop_i
);

  logic ready_o, valid_o;

  vta_token_queue #(
    .Depth(Depth)
  ) dut (
    .clk_i,
    .rst_ni,
    .push_i,
    .ready_o,
    .pop_i,
    .valid_o
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // The contract of the users: they push while ready_o is high and pop while valid_o is high.
  always_comb begin
    if (!started_q) assume (!rst_ni);
    if (push_i) assume (ready_o);
    if (pop_i) assume (valid_o);
  end

  logic [7:0] inside_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= '0;
    else inside_q <= inside_q + 8'(push_i) - 8'(pop_i);
    if (started_q && rst_ni) begin
      a_valid : assert (valid_o == (inside_q != 0));
      a_ready : assert (ready_o == (inside_q != 8'(Depth)));
      a_bound : assert (inside_q <= 8'(Depth));
      i_count : assert (8'(dut.count_q) == inside_q);  // for the induction
    end
    c_full : cover (started_q && rst_ni && !ready_o);
    c_both : cover (started_q && rst_ni && push_i && pop_i);
  end

endmodule
