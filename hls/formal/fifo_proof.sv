// SPDX-License-Identifier: Apache-2.0
//
// vta_fifo: no entry is lost, repeated, changed or put out of order; the handshake holds.
//
// One entry, chosen by the solver, is followed from its push to its pop by counting the entries
// before it.

module fifo_proof #(
  parameter int unsigned Width = 4,
  parameter int unsigned Depth = 4
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic [Width-1:0] data_i,
  input logic             ready_i,
  input logic             follow_i  // this push is the one that is followed
);

  logic ready_o, valid_o;
  logic [Width-1:0] data_o;

  vta_fifo #(
    .Width(Width),
    .Depth(Depth)
  ) dut (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .data_i,
    .valid_o,
    .ready_i,
    .data_o
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) assume (!rst_ni);

  logic push, pop;
  assign push = valid_i && ready_o;
  assign pop = valid_o && ready_i;

  logic [7:0] inside_q, ahead_q;
  logic following_q;
  logic [Width-1:0] followed_q;
  logic was_valid_q, was_ready_q;
  logic [Width-1:0] was_data_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= '0;
      following_q <= 1'b0;
      was_valid_q <= 1'b0;
    end else begin
      inside_q <= inside_q + 8'(push) - 8'(pop);
      if (!following_q && push && follow_i) begin
        following_q <= 1'b1;
        followed_q <= data_i;
        ahead_q <= inside_q - 8'(pop);
      end else if (following_q && pop) begin
        if (ahead_q == 0) following_q <= 1'b0;
        ahead_q <= ahead_q - 1'b1;
      end
      was_valid_q <= valid_o;
    end
    was_ready_q <= ready_i;
    was_data_q <= data_o;
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      a_depth : assert (inside_q <= 8'(Depth));
      a_full : assert (ready_o == (inside_q != 8'(Depth)));
      a_no_phantom : assert (!valid_o || inside_q != 0);
      a_order : assert (!(following_q && ahead_q == 0 && valid_o) || data_o == followed_q);
      a_followed : assert (!following_q || ahead_q < inside_q);
      a_stable : assert (!(was_valid_q && !was_ready_q) || (valid_o && data_o == was_data_q));
    end
    c_full : cover (started_q && rst_ni && !ready_o);
    c_followed_leaves : cover (started_q && rst_ni && following_q && ahead_q == 0 && pop);
  end

endmodule
