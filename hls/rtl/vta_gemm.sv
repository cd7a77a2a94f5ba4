// SPDX-License-Identifier: Apache-2.0
//
// Multiplies one input tensor with one weight tensor every cycle.
//
// The weights of two outputs that meet the same input share one multiplier (a DSP slice of 25 x 18
// bits or more): (w1 * 2^16 + w0) * x has w0 * x in its low 16 bits and w1 * x, less one where w0 *
// x is negative, in its high 16. w0 is stored 128 larger, which makes the sum a concatenation; the
// slice takes 128 * x off the product, and adds half.
//
// In a window GEMM (vta_window) two outputs that share multipliers meet inputs of their own
// channels: lanes 2k and 2k + 1 have tap k of the even output's channel and of the odd one's. The
// lanes behind the taps have constants, with which weights make a bias.
//
// Five register stages, never stalled. In cycle 1 the operands of a micro-op are at inp_i and
// wgt_i, and are registered at its end, as are products and offsets at the end of 2, their sums at
// the end of 3, sums of four at the end of 4, dot products at the end of 5: dot_o has them in cycle
// 6. The first three registers are those of a DSP slice (A, B; C, M; P). valid_i[n] says that cycle
// n has a micro-op, so that idle stages hold still.

module vta_gemm
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic               clk_i,
  input  logic [5:1]         valid_i,
  input  logic [InpBits-1:0] inp_i,
  input  logic [WgtBits-1:0] wgt_i,
  input  logic               window_i,
  input  logic [InpBits-1:0] taps_i[WindowTaps],
  output logic [AccBits-1:0] dot_o
);

  // Products are added in groups of four: two levels of adders between registers. Of an output's
  // products those whose inputs are Groups apart are one group.
  localparam int unsigned Group = Block < 4 ? Block : 4;
  localparam int unsigned Groups = Block / Group;
  localparam int unsigned DotBits = 16 + LogBlock;  // of a dot product, whose others are its sign

  // A multiplier's two products: of the even output low, of the odd one after it high. Half of the
  // low one's range is added, so that it never borrows from the high one. offset_q: half less
  // 128 * x.
  localparam int unsigned Pairs = Block / 2;
  localparam logic signed [31:0] LowHalf = 32'sh8000;
  logic signed [31:0] offset_q[Batch*Pairs*Block];
  logic signed [31:0] raw_q[Batch*Pairs*Block];
  logic signed [31:0] product_q[Batch*Pairs*Block];
  logic signed [17:0] partial_q[Batch*Block*Groups];

  // Operands: an input, and the weights of an even output, plus 128, and the odd one after it.
  logic signed [7:0] inputs_q[Batch*Pairs*Block];
  logic [7:0] even_q[Pairs*Block];
  logic signed [7:0] odd_q[Pairs*Block];

  // No registers.
  logic signed [7:0] lanes[Batch*Block];
  logic signed [31:0] inputs[Batch*Pairs*Block];
  logic signed [24:0] pair[Pairs*Block];
  logic signed [31:0] dot[Batch*Block];

  // Stages from last to first, so that each reads the value that the one before it registered last.
  // Assignments of signals that only this block reads are blocking, and loops stay loops, for the
  // simulator's sake: it then works on arrays in place, each loop over elements that lie one after
  // another, which the compiler makes vectors of.
  always_ff @(posedge clk_i) begin
    if (valid_i[5]) begin
      /* verilator unroll_disable */
      for (int n = 0; n < Batch * Block; n++) begin
        automatic logic signed [31:0] total = '0;
        /* verilator unroll_full */
        for (int g = 0; g < Groups; g++) total = total + 32'(partial_q[n*Groups+g]);
        dot[n] = total;
      end
      /* verilator unroll_full */
      for (int n = 0; n < Batch * Block; n++) dot_o[n*32+:32] <= 32'($signed(dot[n][DotBits-1:0]));
    end
    if (valid_i[4]) begin
      /* verilator unroll_disable */
      for (int n = 0; n < Batch * Pairs; n++) begin
        /* verilator unroll_disable */
        for (int g = 0; g < Groups; g++) begin
          automatic logic signed [31:0] low = -Group * LowHalf;
          automatic logic signed [31:0] high = '0;
          /* verilator unroll_full */
          for (int i = 0; i < Group; i++) begin
            low = low + 32'(product_q[n*Block+i*Groups+g][15:0]);
            high = high + (product_q[n*Block+i*Groups+g] >>> 16);
          end
          partial_q[2*n*Groups+g] = low[17:0];
          partial_q[(2*n+1)*Groups+g] = high[17:0];
        end
      end
    end
    if (valid_i[3]) begin
      /* verilator unroll_disable */
      for (int n = 0; n < Batch * Pairs; n++) begin
        /* verilator unroll_disable */
        for (int i = 0; i < Block; i++) begin
          product_q[n*Block+i] = raw_q[n*Block+i] + offset_q[n*Block+i];
        end
      end
    end
    if (valid_i[2]) begin
      // 2^15 - 128 * x, of which nine bits are not always zero
      /* verilator unroll_disable */
      for (int n = 0; n < Batch * Pairs * Block; n++)
      offset_q[n] = ((LowHalf >>> 7) - 32'(inputs_q[n]) & 32'sh1ff) <<< 7;
      /* verilator unroll_disable */
      for (int n = 0; n < Batch * Pairs * Block; n++) inputs[n] = 32'(inputs_q[n]);
      /* verilator unroll_disable */
      for (int n = 0; n < Pairs * Block; n++)
      pair[n] = (25'(odd_q[n]) <<< 16) | 25'({1'b0, even_q[n]});
      /* verilator unroll_disable */
      for (int b = 0; b < Batch; b++) begin
        /* verilator unroll_disable */
        for (int p = 0; p < Pairs; p++) begin
          /* verilator unroll_disable */
          for (int i = 0; i < Block; i++) begin
            raw_q[(b*Pairs+p)*Block+i] = inputs[(b*Pairs+p)*Block+i] * 32'(pair[p*Block+i]);
          end
        end
      end
    end
    if (valid_i[1]) begin
      if (HasWindow && window_i) begin
        /* verilator unroll_disable */
        for (int b = 0; b < Batch; b++) begin
          /* verilator unroll_disable */
          for (int p = 0; p < Pairs; p++) begin
            /* verilator unroll_disable */
            for (int i = 0; i < Block; i++) begin
              inputs_q[(b*Pairs+p)*Block+i] = i / 2 == WindowTaps ? 8'sd1 : -8'sd128;
              if (i / 2 < WindowTaps)
                inputs_q[(b*Pairs+p)*Block+i] = taps_i[i/2][(b*Block+2*p+i%2)*8+:8];
            end
          end
        end
      end else begin
        /* verilator unroll_full */
        for (int n = 0; n < Batch * Block; n++) lanes[n] = inp_i[n*8+:8];
        /* verilator unroll_disable */
        for (int b = 0; b < Batch; b++) begin
          /* verilator unroll_disable */
          for (int p = 0; p < Pairs; p++) begin
            /* verilator unroll_disable */
            for (int i = 0; i < Block; i++) inputs_q[(b*Pairs+p)*Block+i] = lanes[b*Block+i];
          end
        end
      end
      /* verilator unroll_full */
      for (int p = 0; p < Pairs; p++) begin
        /* verilator unroll_full */
        for (int i = 0; i < Block; i++) begin
          even_q[p*Block+i] = wgt_i[(2*p*Block+i)*8+:8] ^ 8'h80;
          odd_q[p*Block+i] = wgt_i[((2*p+1)*Block+i)*8+:8];
        end
      end
    end
  end

  if (Block < 4) begin : g_check
    $error("vta_gemm adds products in fours: LOG_BLOCK must be 2 or more");
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_stages : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      (valid_i[5:2] & ~$past(valid_i[4:1])) == '0)
  else $error("a stage of GEMM has a micro-op that the one before did not have");

  // The dot products once more, without shared multipliers.
  logic [5:1][AccBits-1:0] expected;
  always @(posedge clk_i) begin
    if (valid_i[1]) begin
      /* verilator unroll_disable */
      for (int b = 0; b < Batch; b++) begin
        /* verilator unroll_disable */
        for (int n = 0; n < Block; n++) begin
          automatic logic signed [31:0] sum = '0;
          /* verilator unroll_disable */
          for (int i = 0; i < Block; i++) begin
            automatic logic [7:0] lane = inp_i[(b*Block+i)*8+:8];
            if (HasWindow && window_i) begin
              lane = i / 2 == WindowTaps ? 8'h01 : 8'h80;
              if (i / 2 < WindowTaps) lane = taps_i[i/2][(b*Block+n/2*2+i%2)*8+:8];
            end
            sum = sum + 32'($signed(lane)) * 32'($signed(wgt_i[(n*Block+i)*8+:8]));
          end
          expected[1][(b*Block+n)*32+:32] <= sum;
        end
      end
    end
    for (int stage = 2; stage <= 5; stage++) begin
      if (valid_i[stage]) expected[stage] <= expected[stage-1];
    end
  end
  assert_dot : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      $past(powered_q[2] && valid_i[5]) -> dot_o == expected[5])
  else $error("a dot product is wrong");
  // verilog_format: on
`endif

endmodule
