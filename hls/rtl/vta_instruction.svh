// SPDX-License-Identifier: Apache-2.0
//
// Positions of the fields of instructions and micro-ops, and the functions that decode them: in the
// body of each module that reads an instruction.

// ---- Positions ----------------------------------------------------------------------------------
localparam int unsigned MemoryTypeLsb = IsaWide ? 8 : 7;
localparam int unsigned MemoryTypeBits = IsaA ? 2 : 3;
localparam int unsigned SramBaseLsb = IsaWide ? 16 : MemoryTypeLsb + MemoryTypeBits;
localparam int unsigned DramBaseLsb = SramBaseLsb + 16;
// Of a LOAD of INP, with Bands: see lanes_t.
localparam int unsigned LaneShiftLsb = IsaWide ? 128 : DramBaseLsb + 32;
localparam int unsigned LanesKeptLsb = LaneShiftLsb + 2;

localparam int unsigned WindowBit = IsaWide ? 8 : 63;
localparam int unsigned UopBgnLsb = IsaWide ? 32 : 8;
localparam int unsigned UopEndLsb = UopBgnLsb + UopBgnBits;
localparam int unsigned IterOutLsb = UopEndLsb + UopEndBits;
localparam int unsigned IterInLsb = IterOutLsb + IterBits;

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

// ---- Decoding -----------------------------------------------------------------------------------
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
  return HasWindow && opcode_of(insn) == OpGemm && insn[WindowBit];
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
