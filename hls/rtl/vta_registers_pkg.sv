// SPDX-License-Identifier: Apache-2.0
// Register offsets and fault codes. Generated from hls/registers/registers.toml: do not edit.

package vta_registers_pkg;

  localparam logic [31:0] RegIdentityValue = 32'h48494C54;
  localparam logic [31:0] RegMapVersionValue = 32'd1;

  // Registers that each stage's page has, by their offset in the page.
  localparam logic [11:0] PageControl = 12'h000;
  localparam logic [11:0] PageBusyLow = 12'h080;
  localparam logic [11:0] PageBusyHigh = 12'h084;
  localparam logic [11:0] PageStarvedLow = 12'h088;
  localparam logic [11:0] PageStarvedHigh = 12'h08C;
  localparam logic [11:0] PageStalledLow = 12'h090;
  localparam logic [11:0] PageStalledHigh = 12'h094;
  localparam logic [11:0] PageBytesLow = 12'h098;
  localparam logic [11:0] PageBytesHigh = 12'h09C;
  localparam logic [11:0] PageInstructionsLow = 12'h0A0;
  localparam logic [11:0] PageInstructionsHigh = 12'h0A4;

  // Registers of one page, by their offset from the fetch page.
  localparam logic [13:0] RegInsnCount = 14'h0010;
  localparam logic [13:0] RegInsnAddr = 14'h0018;
  localparam logic [13:0] RegIdentity = 14'h0040;
  localparam logic [13:0] RegMapVersion = 14'h0044;
  localparam logic [13:0] RegGeometry = 14'h0048;
  localparam logic [13:0] RegBufferSizes = 14'h004C;
  localparam logic [13:0] RegBuild = 14'h0050;
  localparam logic [13:0] RegFaultCode = 14'h0054;
  localparam logic [13:0] RegFaultAddressLow = 14'h0058;
  localparam logic [13:0] RegFaultAddressHigh = 14'h005C;
  localparam logic [13:0] RegCyclesLow = 14'h0060;
  localparam logic [13:0] RegCyclesHigh = 14'h0064;
  localparam logic [13:0] RegSoftReset = 14'h0068;
  localparam logic [13:0] RegGemmMicroOpsLow = 14'h0070;
  localparam logic [13:0] RegGemmMicroOpsHigh = 14'h0074;
  localparam logic [13:0] RegInpAddr = 14'h1010;
  localparam logic [13:0] RegWgtAddr = 14'h1018;
  localparam logic [13:0] RegDoneWrite = 14'h2010;
  localparam logic [13:0] RegDoneRead = 14'h2018;
  localparam logic [13:0] RegUopAddr = 14'h2020;
  localparam logic [13:0] RegBiasAddr = 14'h2028;
  localparam logic [13:0] RegOutAddr = 14'h3010;

  typedef enum logic [3:0] {
    FaultNone    = 4'd0,
    FaultSlverr  = 4'd1,
    FaultDecerr  = 4'd2,
    FaultUop     = 4'd3,
    FaultInp     = 4'd4,
    FaultWgt     = 4'd5,
    FaultAcc     = 4'd6,
    FaultOut     = 4'd7,
    FaultIllegal = 4'd8
  } fault_e;

endpackage
