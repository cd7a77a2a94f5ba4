// Multiplies one input tensor with one weight tensor and adds the product to one accumulator tensor, every cycle.
//
// Five register stages, never stalled. In cycle 1 the operands of a micro-op are at inp_i and wgt_i; its products are
// registered at the end of 1, sums of four at the end of 2, the dot products at the end of 3. In cycle 4 the caller
// shows the accumulator tensor at acc_i, and sum_o has the new one in cycle 5. valid_i[n] says that cycle n has a
// micro-op, so that idle stages hold still.

module vta_gemm
  import vta_pkg::*;
(
  input  logic               clk_i,
  input  logic [4:1]         valid_i,
  input  logic [InpBits-1:0] inp_i,
  input  logic [WgtBits-1:0] wgt_i,
  input  logic [AccBits-1:0] acc_i,
  output logic [AccBits-1:0] sum_o
);

  // Products are added in groups of four: two levels of adders between registers.
  localparam int unsigned Group = Block < 4 ? Block : 4;
  localparam int unsigned Groups = Block / Group;

  logic signed [15:0] product_q[Batch*Block*Block];
  logic signed [17:0] partial_q[Batch*Block*Groups];
  logic signed [31:0] dot_q[Batch*Block];
  logic [AccBits-1:0] sum_q;

  // Stages from last to first, so that each reads what the one before it registered in the last cycle. Assignments are
  // blocking, and loops are kept as loops, for the simulator's sake: it then works on arrays in place.
  always_ff @(posedge clk_i) begin
    if (valid_i[4]) begin
      for (int n = 0; n < Batch * Block; n++) sum_q[n*32+:32] <= acc_i[n*32+:32] + dot_q[n];
    end
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
      for (int n = 0; n < Batch * Block * Groups; n++) begin
        partial_q[n] = (18'(product_q[4*n]) + 18'(product_q[4*n+1])) + (18'(product_q[4*n+2]) + 18'(product_q[4*n+3]));
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
        for (int o = 0; o < Block; o++) begin
          /* verilator unroll_disable */
          for (int i = 0; i < Block; i++) begin
            product_q[(b*Block+o)*Block+i] = 16'(inputs[b*Block+i]) * 16'(weights[o*Block+i]);
          end
        end
      end
    end
  end

  assign sum_o = sum_q;

  if (Block < 4) begin : g_check
    $error("vta_gemm adds products in fours: LOG_BLOCK must be 2 or more");
  end

endmodule
