// SPDX-License-Identifier: Apache-2.0
//
// The register blocks of the four stages behind one AXI4-Lite slave, a page of 4 KiB each:
// docs/registers.md.
//
// A control register starts its stage with bit 0; the stage then executes one instruction (fetch:
// one program) and is ready again, or goes on as long as bit 7, auto restart, is set. Bits 1 (done)
// and 3 (ready) are cleared by reading.
//
// One access at a time. A write takes effect two cycles after its address and data are both
// accepted, and a read's value is that of the cycle after its address is accepted. Unmapped
// registers read 0; a write with a byte strobe low is refused with SLVERR.

module vta_axil_regs
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // AXI4-Lite.
  input  logic [      15:0] awaddr_i,
  input  logic              awvalid_i,
  output logic              awready_o,
  input  logic [      31:0] wdata_i,
  input  logic [       3:0] wstrb_i,
  input  logic              wvalid_i,
  output logic              wready_o,
  output logic [       1:0] bresp_o,
  output logic              bvalid_o,
  input  logic              bready_i,
  input  logic [      15:0] araddr_i,
  input  logic              arvalid_i,
  output logic              arready_o,
  output logic [      31:0] rdata_o,
  output logic [       1:0] rresp_o,
  output logic              rvalid_o,
  input  logic              rready_i,
  // Stages 0 fetch, 1 load, 2 compute, 3 store.
  output logic [       3:0] start_o,         // level
  output logic [       3:1] start_next_o,    // in the next cycle
  output logic              compute_repeat_o,  // compute goes on to the next instruction by itself
  input  logic              retire_i[4],     // an instruction, or fetch's program, ended
  output logic              soft_reset_o,    // pulse
  input  logic              resetting_i,
  output logic [      31:0] insn_count_o,
  output logic [      31:0] insn_addr_o,
  output logic [      31:0] inp_addr_o,
  output logic [      31:0] wgt_addr_o,
  output logic [      31:0] uop_addr_o,
  output logic [      31:0] bias_addr_o,
  output logic [      31:0] out_addr_o,
  input  logic              finished_i,
  input  fault_e            fault_code_i,
  input  address_t          fault_address_i,
  input  logic [      63:0] cycles_i,
  input  logic [      63:0] gemms_i,
  input  logic [3:0][ 63:0] busy_i,
  input  logic [3:0][ 63:0] starved_i,
  input  logic [3:0][ 63:0] stalled_i,
  input  logic [3:0][ 63:0] bytes_i,
  input  logic [3:0][ 63:0] instructions_i
);

  localparam logic [1:0] Compute = 2'd2;

  localparam logic [31:0] Geometry = {
    12'd0, 4'(LogAccWidth), 4'(LogWgtWidth), 4'(LogInpWidth), 4'(LogBlock), 4'(LogBatch)
  };
  localparam logic [31:0] Buffers = {
    8'(LogAccBuffSize), 8'(LogWgtBuffSize), 8'(LogInpBuffSize), 8'(LogUopBuffSize)
  };
  localparam logic [31:0] Build = {
    14'd0,
    Bands,
    HasWindow,
    2'(LogReadPorts),
    Table,
    HazardInterlock,
    4'($clog2(BusBits)),
    4'd0,
    4'(IsaRevision)
  };

  // ---- Writes -----------------------------------------------------------------------------------
  logic aw_held_q, w_held_q, bvalid_q;
  logic [15:0] awaddr_q;
  logic [31:0] wdata_q;
  logic [3:0] wstrb_q;
  logic [1:0] bresp_q;
  logic write_both, write;
  assign write_both = aw_held_q && w_held_q && !bvalid_q;
  assign write = write_both && wstrb_q == 4'hF;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_held_q <= 1'b0;
      w_held_q <= 1'b0;
      bvalid_q <= 1'b0;
    end else begin
      if (write_both) aw_held_q <= 1'b0;
      else if (awvalid_i) aw_held_q <= 1'b1;
      if (write_both) w_held_q <= 1'b0;
      else if (wvalid_i) w_held_q <= 1'b1;
      if (write_both) bvalid_q <= 1'b1;
      else if (bready_i) bvalid_q <= 1'b0;
    end
    if (awvalid_i && awready_o) awaddr_q <= awaddr_i;
    if (wvalid_i && wready_o) {wstrb_q, wdata_q} <= {wstrb_i, wdata_i};
    if (write_both) bresp_q <= write ? 2'b00 : AxiRespSlverr;
  end

  assign awready_o = !aw_held_q;
  assign wready_o = !w_held_q;
  assign bvalid_o = bvalid_q;
  assign bresp_o = bresp_q;

  logic [31:0]
      insn_count_q,
      insn_addr_q,
      inp_addr_q,
      wgt_addr_q,
      uop_addr_q,
      bias_addr_q,
      out_addr_q,
      done_write_q;
  logic soft_reset_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      insn_count_q <= '0;
      insn_addr_q <= '0;
      inp_addr_q <= '0;
      wgt_addr_q <= '0;
      uop_addr_q <= '0;
      bias_addr_q <= '0;
      out_addr_q <= '0;
      done_write_q <= '0;
    end else if (write && awaddr_q[15:14] == '0) begin
      unique case (awaddr_q[13:0])
        RegInsnCount: insn_count_q <= wdata_q;
        RegInsnAddr: insn_addr_q <= wdata_q;
        RegInpAddr: inp_addr_q <= wdata_q;
        RegWgtAddr: wgt_addr_q <= wdata_q;
        RegDoneWrite: done_write_q <= wdata_q;
        RegUopAddr: uop_addr_q <= wdata_q;
        RegBiasAddr: bias_addr_q <= wdata_q;
        RegOutAddr: out_addr_q <= wdata_q;
        default: ;
      endcase
    end
    soft_reset_q <= rst_ni && write && awaddr_q == 16'(RegSoftReset) && wdata_q[0];
  end

  assign insn_count_o = insn_count_q;
  assign insn_addr_o = insn_addr_q;
  assign inp_addr_o = inp_addr_q;
  assign wgt_addr_o = wgt_addr_q;
  assign uop_addr_o = uop_addr_q;
  assign bias_addr_o = bias_addr_q;
  assign out_addr_o = out_addr_q;
  assign soft_reset_o = soft_reset_q;

  // ---- Control ----------------------------------------------------------------------------------
  logic [3:0] start_q, start_d, restart_q, done_q, write_control, read_control, retired;
  logic read;  // a read's value is taken
  always_comb begin
    write_control = '0;
    if (write)
      write_control[awaddr_q[13:12]] = awaddr_q[15:14] == '0 && awaddr_q[11:0] == PageControl;
  end
  assign retired = {retire_i[3], retire_i[2], retire_i[1], retire_i[0]};
  always_comb begin
    start_d = (start_q & ~(retired & ~restart_q)) | (wdata_q[0] ? write_control : '0);
    if (!rst_ni || soft_reset_q) start_d = '0;
  end
  assign start_o = start_q;
  assign start_next_o = start_d[3:1];
  assign compute_repeat_o = restart_q[Compute];

  always_ff @(posedge clk_i) begin
    start_q <= start_d;
    if (!rst_ni || soft_reset_q) begin
      restart_q <= '0;
      done_q <= '0;
    end else begin
      if (read) done_q <= done_q & ~read_control;
      for (int s = 0; s < 4; s++) begin
        if (retire_i[s]) done_q[s] <= 1'b1;
      end
      if (write) begin
        for (int s = 0; s < 4; s++) if (write_control[s]) restart_q[s] <= wdata_q[7];
      end
    end
  end

  // ---- Reads ------------------------------------------------------------------------------------
  // In two steps: the pages' counters, what is of the whole accelerator (in the fetch page, from
  // 0x40 on) and what a program is given are chosen from apart, then one of the three.
  logic ar_held_q, chosen_q, rvalid_q;
  logic [15:0] araddr_q;
  logic [31:0] rdata_q, of_page_q, whole_q, given_q;
  logic is_of_page_q, is_whole_q, is_given_q, in_range_q;
  logic [1:0] page;
  logic [11:0] offset;
  assign page = araddr_q[13:12];
  assign offset = araddr_q[11:0];
  assign read = ar_held_q && !chosen_q && !rvalid_q;
  always_comb begin
    read_control = '0;
    if (read) read_control[page] = araddr_q[15:14] == '0 && offset == PageControl;
  end

  // Which register of a program an address asks for is known with the address.
  localparam int unsigned Given = 9;
  localparam logic [13:0] GivenAddresses[Given] = '{
      RegInsnCount,
      RegInsnAddr,
      RegInpAddr,
      RegWgtAddr,
      RegDoneWrite,
      RegDoneRead,
      RegUopAddr,
      RegBiasAddr,
      RegOutAddr
  };
  logic [Given-1:0] given_select_q;
  logic [31:0] given_values[Given];
  logic [31:0] given;
  assign given_values = '{
          insn_count_q,
          insn_addr_q,
          inp_addr_q,
          wgt_addr_q,
          done_write_q,
          32'(finished_i),
          uop_addr_q,
          bias_addr_q,
          out_addr_q
      };

  function automatic logic [Given-1:0] given_selected(input logic [7:0] register);
    for (int n = 0; n < Given; n++)
    given_selected[n] = register == {GivenAddresses[n][13:12], GivenAddresses[n][7:2]};
  endfunction

  always_comb begin
    given = '0;
    for (int n = 0; n < Given; n++) given = given | (given_values[n] & {32{given_select_q[n]}});
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_held_q <= 1'b0;
      chosen_q <= 1'b0;
      rvalid_q <= 1'b0;
    end else begin
      if (read) ar_held_q <= 1'b0;
      else if (arvalid_i && arready_o) ar_held_q <= 1'b1;
      chosen_q <= read;
      if (chosen_q) rvalid_q <= 1'b1;
      else if (rready_i) rvalid_q <= 1'b0;
    end
    if (arvalid_i && arready_o) begin
      araddr_q <= araddr_i;
      given_select_q <= given_selected({araddr_i[13:12], araddr_i[7:2]});
    end
    if (read) begin
      is_of_page_q <= 1'b1;
      is_whole_q <= page == '0;
      unique case (offset[7:2])
        PageControl[7:2]:
        of_page_q <= {
          24'd0, restart_q[page], 3'd0, done_q[page], !start_q[page], done_q[page], start_q[page]
        };
        PageBusyLow[7:2]: of_page_q <= busy_i[page][31:0];
        PageBusyHigh[7:2]: of_page_q <= busy_i[page][63:32];
        PageStarvedLow[7:2]: of_page_q <= starved_i[page][31:0];
        PageStarvedHigh[7:2]: of_page_q <= starved_i[page][63:32];
        PageStalledLow[7:2]: of_page_q <= stalled_i[page][31:0];
        PageStalledHigh[7:2]: of_page_q <= stalled_i[page][63:32];
        PageBytesLow[7:2]: of_page_q <= bytes_i[page][31:0];
        PageBytesHigh[7:2]: of_page_q <= bytes_i[page][63:32];
        PageInstructionsLow[7:2]: of_page_q <= instructions_i[page][31:0];
        PageInstructionsHigh[7:2]: of_page_q <= instructions_i[page][63:32];
        default: begin
          is_of_page_q <= 1'b0;
          of_page_q <= busy_i[page][31:0];
        end
      endcase
      is_given_q <= given_select_q != '0;
      given_q <= given;
      unique case (offset[7:2])
        RegIdentity[7:2]: whole_q <= RegIdentityValue;
        RegMapVersion[7:2]: whole_q <= RegMapVersionValue;
        RegGeometry[7:2]: whole_q <= Geometry;
        RegBufferSizes[7:2]: whole_q <= Buffers;
        RegBuild[7:2]: whole_q <= Build;
        RegFaultCode[7:2]: whole_q <= 32'(fault_code_i);
        RegFaultAddressLow[7:2]: whole_q <= fault_address_i[31:0];
        RegFaultAddressHigh[7:2]: whole_q <= 32'(fault_address_i[AddrBits-1:32]);
        RegCyclesLow[7:2]: whole_q <= cycles_i[31:0];
        RegCyclesHigh[7:2]: whole_q <= cycles_i[63:32];
        RegSoftReset[7:2]: whole_q <= 32'(resetting_i);
        RegGemmMicroOpsLow[7:2]: whole_q <= gemms_i[31:0];
        RegGemmMicroOpsHigh[7:2]: whole_q <= gemms_i[63:32];
        default: begin
          is_whole_q <= 1'b0;
          whole_q <= gemms_i[63:32];
        end
      endcase
      in_range_q <= araddr_q[15:14] == '0 && offset[11:8] == '0 && offset[1:0] == '0;
    end
    if (chosen_q)
      rdata_q <= !in_range_q ? '0 : is_of_page_q ? of_page_q : is_whole_q ? whole_q
          : is_given_q ? given_q : '0;
  end

  assign arready_o = !ar_held_q;
  assign rvalid_o = rvalid_q;
  assign rdata_o = rdata_q;
  assign rresp_o = 2'b00;

  // The registers are told by page and bits 7 to 2 of the offset.
  if (PageInstructionsHigh[11:8] != '0 || RegGemmMicroOpsHigh[13:8] != '0
      || RegIdentity[13:8] != '0) begin : g_check
    $error("vta_axil_regs: a register is past the first 256 bytes of its page");
  end

`ifndef SYNTHESIS
  // verilog_format: off
  // ---- Assertions -------------------------------------------------------------------------------
  assert_b_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && bvalid_o && !bready_i) -> bvalid_o && $stable(bresp_o))
  else $error("an AXI4-Lite write response changed before it was accepted");
  assert_r_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && rvalid_o && !rready_i) -> rvalid_o && $stable(rdata_o))
  else $error("AXI4-Lite read data changed before it was accepted");
  assert_one_write : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && write_both) -> bvalid_o && !aw_held_q && !w_held_q)
  else $error("a write was not answered once");
  assert_soft_reset : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && soft_reset_o) -> start_o == '0 && !compute_repeat_o)
  else $error("a stage stays started over a soft reset");
  assert_start : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && (start_o & ~$past(start_o)) != '0 -> $past(write))
  else $error("a stage was started by no write");
  cover_refused : cover property (@(posedge clk_i) rst_ni && bvalid_o && bresp_o == AxiRespSlverr);
  cover_soft_reset : cover property (@(posedge clk_i) rst_ni && soft_reset_o);
  // verilog_format: on
`endif

endmodule
