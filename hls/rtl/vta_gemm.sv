// Multiplies one input tensor with one weight tensor every cycle.
//
// The weights of two outputs that meet the same input share one multiplier (a DSP slice of 25 x 18 bits or more):
// (w1 * 2^16 + w0) * x has w0 * x in its low 16 bits and w1 * x, less one where w0 * x is negative, in its high 16.
//
// Three register stages, never stalled. In cycle 1 the operands of a micro-op are at inp_i and wgt_i; its products are
// registered at the end of 1, sums of four at the end of 2, the dot products at the end of 3: dot_o has them in cycle 4.
// valid_i[n] says that cycle n has a micro-op, so that idle stages hold still.

module vta_gemm
  import vta_pkg::*;
(
  input  logic               clk_i,
  input  logic [3:1]         valid_i,
  input  logic [InpBits-1:0] inp_i,
  input  logic [WgtBits-1:0] wgt_i,
  output logic [AccBits-1:0] dot_o
);

  // Products are added in groups of four: two levels of adders between registers.
  localparam int unsigned Group = Block < 4 ? Block : 4;
  localparam int unsigned Groups = Block / Group;

  logic signed [31:0] product_q[Batch*Block*Block/2];  // two each: of the even output low, of the odd one after it high
  logic signed [17:0] partial_q[Batch*Block*Groups];
  logic signed [31:0] dot_q[Batch*Block];

  // Stages from last to first, so that each reads what the one before it registered in the last cycle. Assignments are
  // blocking, and loops are kept as loops, for the simulator's sake: it then works on arrays in place.
  always_ff @(posedge clk_i) begin
    if (valid_i[3]) begin
      /* verilator unroll_disable */
      for (int n = 0; n < Batch * Block; n++) begin
        automatic logic signed [31:0] total = '0;
        /* verilator unroll_full */
        for (int g = 0; g < Groups; g++) total = total + 32'(partial_q[n*Groups+g]);
        dot_q[n] = total;
      end
    end
    if (valid_i[2]) begin
      /* verilator unroll_disable */
      for (int n = 0; n < Batch * Block / 2; n++) begin
        /* verilator unroll_disable */
        for (int g = 0; g < Groups; g++) begin
          automatic logic signed [17:0] low = '0;
          automatic logic signed [17:0] high = '0;
          /* verilator unroll_full */
          for (int i = 0; i < Group; i++) begin
            low = low + 18'(signed'(product_q[n*Block+g*Group+i][15:0]));
            high = high + 18'(signed'(product_q[n*Block+g*Group+i][31:16])) + 18'(product_q[n*Block+g*Group+i][15]);
          end
          partial_q[2*n*Groups+g] = low;
          partial_q[(2*n+1)*Groups+g] = high;
        end
      end
    end
    if (valid_i[1]) begin
      automatic logic signed [7:0] inputs[Batch*Block];
      automatic logic signed [7:0] weights[Block*Block];
      /* verilator unroll_full */
      for (int n = 0; n < Batch * Block; n++) inputs[n] = inp_i[n*8+:8];
      /* verilator unroll_full */
      for (int n = 0; n < Block * Block; n++) weights[n] = wgt_i[n*8+:8];
      /* verilator unroll_disable */
      for (int b = 0; b < Batch; b++) begin
        /* verilator unroll_disable */
        for (int p = 0; p < Block / 2; p++) begin
          /* verilator unroll_disable */
          for (int i = 0; i < Block; i++) begin
            automatic logic signed [24:0] pair = (25'(weights[(2*p+1)*Block+i]) <<< 16) + 25'(weights[2*p*Block+i]);
            product_q[(b*Block/2+p)*Block+i] = 32'(inputs[b*Block+i]) * 32'(pair);
          end
        end
      end
    end
  end

  for (genvar n = 0; n < Batch * Block; n++) begin : g_dot
    assign dot_o[n*32+:32] = dot_q[n];
  end

  if (Block < 4) begin : g_check
    $error("vta_gemm adds products in fours: LOG_BLOCK must be 2 or more");
  end

endmodule
