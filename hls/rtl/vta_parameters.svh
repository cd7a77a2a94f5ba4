// SPDX-License-Identifier: Apache-2.0
//
// The parameters of an accelerator and the sizes and types that follow from them: the end of each
// module's parameter list. Who instantiates a module passes them on with vta_passed.svh, so that a
// design can have accelerators of other parameters.
//
// The names are those of Accelerator.rtl_parameters(); the defaults are the pynq set. Layout of
// instructions and micro-ops: HARDWARE.md section 2 for revisions A and B, docs/architecture.md for
// the wide ISA.

// ---- Build --------------------------------------------------------------------------------------
parameter int unsigned LogInpWidth = 3,
parameter int unsigned LogWgtWidth = 3,
parameter int unsigned LogAccWidth = 5,
parameter int unsigned LogBatch = 0,
parameter int unsigned LogBlock = 4,
parameter int unsigned LogUopBuffSize = 15,
parameter int unsigned LogInpBuffSize = 15,
parameter int unsigned LogWgtBuffSize = 18,
parameter int unsigned LogAccBuffSize = 17,
parameter int unsigned IsaRevision = 0,  // 0 A, 1 B, 2 wide
parameter int unsigned BusBits = 64,
parameter bit HazardInterlock = 1'b1,
parameter bit Table = 1'b1,  // of 256 bytes, on the way to the store
// The load stage has so many AXI4 masters: each reads its part of every weight, and its rows of inputs.
parameter int unsigned ReadPorts = 1,
parameter bit Window = 1'b1,  // window GEMMs, where the other parameters allow them
// LOADs of INP can move batch lanes: these can hold bands of one image.
parameter bit Bands = 1'b0,
parameter int unsigned InsnQueueDepth = 512,

localparam bit IsaA = IsaRevision == 0,
localparam bit IsaWide = IsaRevision == 2,
localparam int unsigned BusBytes = BusBits / 8,
localparam int unsigned LogBusBytes = $clog2(BusBytes),
localparam int unsigned LogReadPorts = $clog2(ReadPorts),

// ---- Elements and buffers -----------------------------------------------------------------------
localparam int unsigned Batch = 1 << LogBatch,
localparam int unsigned Block = 1 << LogBlock,

localparam int unsigned LogInsnBytes = IsaWide ? 5 : 4,
localparam int unsigned LogUopBytes = IsaWide ? 3 : 2,
localparam int unsigned LogInpBytes = LogBatch + LogBlock,
localparam int unsigned LogWgtBytes = 2 * LogBlock,
localparam int unsigned LogAccBytes = LogBatch + LogBlock + 2,
localparam int unsigned LogOutBytes = LogInpBytes,
localparam int unsigned LogAcc8Bytes = LogInpBytes,

localparam int unsigned InsnBits = 8 << LogInsnBytes,
localparam int unsigned UopBits = 8 << LogUopBytes,
localparam int unsigned InpBits = 8 << LogInpBytes,
localparam int unsigned WgtBits = 8 << LogWgtBytes,
localparam int unsigned LogWgtPartBytes = LogWgtBytes - LogReadPorts,
localparam int unsigned WgtPartBits = WgtBits / ReadPorts,
// The masters that share the rows of a LOAD of INP: as many as an element has beats, or fewer.
localparam int unsigned LogInpPorts =
    LogReadPorts < LogInpBytes - LogBusBytes ? LogReadPorts : LogInpBytes - LogBusBytes,
localparam int unsigned InpPorts = 1 << LogInpPorts,
localparam int unsigned AccBits = 8 << LogAccBytes,
localparam int unsigned OutBits = 8 << LogOutBytes,
localparam int unsigned AmountBits = 5 * Batch * Block,  // of shifts

localparam int unsigned LogUopDepth = LogUopBuffSize - LogUopBytes,
localparam int unsigned LogInpDepth = LogInpBuffSize - LogInpBytes,
localparam int unsigned LogWgtDepth = LogWgtBuffSize - LogWgtBytes,
localparam int unsigned LogAccDepth = LogAccBuffSize - LogAccBytes,
localparam int unsigned UopDepth = 1 << LogUopDepth,
localparam int unsigned InpDepth = 1 << LogInpDepth,
localparam int unsigned WgtDepth = 1 << LogWgtDepth,
localparam int unsigned AccDepth = 1 << LogAccDepth,
localparam int unsigned OutDepth = AccDepth,

