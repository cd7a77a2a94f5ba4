// SPDX-License-Identifier: Apache-2.0
//
// Instructions and micro-ops, decoded from the words of ISA revision A, B or wide: HARDWARE.md section 2 and
// docs/architecture.md. The two 128-bit revisions differ in the width of memory_type and alu_opcode only.
#ifndef HILT_GOLDEN_INSTRUCTION_H
#define HILT_GOLDEN_INSTRUCTION_H

#include <cstdint>

#include "parameters.h"

namespace vta {

enum Opcode : uint32_t { kLoad = 0, kStore = 1, kGemm = 2, kFinish = 3, kAlu = 4 };
enum MemoryType : uint32_t { kUop = 0, kWgt = 1, kInp = 2, kAcc = 3, kOut = 4, kAcc8Bit = 5, kThrough = 6, kTable = 7 };
enum AluOpcode : uint32_t { kMin = 0, kMax = 1, kAdd = 2, kShr = 3, kMul = 4 };

// LOAD and STORE: one two-dimensional block.
struct Transfer {
  uint32_t memory_type;
  uint32_t sram_base, dram_base;  // elements
  uint32_t y_size, x_size, x_stride;
  uint32_t y_pad_0, y_pad_1, x_pad_0, x_pad_1;
  uint32_t lane_shift, lanes_kept;  // LOAD of INP, with bands
};

// Lanes between a lane of the input buffer and the one of memory that it comes from.
constexpr int lane_distance(const Transfer &transfer) {
  return transfer.lane_shift == 3 ? -1 : static_cast<int>(transfer.lane_shift);
}

// The memory type of a STORE: OUT; OUT by way of the table; or OUT to the table. All others are OUT. Revision A has the
// low two bits, and VTA's own compiler writes 0 there.
constexpr uint32_t store_type(const Transfer &transfer) {
  const uint32_t written = transfer.memory_type | (kIsa == IsaRevision::kA ? 4 : 0);
  return kHasTable && written >= kThrough ? written : kOut;
}

// Whether a STORE writes the table with anything but one row that fills it.
constexpr bool illegal_store(const Transfer &transfer) {
  return store_type(transfer) == kTable && (transfer.y_size != 1 || transfer.x_size != kTableElements);
}

// GEMM and ALU: two loops around a range of micro-ops.
struct Nest {
  uint32_t uop_bgn, uop_end, iter_out, iter_in;
  uint32_t dst_factor_out, dst_factor_in, src_factor_out, src_factor_in;
  uint32_t wgt_factor_out, wgt_factor_in;  // GEMM
  bool reset;                              // GEMM
  bool window;                             // GEMM
  uint32_t skip_out, skip_in;              // window: the rows and columns that it does not write
  uint32_t alu_opcode;                     // ALU
  bool use_imm;                            // ALU
  int32_t imm;                             // ALU
};

// Whether it is a window GEMM of anything but one micro-op and an inner loop of 2 to kWindowLine iterations.
constexpr bool illegal_window(const Nest &nest) {
  return nest.window && (nest.uop_end != uint64_t{nest.uop_bgn} + 1 || nest.iter_in < 2 || nest.iter_in > kWindowLine);
}

struct Instruction {
  uint64_t number;  // position in the stream
  uint32_t opcode;
  bool pop_prev, pop_next, push_prev, push_next;
  Transfer transfer;
  Nest nest;
};

// `bytes`: kInstructionBytes of little-endian words.
Instruction decode(const uint8_t *bytes, uint64_t number);

struct MicroOp {
  uint32_t dst, src, wgt;
};

#if VTA_ISA_REVISION == 2
using UopWord = uint64_t;
#else
using UopWord = uint32_t;
#endif

inline MicroOp decode_uop(UopWord word) {
  constexpr uint32_t dst = kIsa == IsaRevision::kWide ? 21 : kLogAccDepth;
  constexpr uint32_t src = kIsa == IsaRevision::kWide ? 21 : kLogInpDepth;  // in ALU micro-ops too
  constexpr uint32_t wgt = kIsa == IsaRevision::kWide ? 21 : kLogWgtDepth;
  static_assert(dst + src + wgt <= 8 * sizeof(UopWord), "the micro-op overflows its word: this set needs the wide ISA");
  return {static_cast<uint32_t>(word & ((UopWord{1} << dst) - 1)),
          static_cast<uint32_t>((word >> dst) & ((UopWord{1} << src) - 1)),
          static_cast<uint32_t>((word >> (dst + src)) & ((UopWord{1} << wgt) - 1))};
}

}  // namespace vta

#endif
