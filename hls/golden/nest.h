// SPDX-License-Identifier: Apache-2.0
//
// GEMM and ALU: the two loops around a range of micro-ops, run a bounded number of micro-ops at a time so that no
// instruction, however large its loops, holds a caller up.
//
// Every micro-op checks its indices before it computes, in the order uop, inp, wgt, acc (ALU: uop, dst, then src where
// it has no immediate); the micro-ops before it in the instruction have been done.
#ifndef HILT_GOLDEN_NEST_H
#define HILT_GOLDEN_NEST_H

#include <cstdint>

#include "buffers.h"
#include "fault.h"
#include "instruction.h"

namespace vta {

// How far a nest has come. `finished` from the first call that found nothing more to do.
struct NestPosition {
  uint32_t out = 0, in = 0;
  uint64_t uop = 0;  // offset from uop_bgn
  bool finished = false;
};

// Run up to `limit` micro-ops from `position` on and return how many were done; a fault ends the run.
uint64_t run_gemm(Buffers &buffers, const Nest &nest, NestPosition &position, uint64_t limit, Fault &fault);
uint64_t run_alu(Buffers &buffers, const Nest &nest, NestPosition &position, uint64_t limit, Fault &fault);

}  // namespace vta

#endif
