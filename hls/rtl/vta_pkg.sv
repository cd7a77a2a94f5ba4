// SPDX-License-Identifier: Apache-2.0
//
// What all accelerators share, whatever their parameters (vta_parameters.svh): fixed fields of
// instructions, opcodes, and types of one size.

package vta_pkg;

  import vta_registers_pkg::*;  // fault codes

  localparam int unsigned TokenQueueDepth = 1024;  // as the public boards (TVM_FACTS.md section 3)

  localparam int unsigned LogTableBytes = 8;
  // It is written in words of 64 bits, whatever the bus: so deep that they fill LUT RAM.
  localparam int unsigned LogTableWordBytes = 3;
  localparam int unsigned TableWordBits = 8 << LogTableWordBytes;
  localparam int unsigned LogTableWords = LogTableBytes - LogTableWordBytes;

  // The columns that a window GEMM keeps, and the longest row of it.
  localparam int unsigned WindowColumns = 3;
  localparam int unsigned LogWindowLine = 7;

  // The accumulator and the output buffer have a bank for even and one for odd elements, so that
  // two micro-ops whose destinations differ in the lowest bit are executed together.
  localparam int unsigned AccBanks = 2;

  // ---- Instruction fields: those of one place ------------------------------------------------------
  localparam int unsigned OpcodeBits = 3;
  localparam int unsigned PopPrevBit = 3;
  localparam int unsigned PopNextBit = 4;
  localparam int unsigned PushPrevBit = 5;
  localparam int unsigned PushNextBit = 6;

  localparam int unsigned YSizeLsb = 64;
  localparam int unsigned XSizeLsb = 80;
  localparam int unsigned XStrideLsb = 96;
  localparam int unsigned YPad0Lsb = 112;
  localparam int unsigned YPad1Lsb = 116;
  localparam int unsigned XPad0Lsb = 120;
  localparam int unsigned XPad1Lsb = 124;

  localparam int unsigned ResetBit = 7;

  // ---- Widths of the machine's own --------------------------------------------------------------
  // A byte address: 32 bits of an address register plus 32 bits of dram_base times the largest
  // element fit well.
  localparam int unsigned AddrBits = 48;
  // Stages in the order of their register pages: fetch, load, compute, store.
  localparam int unsigned Stages = 4;
  localparam int unsigned MostReadPorts = 4;
  // A row of a block in beats: 16 bits of x_size, of the largest element.
  localparam int unsigned RowBeatsBits = 32;
  // A position in a block: 16 bits of sram_base and as many elements as end past every buffer.
  localparam int unsigned SramIndexBits = 17;

  typedef logic [AddrBits-1:0] address_t;

  // ---- AXI4: the signals of a master that vary, and their answers -------------------------------
  // Read data is a port of its own: a simulator would assemble a wide struct anew every cycle.
  typedef struct packed {
    address_t   araddr;
    logic [7:0] arlen;
    logic       arvalid;
    logic       rready;
  } axi_read_req_t;

  typedef struct packed {
    logic       arready;
    logic [1:0] rresp;
    logic       rlast;
    logic       rvalid;
  } axi_read_rsp_t;

  typedef struct packed {
    logic       awready;
    logic       wready;
    logic [1:0] bresp;
    logic       bvalid;
  } axi_write_rsp_t;

  typedef logic [AccBanks-1:0] banks_t;  // a bit for each bank
  // A clamp's bound, an immediate or the end of 32 bits: its sign and its low 16 bits, the highest
  // of which bits 30 to 16 repeat.
  typedef logic [16:0] bound_t;

  typedef enum logic [2:0] {
    OpLoad   = 3'd0,
    OpStore  = 3'd1,
    OpGemm   = 3'd2,
    OpFinish = 3'd3,
    OpAlu    = 3'd4
  } opcode_e;

  typedef enum logic [2:0] {
    MemUop     = 3'd0,
    MemWgt     = 3'd1,
    MemInp     = 3'd2,
    MemAcc     = 3'd3,
    MemOut     = 3'd4,
    MemAcc8    = 3'd5,
    MemThrough = 3'd6,  // STORE of OUT, each byte by way of the table
    MemTable   = 3'd7   // STORE of OUT to the table
  } memory_type_e;

  typedef enum logic [2:0] {
    AluMin = 3'd0,
    AluMax = 3'd1,
    AluAdd = 3'd2,
    AluShr = 3'd3,
    AluMul = 3'd4
  } alu_opcode_e;

  localparam logic [1:0] AxiRespSlverr = 2'b10;
  localparam logic [1:0] AxiRespDecerr = 2'b11;

  // ---- Decoded instructions ---------------------------------------------------------------------
  typedef struct packed {
    logic [15:0] sram_base;
    logic [31:0] dram_base;
    logic [15:0] y_size;
    logic [15:0] x_size;
    logic [15:0] x_stride;
    logic [3:0]  y_pad_0;
    logic [3:0]  y_pad_1;
    logic [3:0]  x_pad_0;
    logic [3:0]  x_pad_1;
  } transfer_t;

  // Where a block begins: an address register plus dram_base elements of 1 << log_bytes bytes.
  function automatic address_t block_address(
      input logic [31:0] register, input logic [31:0] dram_base, input int unsigned log_bytes);
    return address_t'(register) + (address_t'(dram_base) << log_bytes);
  endfunction

  function automatic fault_e fault_of_response(input logic [1:0] resp);
    return resp == AxiRespDecerr ? FaultDecerr : FaultSlverr;
  endfunction

endpackage
