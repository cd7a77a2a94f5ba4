// SPDX-License-Identifier: Apache-2.0
//
// Resets that end unexecuted because the GEMM after them clears their accumulators in passing: vta_fold.
//
// A reset launched in cycle t looks at the head of the queue from t+4 on. Where that is a GEMM that does not reset, it is
// done in the cycle after. The GEMM is done three cycles later than alone, and if it did not come to all of the
// accumulators, the reset runs after it, launched two cycles later.
#ifndef HILT_TIMING_FOLD_H
#define HILT_TIMING_FOLD_H

#include <cstdint>
#include <vector>

#include "cycle.h"
#include "instruction.h"
#include "uop_buffer.h"

namespace vta {

// Whether a GEMM may be left to the next one, if it pushes no token: a reset of consecutive accumulators, each once, of
// one input and one weight, without a fault.
bool opens_fold(const Instruction &reset, const UopBuffer &uops);

constexpr Cycle kFirstFoldLook = 4;  // from launch
constexpr Cycle kReplay = 2;         // from the GEMM's end to the launch of a reset that it did not cover

class Fold {
 public:
  void clear() { looks_ = folded_ = false; }
  // Waits for the next instruction.
  bool looks() const { return looks_; }
  // The next GEMM clears.
  bool folded() const { return folded_; }
  Cycle look() const { return launch_ + kFirstFoldLook; }
  Cycle launch() const { return launch_; }
  // Of the reset, from launch to its end.
  Cycle cycles() const { return cycles_; }

  // A reset launched in cycle `launch`, which alone takes so many cycles.
  void open(const Instruction &reset, const UopBuffer &uops, Cycle launch, Cycle cycles);
  // The next instruction is this one; whether the reset is left to it.
  bool fold(const Instruction &next);
  // Whether the GEMM, which has no fault, comes to all accumulators of the reset; or its first `limit` micro-ops do.
  bool covered(const Nest &gemm, const UopBuffer &uops);
  bool covered(const Nest &gemm, uint64_t limit, const UopBuffer &uops);

 private:
  void begin_marks() { ++now_; }
  // Whether the accumulator had no mark.
  bool mark(uint32_t dst) {
    const bool had = marked_[dst] == now_;
    marked_[dst] = now_;
    return !had;
  }
  bool clears(uint32_t dst) { return dst - first_ < count_ && mark(dst); }

  bool looks_ = false, folded_ = false;
  Cycle launch_ = 0, cycles_ = 0;
  uint32_t first_ = 0, count_ = 0;
  std::vector<uint64_t> marked_ = std::vector<uint64_t>(kAccDepth);
  uint64_t now_ = 0;
  std::vector<uint32_t> destinations_;
};

}  // namespace vta

#endif
