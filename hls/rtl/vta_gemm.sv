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

  typedef logic signed [7:0] inp_t[Batch*Block];
  typedef logic signed [7:0] wgt_t[Block*Block];
  typedef logic signed [15:0] product_t[Batch*Block*Block];
  typedef logic signed [17:0] partial_t[Batch*Block*Groups];
  typedef logic signed [31:0] dot_t[Batch*Block];

  product_t product_q;
  partial_t partial_q;
  dot_t dot_q;
  logic [AccBits-1:0] sum_q;

  function automatic product_t products(input logic [InpBits-1:0] inp, input logic [WgtBits-1:0] wgt);
    inp_t inputs;
    wgt_t weights;
    /* verilator unroll_full */
    for (int n = 0; n < Batch * Block; n++) inputs[n] = inp[n*8+:8];
    /* verilator unroll_full */
    for (int n = 0; n < Block * Block; n++) weights[n] = wgt[n*8+:8];
    /* verilator unroll_disable */
    for (int b = 0; b < Batch; b++) begin
      /* verilator unroll_disable */
      for (int o = 0; o < Block; o++) begin
        /* verilator unroll_disable */
        for (int i = 0; i < Block; i++) begin
          products[(b*Block+o)*Block+i] = 16'(inputs[b*Block+i]) * 16'(weights[o*Block+i]);
        end
      end
    end
  endfunction

  function automatic partial_t partials(input product_t product);
    /* verilator unroll_disable */
    for (int n = 0; n < Batch * Block * Groups; n++) begin
      partials[n] = (18'(product[4*n]) + 18'(product[4*n+1])) + (18'(product[4*n+2]) + 18'(product[4*n+3]));
    end
  endfunction

  function automatic dot_t dots(input partial_t partial);
    /* verilator unroll_disable */
    for (int n = 0; n < Batch * Block; n++) begin
      logic signed [31:0] total;
      total = '0;
      /* verilator unroll_full */
      for (int g = 0; g < Groups; g++) total = total + 32'(partial[n*Groups+g]);
      dots[n] = total;
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_i[1]) product_q <= products(inp_i, wgt_i);
    if (valid_i[2]) partial_q <= partials(product_q);
    if (valid_i[3]) dot_q <= dots(partial_q);
    if (valid_i[4]) begin
      for (int n = 0; n < Batch * Block; n++) sum_q[n*32+:32] <= acc_i[n*32+:32] + dot_q[n];
    end
  end

  assign sum_o = sum_q;

  if (Block < 4) begin : g_check
    $error("vta_gemm adds products in fours: LOG_BLOCK must be 2 or more");
  end

endmodule
