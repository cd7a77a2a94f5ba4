// SPDX-License-Identifier: Apache-2.0
//
// The fetch stage's read port and what follows it up to the instruction queues: vta_fetch.
//
// Up to 64 beats are asked for and not yet assembled to instructions. A beat granted in cycle t can be assembled in
// t+2, one a cycle; a whole instruction is routed from the cycle after its last beat on, when its queue has room.
#ifndef HILT_TIMING_FETCH_PORT_H
#define HILT_TIMING_FETCH_PORT_H

#include <algorithm>
#include <array>

#include "bursts.h"
#include "port.h"
#include "ring.h"

namespace vta {

class FetchPort : public Port {
 public:
  FetchPort(const ReadLatency &latency, uint64_t address, uint32_t instructions)
      : latency_(latency),
        total_(uint64_t{instructions} * kInstructionBeats),
        bursts_({address / kInstructionBytes * kInstructionBytes, total_, instructions != 0, 0}, kBurstBeats) {
    ask();
    await(0);
  }

  // Beats were granted, no more than `run`.
  void granted(const Grants &grants) {
    for (uint32_t n = 0; n < grants.count; ++n) granted_[received_++ % kPrefetchBeats] = grants.at(n);
    uint32_t &burst_left = asked_.front().beats;
    burst_left -= grants.count;
    if (burst_left == 0) asked_.pop();
    await(grants.last());
    if (offered_ == kNever) assemble();
  }

  // Whether the next instruction is assembled, and from which cycle on it can be routed.
  bool offers() const { return offered_ != kNever; }
  bool settled() const { return offers(); }
  Cycle offered() const { return offered_; }
  void route(Cycle at) {
    blocked_ += static_cast<uint64_t>(at - offered_);
    last_route_ = at;
    offered_ = kNever;
    assemble();
  }

  // The instructions that the beats of the next `run` are of: [first, end).
  uint32_t first_awaited() const { return static_cast<uint32_t>(received_ / kInstructionBeats); }
  uint32_t end_awaited() const {
    return static_cast<uint32_t>((received_ + run + kInstructionBeats - 1) / kInstructionBeats);
  }

  uint64_t beats() const { return received_; }
  // Cycles in which an instruction found no room in its queue.
  uint64_t blocked() const { return blocked_; }
  Cycle last_route() const { return last_route_; }

 private:
  static constexpr uint32_t kInstructionBeats = kInstructionBytes / kBusBytes;
  static constexpr uint32_t kPrefetchBeats = 64, kBurstBeats = 16;
  struct Asked {
    Cycle ready;
    uint32_t beats;
  };

  // Takes the beats of the next instruction, if they have come. The first waits until the last instruction is routed.
  void assemble() {
    if (received_ < assembled_ + kInstructionBeats) return;
    last_taken_ = std::max(last_taken_, last_route_ - 1);
    for (uint32_t beat = 0; beat < kInstructionBeats; ++beat, ++assembled_) {
      last_taken_ = std::max(granted_[assembled_ % kPrefetchBeats] + 2, last_taken_ + 1);
      taken_[assembled_ % kPrefetchBeats] = last_taken_;
    }
    offered_ = last_taken_ + 1;
    ask();
    if (wants == kNever) await(last_grant_);
  }

  // All bursts for which there is room once the beats assembled so far are out of the way.
  void ask() {
    while (!bursts_.empty() && asked_beats_ + kBurstBeats <= assembled_ + kPrefetchBeats) {
      const uint64_t last = asked_beats_ + kBurstBeats;  // one past the room that a whole burst takes
      Cycle at = last_ask_ + 1;
      if (last > kPrefetchBeats) at = std::max(at, taken_[(last - 1) % kPrefetchBeats] + 2);
      last_ask_ = at;
      last_ready_ = std::max(last_ready_, at + 1 + latency_.draw());
      const uint32_t beats = bursts_.next();
      asked_.push({last_ready_, beats});
      asked_beats_ += beats;
    }
  }

  void await(Cycle last) {
    last_grant_ = last;
    if (asked_.empty()) {
      wants = kNever;
      return;
    }
    wants = std::max(asked_.front().ready, last + 1);
    run = asked_.front().beats;
  }

  ReadLatency latency_;
  uint64_t total_;
  Bursts bursts_;
  Ring<Asked, kPrefetchBeats> asked_;
  Cycle last_ask_ = 0, last_ready_ = 0, last_grant_ = 0;
  uint64_t asked_beats_ = 0, received_ = 0, assembled_ = 0;
  std::array<Cycle, kPrefetchBeats> granted_{}, taken_{};
  Cycle last_taken_ = 0, last_route_ = 0, offered_ = kNever;
  uint64_t blocked_ = 0;
};

}  // namespace vta

#endif
