// SPDX-License-Identifier: Apache-2.0
//
// vta_axil_regs: the rules of AXI4-Lite at its port, and that a register keeps its written value until the next write.

module axil_regs_proof
  import vta_pkg::*;
  import vta_registers_pkg::*;
(
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

  vta_axil_regs dut (
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

  logic aw, w, b, ar, r;
  assign aw = awvalid_i && awready_o;
  assign w = wvalid_i && wready_o;
  assign b = bvalid_o && bready_i;
  assign ar = arvalid_i && arready_o;
  assign r = rvalid_o && rready_i;

  // Accepted and not answered; the slave may accept one more while a response waits.
  logic [1:0] addresses_q, datas_q, reads_q;
  logic b_waits_q, r_waits_q;
  logic [1:0] bresp_q;
  logic [31:0] rdata_q;

  // The last whole write to INSN_COUNT that was answered, and whether the write that is now answered is one.
  logic [15:0] write_address_q;
  logic [31:0] write_data_q, count_q;
  logic [3:0] write_strobe_q;
  logic responding_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      addresses_q <= '0;
      datas_q <= '0;
      reads_q <= '0;
      b_waits_q <= 1'b0;
      r_waits_q <= 1'b0;
      count_q <= '0;
      responding_q <= 1'b0;
    end else begin
      addresses_q <= addresses_q + 2'(aw) - 2'(b);
      datas_q <= datas_q + 2'(w) - 2'(b);
      reads_q <= reads_q + 2'(ar) - 2'(r);
      b_waits_q <= bvalid_o && !bready_i;
      r_waits_q <= rvalid_o && !rready_i;
      responding_q <= bvalid_o && !bready_i;
      if (bvalid_o && !responding_q && write_address_q == 16'(RegInsnCount) && write_strobe_q == 4'hF) begin
        count_q <= write_data_q;
      end
    end
    if (aw) write_address_q <= awaddr_i;
    if (w) {write_strobe_q, write_data_q} <= {wstrb_i, wdata_i};
    bresp_q <= bresp_o;
    rdata_q <= rdata_o;
    if (started_q && rst_ni) begin
      a_b_needs_both : assert (!bvalid_o || (addresses_q != 0 && datas_q != 0));
      a_r_needs_address : assert (!rvalid_o || reads_q != 0);
      a_b_stable : assert (!b_waits_q || (bvalid_o && bresp_o == bresp_q));
      a_r_stable : assert (!r_waits_q || (rvalid_o && rdata_o == rdata_q));
      a_no_overrun : assert (addresses_q <= 2 && datas_q <= 2 && reads_q <= 2);
      a_no_exclusive : assert (!bvalid_o || bresp_o == 2'b00 || bresp_o == 2'b10);
      a_r_ok : assert (!rvalid_o || rresp_o == 2'b00);
      a_kept : assert (bvalid_o || insn_count_o == count_q);
    end
    c_write : cover (started_q && rst_ni && count_q == 32'h1234_5678);
    c_refused : cover (started_q && rst_ni && bvalid_o && bresp_o == 2'b10);
    c_read : cover (started_q && rst_ni && r && rdata_o == 32'h4849_4C54);
    c_reset : cover (started_q && rst_ni && soft_reset_o);
  end

endmodule
