// SPDX-License-Identifier: Apache-2.0
//
// One bank of the accumulator with the units that change it: LOAD, GEMM's addition and the ALU.
//
// Read in cycle 0, an element is at acc_o in cycle 2, where add_i or execute_i takes it; write_i
// takes the result in cycle 3, and shows its low bytes at out_o; store_i writes it in cycle 4. What
// is read in cycle 3 or 4 has the new value by forward_i: from read to read of the new value there
// are three cycles.

module vta_acc_bank
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                  clk_i,
  input  logic                  read_i,
  input  logic [LogAccRows-1:0] read_row_i,
  output logic [   AccBits-1:0] acc_o,
  input  logic                  zero_i,  // in cycle 1: acc_o becomes zero, whatever was read
  // acc_o plus a tensor.
  input  logic                  add_i,
  input  logic [   AccBits-1:0] dot_i,
  // acc_o combined with src_i; the written result is clamped between low_i and high_i, the larger,
  // but for that of MUL.
  input  logic                  execute_i,
  input  logic [           2:0] opcode_i,
  input  bound_t                low_i,
  input  bound_t                high_i,
  input  logic [   AccBits-1:0] src_i,
  input  logic [AmountBits-1:0] amount_i,  // its low five bits, where opcode_i is SHR
  // The result, of the addition where gemm_i is high; with clear_i zero is written, while out_o has
  // the sum: with write_i.
  input  logic                  write_i,
  input  logic                  gemm_i,
  input  logic                  clear_i,
  output logic [   OutBits-1:0] out_o,
  // LOAD: load_i marks the data to be written, among the cycles of loads_i.
  input  logic                  loads_i,
  input  logic                  load_i,
  input  logic [   AccBits-1:0] load_data_i,
  // In the cycle after write_i or load_i.
  input  logic                  store_i,
  input  logic [LogAccRows-1:0] store_row_i,
  // In the cycle after read_i: acc_o becomes what was written one (1) or two (2) cycles ago.
  input  logic [           2:1] forward_i
);

  logic [AccBits-1:0] sum_q, alu_result, product, result, new_value;
  logic is_product;

  function automatic logic below(input logic signed [31:0] value, input logic signed [31:0] other);
    return value < other;
  endfunction

  function automatic logic signed [31:0] bound(input bound_t short);
    return {short[16], {15{short[15]}}, short[15:0]};
  endfunction

  // Of the last operation. Each lane has a copy of them: one for all would drive a thousand pins.
  (* max_fanout = 64 *) bound_t low_q, high_q;
  always_ff @(posedge clk_i) begin
    if (execute_i) begin
      low_q <= low_i;
      high_q <= high_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (add_i)
      for (int n = 0; n < Batch * Block; n++) sum_q[n*32+:32] <= acc_o[n*32+:32] + dot_i[n*32+:32];
  end

  vta_alu #(
    `include "vta_passed.svh"
  ) u_alu (
    .clk_i,
    .execute_i,
    .opcode_i,
    .dst_i(acc_o),
    .src_i,
    .amount_i,
    .result_o(alu_result),
    .product_valid_o(is_product),
    .product_o(product)
  );

  // The comparison with the bounds is the slowest: what else is written is chosen beside it, and
  // all that says which. Within a branch, so that the simulator clamps nothing while nothing is
  // written.
  logic clamped;
  logic [AccBits-1:0] unclamped;
  assign clamped = write_i && !gemm_i && !is_product;
  assign unclamped = gemm_i ? sum_q : is_product ? product : alu_result;
  always_comb begin
    result = unclamped;
    new_value = !write_i ? load_data_i : clear_i ? '0 : unclamped;
    if (clamped) begin
      for (int n = 0; n < Batch * Block; n++) begin
        if (below(alu_result[n*32+:32], bound(low_q))) begin
          result[n*32+:32] = bound(low_q);
          new_value[n*32+:32] = bound(low_q);
        end else if (below(bound(high_q), alu_result[n*32+:32])) begin
          result[n*32+:32] = bound(high_q);
          new_value[n*32+:32] = bound(high_q);
        end
      end
    end
  end

  // Without a write it is not looked at.
  always_comb begin
    out_o = 'x;
    if (write_i) for (int n = 0; n < Batch * Block; n++) out_o[n*8+:8] = result[n*32+:8];
  end

  // ---- Memory -----------------------------------------------------------------------------------
  // Its input and its output are registers: what they have yet to write takes the place of what was
  // read.
  logic [AccBits-1:0] stored, written_q, written_2_q, acc_q;
  logic read_q;
  assign acc_o = acc_q;

  always_ff @(posedge clk_i) begin
    read_q <= read_i;
    if (write_i || loads_i) written_q <= new_value;
    if (store_i && read_i) written_2_q <= written_q;
    if (read_q) begin
      if (zero_i) acc_q <= '0;
      else if (forward_i[1]) acc_q <= written_q;
      else if (forward_i[2]) acc_q <= written_2_q;
      else acc_q <= stored;
    end
  end

  vta_ram #(
    .Width(AccBits),
    .Depth(AccRows)
  ) u_ram (
    .clk_i,
    .write_i(store_i),
    .write_index_i(store_row_i),
    .data_i(written_q),
    .read_i,
    .read_index_i(read_row_i),
    .data_o(stored)
  );

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  // There is no reset here: registers are random in the first cycles after power-on.
  logic [2:0] powered_q;
  initial powered_q = '0;
  always @(posedge clk_i) powered_q <= {powered_q[1:0], 1'b1};

  assert_one_writer : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      load_i -> loads_i && !write_i)
  else $error("a LOAD and an instruction write the accumulator in one cycle");
  assert_one_unit : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      add_i -> !execute_i)
  else $error("GEMM and ALU take an element of the accumulator in one cycle");
  assert_clear : assert property (@(posedge clk_i) disable iff (!powered_q[2]) clear_i -> gemm_i)
  else $error("an ALU result is cleared");
  assert_clamp : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      write_i && !gemm_i -> bound(low_q) <= bound(high_q))
  else $error("a result is clamped between bounds that no number meets");
  assert_zero : assert property (@(posedge clk_i) disable iff (!powered_q[2]) zero_i -> read_q)
  else $error("an element is to be zero that was not read");
  assert_store : assert property (@(posedge clk_i) disable iff (!powered_q[2])
      store_i == $past(write_i || load_i))
  else $error("a result is not stored in the cycle after it was there");
  cover_forward_1 : cover property (@(posedge clk_i) powered_q[2] && read_q && forward_i[1]);
  cover_forward_2 : cover property (@(posedge clk_i) powered_q[2] && read_q && forward_i == 2'b10);
  // verilog_format: on
`endif

endmodule
