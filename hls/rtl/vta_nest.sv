// Walks the two loops of GEMM and ALU around their range of micro-ops.
//
// From the cycle after start_i on, valid_o shows one micro-op a cycle: its index and what the loops add to its fields.
// It moves on with ready_i; busy_o falls after the last. Multiplications are turned into running sums. The
// instruction's fields must hold still while busy_o is high.

module vta_nest
  import vta_pkg::*;
(
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  start_i,
  input  logic [UopEndBits-1:0] uop_bgn_i,
  input  logic [UopEndBits-1:0] uop_end_i,
  input  logic [  IterBits-1:0] iter_out_i,
  input  logic [  IterBits-1:0] iter_in_i,
  input  index_t                dst_factor_out_i,
  input  index_t                dst_factor_in_i,
  input  index_t                src_factor_out_i,
  input  index_t                src_factor_in_i,
  input  index_t                wgt_factor_out_i,
  input  index_t                wgt_factor_in_i,
  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [UopEndBits-1:0] uop_index_o,
  output index_t                dst_o,
  output index_t                src_o,
  output index_t                wgt_o
);

  logic active_q;
  logic [UopEndBits-1:0] uop_q;
  logic [IterBits-1:0] out_left_q, in_left_q;
  index_t dst_out_q, src_out_q, wgt_out_q;  // the outer loop's part alone
  index_t dst_q, src_q, wgt_q;

  logic range_ends, inner_ends;
  assign range_ends = uop_q + 1'b1 == uop_end_i;
  assign inner_ends = in_left_q == IterBits'(1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (start_i) begin
      active_q <= uop_bgn_i < uop_end_i && iter_out_i != '0 && iter_in_i != '0;
      uop_q <= uop_bgn_i;
      out_left_q <= iter_out_i;
      in_left_q <= iter_in_i;
      {dst_out_q, src_out_q, wgt_out_q} <= '0;
      {dst_q, src_q, wgt_q} <= '0;
    end else if (active_q && ready_i) begin
      if (!range_ends) begin
        uop_q <= uop_q + 1'b1;
      end else begin
        uop_q <= uop_bgn_i;
        if (!inner_ends) begin
          in_left_q <= in_left_q - 1'b1;
          dst_q <= dst_q + dst_factor_in_i;
          src_q <= src_q + src_factor_in_i;
          wgt_q <= wgt_q + wgt_factor_in_i;
        end else begin
          in_left_q <= iter_in_i;
          out_left_q <= out_left_q - 1'b1;
          active_q <= out_left_q != IterBits'(1);
          dst_out_q <= dst_out_q + dst_factor_out_i;
          src_out_q <= src_out_q + src_factor_out_i;
          wgt_out_q <= wgt_out_q + wgt_factor_out_i;
          dst_q <= dst_out_q + dst_factor_out_i;
          src_q <= src_out_q + src_factor_out_i;
          wgt_q <= wgt_out_q + wgt_factor_out_i;
        end
      end
    end
  end

  assign valid_o = active_q;
  assign uop_index_o = uop_q;
  assign dst_o = dst_q;
  assign src_o = src_q;
  assign wgt_o = wgt_q;

endmodule
