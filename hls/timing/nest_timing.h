// SPDX-License-Identifier: Apache-2.0
//
// How long GEMM and ALU take: vta_issue and vta_execute.
//
// The first micro-op of an instruction launched in cycle t can go in t+6 (issue.h has the next ones). The instruction is
// done in the cycle after the last issue, and one that has no micro-op in t+1. A GEMM that pushes a token to the store
// stage, or clears in passing (fold.h), is done 3 cycles later (kGemmWrites), if it has a micro-op.
#ifndef HILT_TIMING_NEST_TIMING_H
#define HILT_TIMING_NEST_TIMING_H

#include <array>
#include <cstdint>
#include <vector>

#include "cycle.h"
#include "instruction.h"
#include "uop_buffer.h"

namespace vta {

constexpr Cycle kFirstIssue = 6;  // from launch
constexpr Cycle kGemmWrites = 3;

struct NestTime {
  // From launch to the last cycle, or to the cycle of the fault.
  Cycle cycles;
  // GEMM micro-ops that issued.
  uint64_t gemms;
  // 0, or the fault code of docs/architecture.md.
  uint32_t fault;
  // Whether others may join it, if it pushes no token (chain.h).
  bool opens_chain = false;
  // Whether it may be left to the next GEMM, if it pushes no token (fold.h).
  bool opens_fold = false;
  // Whether it has no micro-op.
  bool empty = false;
};

// Remembers what it was asked before: schedules repeat a few instructions many times.
class NestTiming {
 public:
  NestTiming() : known_(kKnown) {}
  // `instruction`: kInstructionBytes of a GEMM or ALU.
  NestTime of(const uint8_t *instruction, const UopBuffer &uops);

 private:
  using Words = std::array<uint64_t, kInstructionBytes / 8>;
  struct Known {
    uint64_t version = 0;  // of the micro-ops; 0 is no buffer's
    Words words{};         // of the instruction, without its token bits
    NestTime time{};
  };
  static constexpr uint32_t kKnown = 512;

  std::vector<Known> known_;
};

}  // namespace vta

#endif
