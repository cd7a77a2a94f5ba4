// How long GEMM and ALU take: vta_execute.
//
// Of an instruction launched in cycle t, the first micro-op can issue in t+3 and every next one in the cycle after the one
// before. With the interlock a micro-op waits until the third cycle after the issue of one with the same destination. An
// ALU micro-op of two accumulator tensors takes two cycles, the second of which is its issue, and waits for its source
// as well. The instruction is done 5 cycles (GEMM) or 2 (ALU) after the last issue, and one that has no micro-op in t+1.
#ifndef HILT_TIMING_NEST_TIMING_H
#define HILT_TIMING_NEST_TIMING_H

#include <cstdint>
#include <vector>

#include "cycle.h"
#include "instruction.h"
#include "uop_buffer.h"

namespace vta {

struct NestTime {
  // From launch to the last cycle, or to the cycle of the fault.
  Cycle cycles;
  // Micro-ops that issued.
  uint64_t issued;
  // 0, or the fault code of docs/architecture.md.
  uint32_t fault;
};

// Remembers what it was asked before: schedules repeat a few instructions many times.
class NestTiming {
 public:
  NestTiming() : known_(kKnown) {}
  NestTime of(const Nest &nest, bool gemm, const UopBuffer &uops);

 private:
  struct Known {
    uint64_t version = 0;  // 0 is no buffer's
    bool gemm = false;
    Nest nest{};
    NestTime time{};
  };
  static constexpr uint32_t kKnown = 512;

  std::vector<Known> known_;
};

}  // namespace vta

#endif
