// SPDX-License-Identifier: Apache-2.0
//
// Parameters, field positions and opcodes: the only place where they are written in the RTL.
//
// The macros are those of Accelerator.defines(); without them this is the pynq set. Layout of
// instructions and micro-ops: HARDWARE.md section 2 for revisions A and B, docs/architecture.md for
// the wide ISA.

`ifndef VTA_LOG_INP_WIDTH
`define VTA_LOG_INP_WIDTH 3
`endif
`ifndef VTA_LOG_WGT_WIDTH
`define VTA_LOG_WGT_WIDTH 3
`endif
`ifndef VTA_LOG_ACC_WIDTH
`define VTA_LOG_ACC_WIDTH 5
`endif
`ifndef VTA_LOG_BATCH
`define VTA_LOG_BATCH 0
`endif
`ifndef VTA_LOG_BLOCK
`define VTA_LOG_BLOCK 4
`endif
`ifndef VTA_LOG_UOP_BUFF_SIZE
`define VTA_LOG_UOP_BUFF_SIZE 15
`endif
`ifndef VTA_LOG_INP_BUFF_SIZE
`define VTA_LOG_INP_BUFF_SIZE 15
`endif
`ifndef VTA_LOG_WGT_BUFF_SIZE
`define VTA_LOG_WGT_BUFF_SIZE 18
`endif
`ifndef VTA_LOG_ACC_BUFF_SIZE
`define VTA_LOG_ACC_BUFF_SIZE 17
`endif
`ifndef VTA_ISA_REVISION
`define VTA_ISA_REVISION 0
`endif
`ifndef VTA_BUS_WIDTH
`define VTA_BUS_WIDTH 64
`endif
`ifndef VTA_HAZARD_INTERLOCK
`define VTA_HAZARD_INTERLOCK 1
`endif
`ifndef VTA_TABLE
`define VTA_TABLE 1
`endif
`ifndef VTA_READ_PORTS
`define VTA_READ_PORTS 1
`endif
`ifndef VTA_WINDOW
`define VTA_WINDOW 1
`endif
`ifndef VTA_BANDS
`define VTA_BANDS 0
`endif
`ifndef VTA_INSN_QUEUE_DEPTH
`define VTA_INSN_QUEUE_DEPTH 512
`endif

package vta_pkg;

  import vta_registers_pkg::*;  // fault codes

  // ---- Build ------------------------------------------------------------------------------------
  localparam int unsigned LogInpWidth = `VTA_LOG_INP_WIDTH;
  localparam int unsigned LogWgtWidth = `VTA_LOG_WGT_WIDTH;
  localparam int unsigned LogAccWidth = `VTA_LOG_ACC_WIDTH;
  localparam int unsigned LogBatch = `VTA_LOG_BATCH;
  localparam int unsigned LogBlock = `VTA_LOG_BLOCK;
  localparam int unsigned LogUopBuffSize = `VTA_LOG_UOP_BUFF_SIZE;
  localparam int unsigned LogInpBuffSize = `VTA_LOG_INP_BUFF_SIZE;
  localparam int unsigned LogWgtBuffSize = `VTA_LOG_WGT_BUFF_SIZE;
  localparam int unsigned LogAccBuffSize = `VTA_LOG_ACC_BUFF_SIZE;
  localparam int unsigned IsaRevision = `VTA_ISA_REVISION;  // 0 A, 1 B, 2 wide
  localparam bit IsaA = IsaRevision == 0;
  localparam bit IsaWide = IsaRevision == 2;
  localparam int unsigned BusBits = `VTA_BUS_WIDTH;
  localparam int unsigned BusBytes = BusBits / 8;
  localparam int unsigned LogBusBytes = $clog2(BusBytes);
  localparam bit HazardInterlock = `VTA_HAZARD_INTERLOCK != 0;
  localparam bit Table = `VTA_TABLE != 0;  // of 256 bytes, on the way to the store
  // The load stage reads weights over so many AXI4 masters: each reads its part of every element.
  localparam int unsigned ReadPorts = `VTA_READ_PORTS;
  localparam int unsigned LogReadPorts = $clog2(ReadPorts);
  // LOADs of INP can move batch lanes: these can hold bands of one image.
  localparam bit Bands = `VTA_BANDS != 0;
  localparam int unsigned InsnQueueDepth = `VTA_INSN_QUEUE_DEPTH;
  localparam int unsigned TokenQueueDepth = 1024;  // as the public boards (TVM_FACTS.md section 3)

  // ---- Elements and buffers ---------------------------------------------------------------------
  localparam int unsigned Batch = 1 << LogBatch;
  localparam int unsigned Block = 1 << LogBlock;

  localparam int unsigned LogInsnBytes = IsaWide ? 5 : 4;
  localparam int unsigned LogUopBytes = IsaWide ? 3 : 2;
  localparam int unsigned LogInpBytes = LogBatch + LogBlock;
  localparam int unsigned LogWgtBytes = 2 * LogBlock;
  localparam int unsigned LogAccBytes = LogBatch + LogBlock + 2;
  localparam int unsigned LogOutBytes = LogInpBytes;
  localparam int unsigned LogAcc8Bytes = LogInpBytes;

  localparam int unsigned InsnBits = 8 << LogInsnBytes;
  localparam int unsigned UopBits = 8 << LogUopBytes;
  localparam int unsigned InpBits = 8 << LogInpBytes;
  localparam int unsigned WgtBits = 8 << LogWgtBytes;
  localparam int unsigned LogWgtPartBytes = LogWgtBytes - LogReadPorts;
  localparam int unsigned WgtPartBits = WgtBits / ReadPorts;
  localparam int unsigned AccBits = 8 << LogAccBytes;
  localparam int unsigned OutBits = 8 << LogOutBytes;
  localparam int unsigned AmountBits = 5 * Batch * Block;  // of shifts

  localparam int unsigned LogUopDepth = LogUopBuffSize - LogUopBytes;
  localparam int unsigned LogInpDepth = LogInpBuffSize - LogInpBytes;
  localparam int unsigned LogWgtDepth = LogWgtBuffSize - LogWgtBytes;
  localparam int unsigned LogAccDepth = LogAccBuffSize - LogAccBytes;
  localparam int unsigned UopDepth = 1 << LogUopDepth;
  localparam int unsigned InpDepth = 1 << LogInpDepth;
  localparam int unsigned WgtDepth = 1 << LogWgtDepth;
  localparam int unsigned AccDepth = 1 << LogAccDepth;
  localparam int unsigned OutDepth = AccDepth;

  localparam int unsigned LogTableBytes = 8;
  // The elements of the output buffer that hold a table; of one that is larger, the first bytes.
  localparam int unsigned TableElements =
      LogOutBytes < LogTableBytes ? 1 << (LogTableBytes - LogOutBytes) : 1;
  // It is written in words of 64 bits, whatever the bus: so deep that they fill LUT RAM.
  localparam int unsigned LogTableWordBytes = 3;
  localparam int unsigned TableWordBits = 8 << LogTableWordBytes;
  localparam int unsigned LogTableWords = LogTableBytes - LogTableWordBytes;

  // A window GEMM reads the last inputs of so many rows and columns of its iterations; a row is so
  // long at most. An output has two multipliers for each.
  localparam bit Window = `VTA_WINDOW != 0 && HazardInterlock && Block >= 16;
  localparam int unsigned WindowRows = Block >= 32 ? 3 : 2;
  localparam int unsigned WindowColumns = 3;
  localparam int unsigned WindowTaps = WindowRows * WindowColumns;
  localparam int unsigned LogWindowLine = 7;

  // The accumulator and the output buffer have a bank for even and one for odd elements, so that
  // two micro-ops whose destinations differ in the lowest bit are executed together.
  localparam int unsigned AccBanks = 2;
  localparam int unsigned LogAccRows = LogAccDepth - 1;
  localparam int unsigned AccRows = 1 << LogAccRows;

  // ---- Instruction fields: bit positions and widths ---------------------------------------------
  localparam int unsigned OpcodeBits = 3;
  localparam int unsigned PopPrevBit = 3;
  localparam int unsigned PopNextBit = 4;
  localparam int unsigned PushPrevBit = 5;
  localparam int unsigned PushNextBit = 6;

  localparam int unsigned MemoryTypeLsb = IsaWide ? 8 : 7;
  localparam int unsigned MemoryTypeBits = IsaA ? 2 : 3;
  localparam int unsigned SramBaseLsb = IsaWide ? 16 : MemoryTypeLsb + MemoryTypeBits;
  localparam int unsigned DramBaseLsb = SramBaseLsb + 16;
  // Of a LOAD of INP, with Bands: see lanes_t.
  localparam int unsigned LaneShiftLsb = IsaWide ? 128 : DramBaseLsb + 32;
  localparam int unsigned LanesKeptLsb = LaneShiftLsb + 2;
  localparam int unsigned YSizeLsb = 64;
  localparam int unsigned XSizeLsb = 80;
  localparam int unsigned XStrideLsb = 96;
  localparam int unsigned YPad0Lsb = 112;
  localparam int unsigned YPad1Lsb = 116;
  localparam int unsigned XPad0Lsb = 120;
  localparam int unsigned XPad1Lsb = 124;

  localparam int unsigned ResetBit = 7;
  localparam int unsigned WindowBit = IsaWide ? 8 : 63;
  localparam int unsigned UopBgnLsb = IsaWide ? 32 : 8;
  localparam int unsigned UopBgnBits = IsaWide ? 32 : LogUopDepth;
  localparam int unsigned UopEndLsb = UopBgnLsb + UopBgnBits;
  localparam int unsigned UopEndBits = IsaWide ? 32 : LogUopDepth + 1;
  localparam int unsigned IterBits = IsaWide ? 16 : 14;
  localparam int unsigned IterOutLsb = UopEndLsb + UopEndBits;
  localparam int unsigned IterInLsb = IterOutLsb + IterBits;

  localparam int unsigned DstFactorBits = IsaWide ? 21 : LogAccDepth;
  localparam int unsigned GemmSrcFactorBits = IsaWide ? 21 : LogInpDepth;
  localparam int unsigned AluSrcFactorBits = IsaWide ? 21 : LogAccDepth;
  localparam int unsigned WgtFactorBits = IsaWide ? 21 : LogWgtDepth;
  localparam int unsigned DstFactorOutLsb = IsaWide ? 128 : 64;
  localparam int unsigned DstFactorInLsb = IsaWide ? 192 : DstFactorOutLsb + DstFactorBits;
  localparam int unsigned SrcFactorOutLsb = IsaWide ? 149 : DstFactorInLsb + DstFactorBits;
  localparam int unsigned GemmSrcFactorInLsb = IsaWide ? 213 : SrcFactorOutLsb + GemmSrcFactorBits;
  localparam int unsigned AluSrcFactorInLsb = IsaWide ? 213 : SrcFactorOutLsb + AluSrcFactorBits;
  localparam int unsigned WgtFactorOutLsb = IsaWide ? 170 : GemmSrcFactorInLsb + GemmSrcFactorBits;
  localparam int unsigned WgtFactorInLsb = IsaWide ? 234 : WgtFactorOutLsb + WgtFactorBits;
  localparam int unsigned AluOpcodeLsb = IsaWide ? 11 : AluSrcFactorInLsb + AluSrcFactorBits;
  localparam int unsigned AluOpcodeBits = IsaA ? 2 : 3;
  localparam int unsigned UseImmBit = IsaWide ? 14 : AluOpcodeLsb + AluOpcodeBits;
  localparam int unsigned ImmLsb = IsaWide ? 16 : UseImmBit + 1;

  // The micro-op's source is as wide as the input buffer is deep, in ALU micro-ops too.
  localparam int unsigned UopDstBits = IsaWide ? 21 : LogAccDepth;
  localparam int unsigned UopSrcBits = IsaWide ? 21 : LogInpDepth;
  localparam int unsigned UopWgtBits = IsaWide ? 21 : LogWgtDepth;
  localparam int unsigned UopSrcLsb = UopDstBits;
  localparam int unsigned UopWgtLsb = UopSrcLsb + UopSrcBits;

  // ---- Widths of the machine's own --------------------------------------------------------------
  // A byte address: 32 bits of an address register plus 32 bits of dram_base times the largest
  // element fit well.
  localparam int unsigned AddrBits = 48;
  // The largest sum of micro-op field, iteration times outer factor and iteration times inner
  // factor.
  localparam int unsigned MaxFactorBits = IsaWide ? 21 :
      (LogAccDepth > LogInpDepth ? (LogAccDepth > LogWgtDepth ? LogAccDepth : LogWgtDepth)
                                 : (LogInpDepth > LogWgtDepth ? LogInpDepth : LogWgtDepth));
  localparam int unsigned IndexBits = IterBits + MaxFactorBits + 2;
  // Stages in the order of their register pages: fetch, load, compute, store.
  localparam int unsigned Stages = 4;
  // Bytes that a stage moves in a cycle.
  localparam int unsigned BeatBytesBits = LogBusBytes + 1 + LogReadPorts;
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
    address_t            awaddr;
    logic [7:0]          awlen;
    logic                awvalid;
    logic [BusBits-1:0]  wdata;
    logic [BusBytes-1:0] wstrb;
    logic                wlast;
    logic                wvalid;
    logic                bready;
  } axi_write_req_t;

  typedef struct packed {
    logic       awready;
    logic       wready;
    logic [1:0] bresp;
    logic       bvalid;
  } axi_write_rsp_t;
  typedef logic [IndexBits-1:0] index_t;
  typedef logic [AccBanks-1:0] banks_t;  // a bit for each bank
  typedef logic [AccBanks-1:0][LogAccRows-1:0] rows_t;  // a row of each bank
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

  // RAMs of the input buffer, which are written alone: one for each lane that a LOAD can keep.
  localparam int unsigned InpRams = Bands ? Batch : 1;

  // Lanes that a LOAD of INP moves: lane k of an element comes from lane k + 0, 1, 2 or -1 of memory
  // (shift 0 to 3), and is zero where there is none. A lane that is kept is not written.
  typedef struct packed {
    logic [1:0]         shift;
    logic [InpRams-1:0] kept;
  } lanes_t;

  typedef struct packed {
    logic                  reset;
    logic [UopEndBits-1:0] uop_bgn;
    logic [UopEndBits-1:0] uop_end;
    logic [3:1]            uop_count;  // whether there are so many micro-ops
    logic [IterBits-1:0]   iter_out;
    logic [IterBits-1:0]   iter_in;
    index_t                dst_factor_out;
    index_t                dst_factor_in;
    index_t                src_factor_out;
    index_t                src_factor_in;
    index_t                wgt_factor_out;
    index_t                wgt_factor_in;
    // Of a window GEMM, whose weights do not move on: the rows and columns that it does not write.
    logic                     window;
    logic [WgtFactorBits-1:0] skip_out;
    logic [WgtFactorBits-1:0] skip_in;
    logic [2:0]            alu_opcode;
    logic                  use_imm;
    logic [15:0]           imm;
  } nest_t;

  // Two micro-ops with all that can be said of them beforehand (vta_pairs). Indices are within their
  // buffers unless there is a fault.
  localparam int unsigned SrcBits = LogAccDepth > LogInpDepth ? LogAccDepth : LogInpDepth;
  typedef logic [LogAccDepth-1:0] dst_t;
  typedef logic [SrcBits-1:0] src_t;
  typedef logic [LogWgtDepth-1:0] wgt_t;
  typedef struct packed {
    logic [1:0] valid;
    logic [1:0] fault;
    // the two may go in one cycle, if the second need not wait and has no fault
    logic       may_pair;
    // Whether a micro-op reads a destination of the two pairs before, the nearer one first, and
    // whether the second reads that of the first.
    logic [1:0][3:0] conflicts;
    logic       second_conflicts;
    dst_t [1:0] dst;
    src_t [1:0] src;
    wgt_t [1:0] wgt;
  } pair_t;

  function automatic logic [2:0] opcode_of(input logic [InsnBits-1:0] insn);
    return insn[OpcodeBits-1:0];
  endfunction

  function automatic logic [2:0] memory_type_of(input logic [InsnBits-1:0] insn);
    return 3'(insn[MemoryTypeLsb+:MemoryTypeBits]);
  endfunction

  // A STORE's memory type: all but the two of the table are OUT. Revision A has their low bits only,
  // and VTA's own compiler writes 0 there.
  function automatic logic [2:0] store_type_of(input logic [InsnBits-1:0] insn);
    logic [2:0] written;
    written = memory_type_of(insn) | (IsaA ? 3'd4 : 3'd0);
    return Table && written >= MemThrough ? written : MemOut;
  endfunction

  function automatic logic [2:0] alu_opcode_of(input logic [InsnBits-1:0] insn);
    return 3'(insn[AluOpcodeLsb+:AluOpcodeBits]);
  endfunction

  function automatic logic use_imm_of(input logic [InsnBits-1:0] insn);
    return insn[UseImmBit];
  endfunction

  function automatic logic [15:0] imm_of(input logic [InsnBits-1:0] insn);
    return insn[ImmLsb+:16];
  endfunction

  function automatic transfer_t transfer_of(input logic [InsnBits-1:0] insn);
    return
    '{
        sram_base: insn[SramBaseLsb+:16],
        dram_base: insn[DramBaseLsb+:32],
        y_size: insn[YSizeLsb+:16],
        x_size: insn[XSizeLsb+:16],
        x_stride: insn[XStrideLsb+:16],
        y_pad_0: insn[YPad0Lsb+:4],
        y_pad_1: insn[YPad1Lsb+:4],
        x_pad_0: insn[XPad0Lsb+:4],
        x_pad_1: insn[XPad1Lsb+:4]
    }
    ;
  endfunction

  function automatic logic window_of(input logic [InsnBits-1:0] insn);
    return Window && opcode_of(insn) == OpGemm && insn[WindowBit];
  endfunction

  function automatic lanes_t lanes_of(input logic [InsnBits-1:0] insn);
    return Bands ? '{shift: insn[LaneShiftLsb+:2], kept: insn[LanesKeptLsb+:InpRams]} : '0;
  endfunction

  function automatic nest_t nest_of(input logic [InsnBits-1:0] insn);
    logic gemm, window;
    logic [UopEndBits-1:0] count;
    gemm = opcode_of(insn) == OpGemm;
    window = window_of(insn);
    count = insn[UopEndLsb +: UopEndBits] - UopEndBits'(insn[UopBgnLsb +: UopBgnBits]);
    return
    '{
        reset: insn[ResetBit],
        uop_bgn: UopEndBits'(insn[UopBgnLsb+:UopBgnBits]),
        uop_end: insn[UopEndLsb+:UopEndBits],
        uop_count: {count == UopEndBits'(3), count == UopEndBits'(2), count == UopEndBits'(1)},
        iter_out: insn[IterOutLsb+:IterBits],
        iter_in: insn[IterInLsb+:IterBits],
        dst_factor_out: index_t'(insn[DstFactorOutLsb+:DstFactorBits]),
        dst_factor_in: index_t'(insn[DstFactorInLsb+:DstFactorBits]),
        src_factor_out:
        gemm
        ?
        index_t'(insn[SrcFactorOutLsb+:GemmSrcFactorBits])
        :
        index_t
        '(
        insn[SrcFactorOutLsb+:AluSrcFactorBits]
        ),
        src_factor_in:
        gemm
        ?
        index_t'(insn[GemmSrcFactorInLsb+:GemmSrcFactorBits])
        :
        index_t
        '(
        insn[AluSrcFactorInLsb+:AluSrcFactorBits]
        ),
        wgt_factor_out: window ? '0 : index_t'(insn[WgtFactorOutLsb+:WgtFactorBits]),
        wgt_factor_in: window ? '0 : index_t'(insn[WgtFactorInLsb+:WgtFactorBits]),
        window: window,
        skip_out: insn[WgtFactorOutLsb+:WgtFactorBits],
        skip_in: insn[WgtFactorInLsb+:WgtFactorBits],
        alu_opcode: alu_opcode_of(insn),
        use_imm: use_imm_of(insn),
        imm: imm_of(insn)
    }
    ;
  endfunction

  // The micro-ops and destinations that GEMM or ALU goes over.
  localparam int unsigned DestinationsBits =
      UopBgnBits + UopEndBits + 2 * IterBits + 2 * DstFactorBits;
  function automatic logic [DestinationsBits-1:0] destinations_of(input logic [InsnBits-1:0] insn);
    return {
      insn[UopBgnLsb+:UopBgnBits],
      insn[UopEndLsb+:UopEndBits],
      insn[IterOutLsb+:IterBits],
      insn[IterInLsb+:IterBits],
      insn[DstFactorOutLsb+:DstFactorBits],
      insn[DstFactorInLsb+:DstFactorBits]
    };
  endfunction

  // Whether one number is the other plus one, both of them of UopEndBits. Bit by bit: the sum's carry
  // into a bit is known from the bit before, where that is right.
  function automatic logic follows(input logic [UopEndBits-1:0] number,
                                   input logic [UopEndBits-1:0] other);
    return (number ^ other) == {other[UopEndBits-2:0] & ~number[UopEndBits-2:0], 1'b1};
  endfunction

  // Whether it is a window GEMM of anything but one micro-op and an inner loop of two iterations to
  // as many as a line has.
  function automatic logic illegal_window(input logic [InsnBits-1:0] insn);
    logic [IterBits-1:0] columns;
    columns = insn[IterInLsb+:IterBits];
    return window_of(
        insn
    ) && (!follows(
        insn[UopEndLsb+:UopEndBits], UopEndBits'(insn[UopBgnLsb+:UopBgnBits])
    ) || columns < IterBits'(2) || columns > IterBits'(1 << LogWindowLine));
  endfunction

  // Whether the compute stage, which gets it, cannot execute it: opcodes 5 to 7, LOAD of OUT and of
  // memory types 6 and 7, ALU operations 5 to 7, a window GEMM that there is not.
  function automatic logic illegal(input logic [InsnBits-1:0] insn);
    unique case (opcode_of(
        insn
    ))
      OpStore, OpFinish: return 1'b0;
      OpGemm: return illegal_window(insn);
      OpLoad: return memory_type_of(insn) == MemOut || memory_type_of(insn) > MemAcc8;
      OpAlu: return alu_opcode_of(insn) > AluMul;
      default: return 1'b1;
    endcase
  endfunction

  // Whether it is a STORE to the table of anything but one row that fills it.
  function automatic logic illegal_store(input logic [InsnBits-1:0] insn);
    return opcode_of(insn) == OpStore && store_type_of(insn) == MemTable &&
        (insn[YSizeLsb+:16] != 16'd1 || insn[XSizeLsb+:16] != 16'(TableElements));
  endfunction

  // Whether it is an ALU operation with immediate that can be executed.
  function automatic logic immediate(input logic [InsnBits-1:0] insn);
    return opcode_of(insn) == OpAlu && use_imm_of(insn) && !illegal(insn);
  endfunction

  // Whether it may join one before it that goes over the same destinations (vta_chain): a MIN or
  // MAX that pops no token.
  function automatic logic clamps(input logic [InsnBits-1:0] insn);
    return immediate(insn) && (alu_opcode_of(insn) == AluMin || alu_opcode_of(insn) == AluMax) &&
        !insn[PopPrevBit] && !insn[PopNextBit];
  endfunction

  // Where a block begins: an address register plus dram_base elements of 1 << log_bytes bytes.
  function automatic address_t block_address(
      input logic [31:0] register, input logic [31:0] dram_base, input int unsigned log_bytes);
    return address_t'(register) + (address_t'(dram_base) << log_bytes);
  endfunction

  function automatic fault_e fault_of_response(input logic [1:0] resp);
    return resp == AxiRespDecerr ? FaultDecerr : FaultSlverr;
  endfunction

endpackage
