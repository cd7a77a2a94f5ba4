// SPDX-License-Identifier: Apache-2.0
//
// Walks the two loops of GEMM and ALU around their range of micro-ops, two micro-ops a cycle.
//
// From the cycle after start_i on, valid_o shows the next micro-op and the one after it, if there
// is one, and uop_index_o their indices. It moves on past both with ready_i; valid_o falls after
// the last. Two cycles after a pair was taken, dst_o, src_o and wgt_o have the loops' additions to
// its fields. The instruction's fields must hold still from start_i until then.
//
// Two stages: the first decides which loops move on, the second adds. Multiplications are running
// sums. A pair moves on by two micro-ops, and passes the end of the range up to twice: once for
// each micro-op. The sums of the first and of the second micro-op are kept apart, so that each is
// one addition behind the one of the pair before.

module vta_nest
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  start_i,
  input  logic [UopEndBits-1:0] uop_bgn_i,
  input  logic [UopEndBits-1:0] uop_end_i,
  input  logic [           3:1] uop_count_i,  // whether there are so many from the one to the other
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

  // ---- Which loops move on ----------------------------------------------------------------------
  logic active_q;
  logic [UopEndBits-1:0] uop_q;
  logic [IterBits-1:0] out_left_q, in_left_q;
  // Comparisons with what the counters will be are registers of their own.
  logic first_last_q, second_last_q;  // the micro-op is the last of the range
  logic first_more_q, second_more_q;  // is not: for the index, so that the loops' have fewer loads
  logic in_one_q, in_two_q, out_one_q, out_two_q;  // iterations left
  // Of the instruction: the length of the inner loop, and the range's end less 3 and less 4.
  logic iter_in_one_q, iter_in_two_q, iter_in_three_q;
  logic [UopEndBits-1:0] end_less_3_q, end_less_4_q;

  // Of the first and the second micro-op: past it the range begins anew, and with it the outer loop
  // moves on.
  typedef struct packed {
    logic run;
    logic outer;
  } step_t;
  step_t first, second;
  logic take;

  always_comb begin
    first.run = first_last_q;
    first.outer = first_last_q && in_one_q;
    second.run = second_last_q;
    second.outer = second_last_q && (first.run ? (in_one_q ? iter_in_one_q : in_two_q) : in_one_q);
  end

  logic second_valid;
  assign second_valid = active_q && !(first.outer && out_one_q);
  assign valid_o = {second_valid, active_q};
  assign uop_index_o[0] = uop_q;
  assign uop_index_o[1] = first_more_q ? uop_q + 1'b1 : uop_bgn_i;
  assign take = active_q && ready_i;

  logic first_last_d, second_last_d;
  always_comb begin
    first_last_d = uop_q == end_less_3_q;
    second_last_d = uop_q == end_less_4_q;
    if (!second_more_q) begin
      first_last_d = uop_count_i[1];
      second_last_d = uop_count_i[1] || uop_count_i[2];
    end else if (!first_more_q) begin
      first_last_d = uop_count_i[2];
      second_last_d = uop_count_i[3];
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      active_q <= second_valid && !(second.outer && (first.outer ? out_two_q : out_one_q));
      // Micro-ops.
      if (!second_more_q) uop_q <= uop_bgn_i;
      else if (!first_more_q) uop_q <= uop_bgn_i + 1'b1;
      else uop_q <= uop_q + UopEndBits'(2);
      first_last_q <= first_last_d;
      second_last_q <= second_last_d;
      first_more_q <= !first_last_d;
      second_more_q <= !second_last_d;
      // Inner loop.
      if (second.outer) begin
        in_left_q <= iter_in_i;
        in_one_q <= iter_in_one_q;
        in_two_q <= iter_in_two_q;
      end else if (first.outer) begin
        in_left_q <= second.run ? iter_in_i - 1'b1 : iter_in_i;
        in_one_q <= second.run ? iter_in_two_q : iter_in_one_q;
        in_two_q <= second.run ? iter_in_three_q : iter_in_two_q;
      end else if (first.run && second.run) begin
        in_left_q <= in_left_q - IterBits'(2);
        in_one_q <= in_left_q == IterBits'(3);
        in_two_q <= in_left_q == IterBits'(4);
      end else if (first.run || second.run) begin
        in_left_q <= in_left_q - 1'b1;
        in_one_q <= in_two_q;
        in_two_q <= in_left_q == IterBits'(3);
      end
      // Outer loop.
      if (first.outer && second.outer) begin
        out_left_q <= out_left_q - IterBits'(2);
        out_one_q <= out_left_q == IterBits'(3);
        out_two_q <= out_left_q == IterBits'(4);
      end else if (first.outer || second.outer) begin
        out_left_q <= out_left_q - 1'b1;
        out_one_q <= out_two_q;
        out_two_q <= out_left_q == IterBits'(3);
      end
    end
    if (start_i) begin
      active_q <= uop_bgn_i < uop_end_i && iter_out_i != '0 && iter_in_i != '0;
      uop_q <= uop_bgn_i;
      first_last_q <= uop_count_i[1];
      second_last_q <= uop_count_i[1] || uop_count_i[2];
      first_more_q <= !uop_count_i[1];
      second_more_q <= !(uop_count_i[1] || uop_count_i[2]);
      end_less_3_q <= uop_end_i - UopEndBits'(3);
      end_less_4_q <= uop_end_i - UopEndBits'(4);
      in_left_q <= iter_in_i;
      {in_one_q, iter_in_one_q} <= {2{iter_in_i == IterBits'(1)}};
      {in_two_q, iter_in_two_q} <= {2{iter_in_i == IterBits'(2)}};
      iter_in_three_q <= iter_in_i == IterBits'(3);
      out_left_q <= iter_out_i;
      out_one_q <= iter_out_i == IterBits'(1);
      out_two_q <= iter_out_i == IterBits'(2);
    end
    if (!rst_ni) active_q <= 1'b0;
  end

  // ---- Sums -------------------------------------------------------------------------------------
  // From a micro-op to the same one of the next pair there are two steps. They add to the sum, or
  // to the outer loop's part of it, factors: once, or twice, which is told apart so that the adder's
  // look-up tables choose.
  typedef enum logic [1:0] {
    Nothing,
    In,
    Out,
    OutAndIn
  } addend_e;

  typedef struct packed {
    logic    from_zero;
    logic    from_outer;
    addend_e addend;
    logic    twice;
    logic    outer_once;   // an outer iteration begins
    logic    outer_twice;  // or two
  } advance_t;

  function automatic advance_t advance(input step_t one, input step_t other);
    advance_t result;
    result.from_zero = 1'b0;
    result.from_outer = one.outer || other.outer;
    result.outer_once = one.outer != other.outer;
    result.outer_twice = one.outer && other.outer;
    result.twice = result.outer_twice || (!result.from_outer && one.run && other.run);
    if (one.outer && other.run && !other.outer) result.addend = OutAndIn;
    else if (result.from_outer) result.addend = Out;
    else result.addend = one.run || other.run ? In : Nothing;
    return result;
  endfunction

  // A pair's own advance from the one before; of the second micro-op, by the step of the pair's own
  // first one too.
  logic taken_q, begin_q;
  step_t last_first_q, last_second_q;  // of the pair before
  advance_t advance_q[2];

  always_ff @(posedge clk_i) begin
    taken_q <= take;
    if (take) begin
      advance_q[0] <= advance(last_first_q, last_second_q);
      advance_q[1] <= advance(last_second_q, first);
      if (begin_q) begin
        advance_q[0].from_zero <= 1'b1;
        advance_q[1].from_zero <= 1'b1;
      end
      last_first_q <= first;
      last_second_q <= second;
      begin_q <= 1'b0;
    end
    if (start_i) begin
      begin_q <= 1'b1;
      last_first_q <= '0;
      last_second_q <= '0;
    end
  end

  // Destination, source and weight.
  localparam int unsigned Fields = 3;
  index_t factor_out[Fields], factor_in[Fields], out_and_in_q[Fields];
  index_t outer_q[2][Fields], sum_q[2][Fields];
  assign factor_out[0] = dst_factor_out_i;
  assign factor_out[1] = src_factor_out_i;
  assign factor_out[2] = wgt_factor_out_i;
  assign factor_in[0] = dst_factor_in_i;
  assign factor_in[1] = src_factor_in_i;
  assign factor_in[2] = wgt_factor_in_i;

  function automatic index_t addend(input addend_e kind, input index_t out, input index_t in,
                                    input index_t both);
    unique case (kind)
      In: return in;
      Out: return out;
      OutAndIn: return both;
      default: return '0;
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    if (taken_q) begin
      for (int n = 0; n < 2; n++) begin
        for (int f = 0; f < Fields; f++) begin
          automatic
          index_t
          once = addend(
              advance_q[n].addend, factor_out[f], factor_in[f], out_and_in_q[f]
          );
          sum_q[n][f] <= (advance_q[n].from_zero ? '0 : advance_q[n].from_outer ? outer_q[n][f]
              : sum_q[n][f]) + (advance_q[n].twice ? once << 1 : once);
          outer_q[n][f] <= (advance_q[n].from_zero ? '0 : outer_q[n][f])
              + ((advance_q[n].outer_once ? factor_out[f] : '0)
                  | (advance_q[n].outer_twice ? factor_out[f] << 1 : '0));
        end
      end
    end
    if (start_i) for (int f = 0; f < Fields; f++) out_and_in_q[f] <= factor_out[f] + factor_in[f];
  end

  for (genvar n = 0; n < 2; n++) begin : g_sum
    assign dst_o[n] = sum_q[n][0];
    assign src_o[n] = sum_q[n][1];
    assign wgt_o[n] = sum_q[n][2];
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_pair : assert property (@(posedge clk_i) disable iff (!rst_ni) valid_o != 2'b10)
  else $error("the second micro-op of a pair without the first");
  for (genvar n = 0; n < 2; n++) begin : g_range
    assert_range : assert property (@(posedge clk_i) disable iff (!rst_ni)
        valid_o[n] -> uop_index_o[n] >= uop_bgn_i && uop_index_o[n] < uop_end_i)
    else $error("a micro-op is not of the instruction's range");
  end
  logic [2*UopEndBits-1:0] shown;
  assign shown = {uop_index_o[0], uop_index_o[1]};
  assert_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && valid_o[0] && !ready_i && !start_i) -> $stable(valid_o) && $stable(shown))
  else $error("a pair of micro-ops changed before it was taken");
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni) start_i -> !active_q)
  else $error("an instruction began before the loops of the last one ended");
  assert_still : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_o[0] && !$past(start_i) -> $stable(uop_bgn_i) && $stable(uop_end_i)
          && $stable(iter_in_i))
  else $error("an instruction changed while its loops ran");
  assert_more : assert property (@(posedge clk_i) disable iff (!rst_ni)
      active_q -> first_more_q == !first_last_q && second_more_q == !second_last_q)
  else $error("vta_nest: two registers of one fact differ");
  cover_odd : cover property (@(posedge clk_i) rst_ni && valid_o == 2'b01);
  cover_waits : cover property (@(posedge clk_i) rst_ni && valid_o[0] && !ready_i);
  // verilog_format: on
`endif

endmodule
