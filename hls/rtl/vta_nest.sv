// SPDX-License-Identifier: Apache-2.0
//
// Walks the two loops of GEMM and ALU around their range of micro-ops, two micro-ops a cycle.
//
// From the cycle after start_i on, valid_o shows the next micro-op and the one after it, if there is one: their indices
// and the loops' additions to their fields. It moves on past both with ready_i; valid_o falls after the last.
// Multiplications are turned into running sums. The instruction's fields must hold still while valid_o is high.

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
  output logic [           1:0] valid_o,
  input  logic                  ready_i,
  output logic [UopEndBits-1:0] uop_index_o[2],
  output index_t                dst_o[2],
  output index_t                src_o[2],
  output index_t                wgt_o[2]
);

  logic active_q;
  logic [UopEndBits-1:0] uop_q;
  logic [UopEndBits-1:0] uop_last_q, uop_before_last_q;  // of the range, which may be one micro-op long
  logic uop_single_q;
  logic [IterBits-1:0] out_left_q, in_left_q;
  index_t dst_out_q, src_out_q, wgt_out_q;  // the outer loop's part alone
  index_t dst_q, src_q, wgt_q;

  // Past both micro-ops.
  logic active;
  logic [UopEndBits-1:0] uop;
  logic [IterBits-1:0] out_left, in_left;
  index_t dst_out, src_out, wgt_out, dst, src, wgt;
  // Whether a micro-op is the last of the range, of the inner loop, of the outer one: told of the second, too, from
  // registers alone, so that no sum waits for another one to be compared.
  logic uop_ends, in_ends, out_ends;

  always_comb begin
    active = active_q;
    uop = uop_q;
    out_left = out_left_q;
    in_left = in_left_q;
    dst_out = dst_out_q;
    src_out = src_out_q;
    wgt_out = wgt_out_q;
    dst = dst_q;
    src = src_q;
    wgt = wgt_q;
    uop_ends = uop_q == uop_last_q;
    in_ends = in_left_q == IterBits'(1);
    out_ends = out_left_q == IterBits'(1);
    for (int n = 0; n < 2; n++) begin
      valid_o[n] = active;
      uop_index_o[n] = uop;
      dst_o[n] = dst;
      src_o[n] = src;
      wgt_o[n] = wgt;
      if (!uop_ends) begin
        uop = uop + 1'b1;
        uop_ends = uop_q == uop_before_last_q;
      end else begin
        uop = uop_bgn_i;
        uop_ends = uop_single_q;
        if (!in_ends) begin
          in_left = in_left - 1'b1;
          in_ends = in_left_q == IterBits'(2);
          dst = dst + dst_factor_in_i;
          src = src + src_factor_in_i;
          wgt = wgt + wgt_factor_in_i;
        end else begin
          active = active && !out_ends;
          out_ends = out_left_q == IterBits'(2);
          in_left = iter_in_i;
          in_ends = iter_in_i == IterBits'(1);
          out_left = out_left - 1'b1;
          dst_out = dst_out + dst_factor_out_i;
          src_out = src_out + src_factor_out_i;
          wgt_out = wgt_out + wgt_factor_out_i;
          dst = dst_out;
          src = src_out;
          wgt = wgt_out;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (start_i) begin
      active_q <= uop_bgn_i < uop_end_i && iter_out_i != '0 && iter_in_i != '0;
      uop_q <= uop_bgn_i;
      uop_last_q <= uop_end_i - 1'b1;
      uop_before_last_q <= uop_end_i - UopEndBits'(2);
      uop_single_q <= uop_end_i == uop_bgn_i + 1'b1;
      out_left_q <= iter_out_i;
      in_left_q <= iter_in_i;
      {dst_out_q, src_out_q, wgt_out_q} <= '0;
      {dst_q, src_q, wgt_q} <= '0;
    end else if (active_q && ready_i) begin
      active_q <= active;
      uop_q <= uop;
      out_left_q <= out_left;
      in_left_q <= in_left;
      dst_out_q <= dst_out;
      src_out_q <= src_out;
      wgt_out_q <= wgt_out;
      dst_q <= dst;
      src_q <= src;
      wgt_q <= wgt;
    end
  end

`ifndef SYNTHESIS
  // ---- Assertions -------------------------------------------------------------------------------
  assert_pair : assert property (@(posedge clk_i) disable iff (!rst_ni) valid_o != 2'b10)
  else $error("the second micro-op of a pair without the first");
  for (genvar n = 0; n < 2; n++) begin : g_range
    assert_range : assert property (@(posedge clk_i) disable iff (!rst_ni)
        valid_o[n] -> uop_index_o[n] >= uop_bgn_i && uop_index_o[n] < uop_end_i)
    else $error("a micro-op is not of the instruction's range");
  end
  assert_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && valid_o[0] && !ready_i && !start_i) -> $stable(valid_o) && $stable(uop_q)
      && $stable(dst_q) && $stable(src_q) && $stable(wgt_q))
  else $error("a pair of micro-ops changed before it was taken");
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni) start_i -> !active_q)
  else $error("an instruction began before the loops of the last one ended");
  assert_still : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_o[0] && !$past(start_i) -> $stable(uop_bgn_i) && $stable(uop_end_i) && $stable(iter_in_i))
  else $error("an instruction changed while its loops ran");
  cover_odd : cover property (@(posedge clk_i) rst_ni && valid_o == 2'b01);
  cover_waits : cover property (@(posedge clk_i) rst_ni && valid_o[0] && !ready_i);
`endif

endmodule
