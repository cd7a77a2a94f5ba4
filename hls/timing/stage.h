// SPDX-License-Identifier: Apache-2.0
//
// A stage but for what its instructions do: its instruction queue (vta_fifo) and its sequencer (vta_sequencer).
//
// An instruction that fetch pushes in cycle t is at the head of an empty queue in t+2. It is taken when it is at the
// head, the one before has retired and its tokens are there; it is launched in the next cycle, and retires in the cycle
// after it is done, or later, when there is room for its tokens.
#ifndef HILT_TIMING_STAGE_H
#define HILT_TIMING_STAGE_H

#include <algorithm>
#include <vector>

#include "tokens.h"

namespace vta {

// The token bits of an instruction.
struct TokenBits {
  bool pop_prev, pop_next, push_prev, push_next;
};

class Stage {
 public:
  // Of a stage at an end of the chain, the missing neighbour's queues are null and its bits mean nothing.
  Stage(TokenQueue *from_prev, TokenQueue *from_next, TokenQueue *to_prev, TokenQueue *to_next)
      : from_prev_(from_prev), from_next_(from_next), to_prev_(to_prev), to_next_(to_next) {}

  void clear() {
    number_.clear();
    pushed_.clear();
    launched_.clear();
    retired_.clear();
    free_ = 0;
    done_ = -1;
    executing_ = halted_ = false;
    transfer_fault_ = 0;
  }

  // ---- The queue's other end ----
  // The first cycle in which fetch can push; kNever while that is not known.
  Cycle can_enqueue() const {
    if (number_.size() < VTA_INSN_QUEUE_DEPTH) return 0;
    const size_t full_until = number_.size() - VTA_INSN_QUEUE_DEPTH;
    return full_until < launched_.size() ? launched_[full_until] : kNever;  // popped the cycle before it is launched
  }
  void enqueue(uint32_t number, Cycle at) {
    number_.push_back(number);
    pushed_.push_back(at);
  }

  // ---- The sequencer ----
  bool executing() const { return executing_; }
  bool has_instruction() const { return launched_.size() < number_.size(); }
  uint32_t next_number() const { return number_[launched_.size()]; }
  // Of the last instruction that was taken: its number, its first busy cycle, and its last once it is finished.
  uint32_t last_number() const { return number_[launched_.size() - 1]; }
  Cycle launched() const { return launched_.back(); }
  Cycle done() const { return done_; }
  // How many have retired by the end of this cycle.
  uint64_t retired(Cycle at) const {
    return static_cast<uint64_t>(std::upper_bound(retired_.begin(), retired_.end(), at) - retired_.begin());
  }
  // The first cycle in which the next one can be taken.
  Cycle free() const { return free_; }

  // Takes the instruction at the head, whose token bits these are; false while it is not known when.
  bool take(const TokenBits &bits) {
    Cycle at = std::max(at_head(), free_);
    if (pops(bits.pop_prev, from_prev_)) at = std::max(at, from_prev_->can_pop());
    if (pops(bits.pop_next, from_next_)) at = std::max(at, from_next_->can_pop());
    if (at >= kNever) return false;
    if (pops(bits.pop_prev, from_prev_)) from_prev_->pop(at);
    if (pops(bits.pop_next, from_next_)) from_next_->pop(at);
    launched_.push_back(at + 1);
    bits_ = bits;
    executing_ = true;
    done_ = -1;
    return true;
  }

  // The next instruction joins the one in execution in cycle `at`: its tokens are pushed instead.
  Cycle at_head() const { return pushed_[launched_.size()] + 2; }
  void join(const TokenBits &bits, Cycle at) {
    launched_.push_back(at + 1);
    retired_.push_back(at);
    bits_ = bits;
  }

  // The token bits of the one in execution.
  const TokenBits &bits() const { return bits_; }

  // The instruction is done in this cycle.
  void finish(Cycle done) { done_ = done; }
  bool finished() const { return done_ >= 0; }
  // It never is: a fault.
  void halt() { halted_ = true; }
  bool halted() const { return halted_; }
  // The fault in which its transfer ends, or 0.
  uint32_t transfer_fault() const { return transfer_fault_; }
  void set_transfer_fault(uint32_t fault) { transfer_fault_ = fault; }

  // Retires the instruction that is done; false while it is not known when its tokens find room.
  bool retire() {
    Cycle at = done_ + 1;
    if (pops(bits_.push_prev, to_prev_)) at = std::max(at, to_prev_->can_push());
    if (pops(bits_.push_next, to_next_)) at = std::max(at, to_next_->can_push());
    if (at >= kNever) return false;
    if (pops(bits_.push_prev, to_prev_)) to_prev_->push(at);
    if (pops(bits_.push_next, to_next_)) to_next_->push(at);
    free_ = at + 1;
    retired_.push_back(at);
    executing_ = false;
    return true;
  }

 private:
  static bool pops(bool bit, const TokenQueue *queue) { return bit && queue != nullptr; }

  TokenQueue *from_prev_, *from_next_, *to_prev_, *to_next_;
  std::vector<uint32_t> number_;  // of every instruction that was ever in the queue, with when it was pushed
  std::vector<Cycle> pushed_;
  std::vector<Cycle> launched_, retired_;
  Cycle free_ = 0;
  Cycle done_ = -1;  // of the one in execution, once it is known
  TokenBits bits_{};
  bool executing_ = false, halted_ = false;
  uint32_t transfer_fault_ = 0;
};

}  // namespace vta

#endif