// The elements of the output buffer that hold a table; of one that is larger, the first bytes.
localparam int unsigned TableElements =
    LogOutBytes < LogTableBytes ? 1 << (LogTableBytes - LogOutBytes) : 1,
// A window GEMM reads the last inputs of so many rows and columns of its iterations. An output has
// two multipliers for each.
localparam bit HasWindow = Window && HazardInterlock && Block >= 16,
localparam int unsigned WindowRows = Block >= 32 ? 3 : 2,
localparam int unsigned WindowTaps = WindowRows * WindowColumns,

localparam int unsigned LogAccRows = LogAccDepth - 1,
localparam int unsigned AccRows = 1 << LogAccRows,

// ---- Widths of fields of instructions and micro-ops ---------------------------------------------
localparam int unsigned UopBgnBits = IsaWide ? 32 : LogUopDepth,
localparam int unsigned UopEndBits = IsaWide ? 32 : LogUopDepth + 1,
localparam int unsigned IterBits = IsaWide ? 16 : 14,
localparam int unsigned DstFactorBits = IsaWide ? 21 : LogAccDepth,
localparam int unsigned GemmSrcFactorBits = IsaWide ? 21 : LogInpDepth,
localparam int unsigned AluSrcFactorBits = IsaWide ? 21 : LogAccDepth,
localparam int unsigned WgtFactorBits = IsaWide ? 21 : LogWgtDepth,
// The micro-op's source is as wide as the input buffer is deep, in ALU micro-ops too.
localparam int unsigned UopDstBits = IsaWide ? 21 : LogAccDepth,
localparam int unsigned UopSrcBits = IsaWide ? 21 : LogInpDepth,
localparam int unsigned UopWgtBits = IsaWide ? 21 : LogWgtDepth,
localparam int unsigned UopSrcLsb = UopDstBits,
localparam int unsigned UopWgtLsb = UopSrcLsb + UopSrcBits,

// The micro-ops and destinations that GEMM or ALU goes over.
localparam int unsigned DestinationsBits =
    UopBgnBits + UopEndBits + 2 * IterBits + 2 * DstFactorBits,

// ---- Widths of the machine's own ----------------------------------------------------------------
// The largest sum of micro-op field, iteration times outer factor and iteration times inner
// factor.
localparam int unsigned MaxFactorBits = IsaWide ? 21 :
    (LogAccDepth > LogInpDepth ? (LogAccDepth > LogWgtDepth ? LogAccDepth : LogWgtDepth)
                               : (LogInpDepth > LogWgtDepth ? LogInpDepth : LogWgtDepth)),
localparam int unsigned IndexBits = IterBits + MaxFactorBits + 2,
// Bytes that a stage moves in a cycle.
localparam int unsigned BeatBytesBits = LogBusBytes + 1 + LogReadPorts,

// ---- Types --------------------------------------------------------------------------------------
// The signals of an AXI4 write master that vary.
localparam type axi_write_req_t = struct packed {
  address_t            awaddr;
  logic [7:0]          awlen;
  logic                awvalid;
  logic [BusBits-1:0]  wdata;
  logic [BusBytes-1:0] wstrb;
  logic                wlast;
  logic                wvalid;
  logic                bready;
},

localparam type index_t = logic [IndexBits-1:0],
localparam type rows_t = logic [AccBanks-1:0][LogAccRows-1:0],  // a row of each bank

// RAMs of the input buffer, which are written alone: one for each lane that a LOAD can keep.
localparam int unsigned InpRams = Bands ? Batch : 1,

// Lanes that a LOAD of INP moves: lane k of an element comes from lane k + 0, 1, 2 or -1 of memory
// (shift 0 to 3), and is zero where there is none. A lane that is kept is not written.
localparam type lanes_t = struct packed {
  logic [1:0]         shift;
  logic [InpRams-1:0] kept;
},

localparam type nest_t = struct packed {
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
},

// Two micro-ops with all that can be said of them beforehand (vta_pairs). Indices are within their
// buffers unless there is a fault.
localparam int unsigned SrcBits = LogAccDepth > LogInpDepth ? LogAccDepth : LogInpDepth,
localparam type dst_t = logic [LogAccDepth-1:0],
localparam type src_t = logic [SrcBits-1:0],
localparam type wgt_t = logic [LogWgtDepth-1:0],
localparam type pair_t = struct packed {
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
}
