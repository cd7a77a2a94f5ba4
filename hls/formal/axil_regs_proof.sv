// SPDX-License-Identifier: Apache-2.0
//
// vta_axil_regs: the rules of AXI4-Lite at its port (axi4_lite_checker), and that a register keeps
// its written value until the next write.

module axil_regs_proof
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [15:0] awaddr_i,
  input logic        awvalid_i,
  input logic [31:0] wdata_i,
  input logic [ 3:0] wstrb_i,
  input logic        wvalid_i,
  input logic        bready_i,
  input logic [15:0] araddr_i,
  input logic        arvalid_i,
  input logic        rready_i,
  input logic [ 3:0] retire_i,
  input logic        resetting_i,
  input logic        finished_i
);

  logic awready_o, wready_o, bvalid_o, arready_o, rvalid_o, soft_reset_o, compute_repeat_o;
  logic [1:0] bresp_o, rresp_o;
  logic [31:0] rdata_o, insn_count_o;
  logic [3:0] start_o;
  logic retire[4];
  for (genvar s = 0; s < 4; s++) begin : g_retire
    assign retire[s] = retire_i[s];
  end

  vta_axil_regs #(
    `include "vta_passed.svh"
  ) dut (
    .clk_i,
    .rst_ni,
    .awaddr_i,
    .awvalid_i,
    .awready_o,
    .wdata_i,
    .wstrb_i,
    .wvalid_i,
    .wready_o,
    .bresp_o,
    .bvalid_o,
    .bready_i,
    .araddr_i,
    .arvalid_i,
    .arready_o,
    .rdata_o,
    .rresp_o,
    .rvalid_o,
    .rready_i,
    .start_o,
    .start_next_o(),
    .compute_repeat_o,
    .retire_i(retire),
    .soft_reset_o,
    .resetting_i,
    .insn_count_o,
    .insn_addr_o(),
    .inp_addr_o(),
    .wgt_addr_o(),
    .uop_addr_o(),
    .bias_addr_o(),
    .out_addr_o(),
    .finished_i,
    .fault_code_i(FaultNone),
    .fault_address_i('0),
    .cycles_i('0),
    .gemms_i('0),
    .busy_i('0),
    .starved_i('0),
    .stalled_i('0),
    .bytes_i('0),
    .instructions_i('0)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) assume (!rst_ni);

  axi4_lite_checker #(
    .AssumeMaster(1'b1)
  ) u_port (
    .clk_i,
    .rst_ni,
    .awaddr_i,
    .awvalid_i,
    .awready_i(awready_o),
    .wdata_i,
    .wstrb_i,
    .wvalid_i,
    .wready_i(wready_o),
    .bresp_i(bresp_o),
    .bvalid_i(bvalid_o),
    .bready_i,
    .araddr_i,
    .arvalid_i,
    .arready_i(arready_o),
    .rdata_i(rdata_o),
    .rresp_i(rresp_o),
    .rvalid_i(rvalid_o),
    .rready_i
  );

  // The last whole write to INSN_COUNT that was answered, and whether the write that is now
  // answered is one.
  logic [15:0] write_address_q;
  logic [31:0] write_data_q, count_q;
  logic [3:0] write_strobe_q;
  logic responding_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
      responding_q <= 1'b0;
    end else begin
      responding_q <= bvalid_o && !bready_i;
      if (bvalid_o && !responding_q && write_address_q == 16'(RegInsnCount)
          && write_strobe_q == 4'hF) begin
        count_q <= write_data_q;
      end
    end
    if (awvalid_i && awready_o) write_address_q <= awaddr_i;
    if (wvalid_i && wready_o) {write_strobe_q, write_data_q} <= {wstrb_i, wdata_i};
    if (started_q && rst_ni) begin
      a_kept : assert (bvalid_o || insn_count_o == count_q);
      a_responses : assert ((!bvalid_o || bresp_o == 2'b00 || bresp_o == 2'b10)
          && (!rvalid_o || rresp_o == 2'b00));
    end
    c_write : cover (started_q && rst_ni && count_q == 32'h1234_5678);
    c_refused : cover (started_q && rst_ni && bvalid_o && bresp_o == 2'b10);
    c_read : cover (started_q && rst_ni && rvalid_o && rready_i && rdata_o == 32'h4849_4C54);
    c_reset : cover (started_q && rst_ni && soft_reset_o);
  end

endmodule
