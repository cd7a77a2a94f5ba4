// SPDX-License-Identifier: Apache-2.0
//
// The write port of the store stage: vta_dma_write fed from the output buffer.
//
// Times of one STORE that is launched in cycle t: burst k is asked for in t+1+k, or in the cycle after the answer to
// burst k-32, whichever is later; its first beat is on the bus two cycles after that or in the cycle after the last
// beat of burst k-1; the memory answers `latency` cycles after the last beat, and the STORE ends in the cycle after the
// last answer.
//
// A STORE by way of the table has its first beat at hand a cycle later.
#ifndef HILT_TIMING_WRITE_PORT_H
#define HILT_TIMING_WRITE_PORT_H

#include <algorithm>

#include "bursts.h"
#include "port.h"
#include "ring.h"

namespace vta {

class WritePort : public Port {
 public:
  explicit WritePort(uint32_t latency) : latency_(latency == 0 ? 1 : latency) {}

  // `at_hand`: the first cycle that has a beat. `beats`: of the block, or, where an element is `past` the buffer, those
  // before it.
  void start(Cycle launch, Cycle at_hand, const Block &block, uint64_t beats, bool past) {
    at_hand_ = at_hand;
    past_ = past;
    bursts_ = Bursts(block, kMostBurstBeats);
    asked_.clear();
    last_ask_ = launch;
    for (uint32_t n = 0; n < kMostBursts && !bursts_.empty(); ++n) ask(launch + 1);
    beats_left_ = beats;
    moved_before_ = moved_;
    done_ = kNever;
    await(at_hand);
    if (beats == 0) fault_ = at_hand;
  }

  // Beats were granted, no more than `run`.
  void granted(const Grants &grants) {
    const uint32_t count = grants.count;
    const Cycle moved = grants.last();
    beats_left_ -= count;
    moved_ += count;
    uint32_t &burst_left = asked_.front().beats;
    burst_left -= count;
    if (burst_left == 0) {
      asked_.pop();
      if (!bursts_.empty()) ask(moved + latency_ + 1);
    }
    if (beats_left_ == 0 && past_) {
      fault_ = std::max(asked_.front().at + 1, moved);
    } else if (beats_left_ == 0) {
      done_ = moved + latency_ + 1;
      stalled_ += static_cast<uint64_t>(done_ - at_hand_) - (moved_ - moved_before_);
    }
    await(moved);
  }

  bool settled() const { return done_ != kNever || fault_ != kNever; }
  // The cycle after the last answer, once it is known.
  Cycle done() const { return done_; }
  // The cycle in which the element past the buffer would have been sent, once it is known.
  Cycle fault() const { return fault_; }
  // Beats that have left the buffer by `end`, and cycles that sent none though one was at hand: all but the first of a
  // STORE and its last.
  uint64_t beats(Cycle end) const { return moved_ + (beats_left_ != 0 && wants - 1 <= end ? 1 : 0); }
  uint64_t stalled(Cycle end) const {
    end = std::min(end, fault_ - 1);
    const bool under_way = done_ == kNever && at_hand_ <= end;
    return stalled_ + (under_way ? static_cast<uint64_t>(end - at_hand_ + 1) - (beats(end) - moved_before_) : 0);
  }

 private:
  struct Asked {
    Cycle at;
    uint32_t beats;
  };

  void ask(Cycle earliest) {
    last_ask_ = std::max(last_ask_ + 1, earliest);
    asked_.push({last_ask_, bursts_.next()});
  }

  void await(Cycle last) {
    if (beats_left_ == 0) {
      wants = kNever;
      return;
    }
    const Asked &burst = asked_.front();
    wants = std::max(burst.at + 2, last + 1);
    run = static_cast<uint32_t>(std::min<uint64_t>(burst.beats, beats_left_));
  }

  Cycle latency_;
  Bursts bursts_;                   // not yet asked for
  Ring<Asked, kMostBursts> asked_;  // not yet all sent
  Cycle last_ask_ = 0, at_hand_ = 0, done_ = 0, fault_ = kNever;
  bool past_ = false;
  uint64_t beats_left_ = 0;
  uint64_t moved_ = 0, moved_before_ = 0;  // beats, and those of earlier STOREs
  uint64_t stalled_ = 0;
};

}  // namespace vta

#endif
