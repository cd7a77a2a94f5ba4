// SPDX-License-Identifier: Apache-2.0
//
// A queue of dependence tokens, by the cycles in which they were pushed and popped (vta_token_queue).
#ifndef HILT_TIMING_TOKENS_H
#define HILT_TIMING_TOKENS_H

#include <vector>

#include "cycle.h"
#include "parameters.h"

namespace vta {

class TokenQueue {
 public:
  // The first cycle in which the next token can be popped or pushed; kNever while what it waits for is not known.
  Cycle can_pop() const { return popped_.size() < pushed_.size() ? pushed_[popped_.size()] + 1 : kNever; }
  Cycle can_push() const {
    if (pushed_.size() < kTokenQueueDepth) return 0;
    const size_t full_until = pushed_.size() - kTokenQueueDepth;
    return full_until < popped_.size() ? popped_[full_until] + 1 : kNever;
  }

  void pop(Cycle at) { popped_.push_back(at); }
  void push(Cycle at) { pushed_.push_back(at); }
  void clear() {
    pushed_.clear();
    popped_.clear();
  }

 private:
  std::vector<Cycle> pushed_, popped_;
};

}  // namespace vta

#endif
