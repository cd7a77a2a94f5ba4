// SPDX-License-Identifier: Apache-2.0
//
// ALU instructions with immediate that go over their accumulators in one pass: vta_chain.
//
// The first is launched in cycle t. From t+4 on the head of the queue is looked at, one instruction a cycle, until one
// does not join or pushes a token. The first micro-op goes in the cycle after, or in t+6 if that is later (nest_timing.h),
// and the pass takes as long as the first instruction alone.
#ifndef HILT_TIMING_CHAIN_H
#define HILT_TIMING_CHAIN_H

#include <algorithm>

#include "cycle.h"
#include "instruction.h"
#include "uop_buffer.h"

namespace vta {

// Whether MIN and MAX may join this instruction, if it pushes no token: none of its indices comes twice or is past the
// accumulator, for reasons that vta_chain knows.
bool opens_chain(const Instruction &first, const UopBuffer &uops);

constexpr Cycle kFirstLook = 4;  // from launch

class Chain {
 public:
  bool is_open() const { return open_; }
  // The first cycle in which the next instruction can be looked at.
  Cycle look() const { return look_; }
  // The end of the pass, if micro-ops may go from cycle `at` on.
  Cycle done(Cycle at) const { return std::max(at, first_issue_) + pass_; }

  // `pass`: cycles from the first micro-op, which goes in `first_issue` at the earliest, to the end.
  void open(const Instruction &first, Cycle look, Cycle first_issue, Cycle pass) {
    open_ = true;
    first_ = first;
    look_ = look;
    first_issue_ = first_issue;
    pass_ = pass;
  }
  // Whether `next`, looked at in cycle `at`, joins.
  bool join(const Instruction &next, Cycle at);
  void close() { open_ = false; }

 private:
  bool open_ = false;
  Instruction first_{};
  Cycle look_ = 0, first_issue_ = 0, pass_ = 0;
};

}  // namespace vta

#endif
