// SPDX-License-Identifier: Apache-2.0
//
// The memory's bandwidth, shared by the ports in turn: vta::MemoryPorts of hls/sim, for many cycles at a time.
//
// A cycle brings `income` of credit, of which what one beat costs may be saved; every beat takes `cost`. Ports are
// asked in turn, from the one after the last that was granted a beat. Where the ports that want beats go on wanting
// them, the pattern of grants is known ahead:
//   enough credit for all of them every cycle: each is granted a beat a cycle;
//   less: they are granted beats in turn, as fast as the credit comes in.
// What is between the two is done cycle by cycle.
#ifndef HILT_TIMING_ARBITER_H
#define HILT_TIMING_ARBITER_H

#include <algorithm>
#include <array>

#include "bursts.h"
#include "cycle.h"
#include "port.h"
#include "vta_sim.h"

namespace vta {

class Arbiter {
 public:
  static constexpr uint32_t kPorts = 4;

  // The memory is idle from power-on to cycle 0, while the registers are written.
  explicit Arbiter(const vta_memory_model &model)
      : income_(model.bandwidth_numerator == 0 ? kBusBytes : model.bandwidth_numerator),
        cost_(Credit{kBusBytes} * (model.bandwidth_numerator == 0 ? 1 : model.bandwidth_denominator)),
        credit_(std::min(kCyclesBefore * income_, income_ + cost_)) {}

  // The first cycle that is not yet granted.
  Cycle now() const { return now_; }

  // Grants beats, perhaps none, from cycle `now` on and before `end`, up to where another port's wish begins or an
  // instruction may have come or gone (ports.settled()). Some port wants a beat at `now`, and none did before.
  template <typename Ports>
  void grant(Ports &ports, Cycle now, Cycle end) {
    idle_until(now);
    std::array<uint32_t, kPorts> wishing;
    uint32_t wishes = 0;
    for (uint32_t n = 0; n < kPorts; ++n) {
      const uint32_t port = (turn_ + n) % kPorts;
      const Cycle wants = ports.wants(port);
      if (wants <= now) {
        wishing[wishes++] = port;
      } else {
        end = std::min(end, wants);
      }
    }
    if (wishes == 1 && income_ >= cost_) {
      alone(ports, wishing[0], end);
      return;
    }
    uint32_t run = ~0u;
    for (uint32_t n = 0; n < wishes; ++n) run = std::min(run, ports.run(wishing[n]));
    if (income_ >= cost_ * wishes) {
      const auto beats = static_cast<uint32_t>(std::min<Cycle>(run, end - now));
      spend(beats, wishes);
      turn_ = (wishing[wishes - 1] + 1) % kPorts;
      for (uint32_t n = 0; n < wishes; ++n) ports.granted(wishing[n], Grants::each_cycle(now, beats));
    } else if (!in_turn(ports, now, end, wishing, wishes, run)) {
      one_cycle(ports, now, wishing, wishes);
    }
  }

 private:
  using Credit = int64_t;
  static constexpr Cycle kCyclesBefore = 24;  // eight registers, three cycles each
  static constexpr Cycle kEndToWish = 4;
  static constexpr Cycle kMostCycles = 1 << 20;  // keeps products of credit within range

  // One port has the memory to itself: it is granted each beat as soon as it wants it.
  template <typename Ports>
  void alone(Ports &ports, uint32_t port, Cycle end) {
    turn_ = (port + 1) % kPorts;
    ports.visit(port, [&](auto &one) {
      while (one.wants < end && !ports.settled()) {
        idle_until(one.wants);
        const auto beats = static_cast<uint32_t>(std::min<Cycle>(one.run, end - now_));
        const Cycle first = now_;
        spend(beats, 1);
        ports.granted(one, Grants::each_cycle(first, beats));
      }
    });
  }

  // The ports use all the credit, each as soon as there is enough, one after another: grant g, from 0 on, comes in the
  // cycle in which credit_ and the income since `now` reach (g + 1) * cost_. False where less than a round is certain.
  template <typename Ports>
  bool in_turn(Ports &ports, Cycle now, Cycle end, const std::array<uint32_t, kPorts> &wishing, uint32_t wishes,
               uint32_t run) {
    if (credit_ >= cost_) return false;
    // Where a round takes longer than the end of an instruction needs to make another port want a beat, the last beat
    // of a run, which may be an instruction's last, is left to itself.
    if ((wishes - 1) * cost_ >= kEndToWish * income_) --run;
    const Cycle cycles = std::min(end - now, kMostCycles);
    Credit rounds = std::min<Credit>(run, (credit_ + cycles * income_) / cost_ / wishes);
    // Where a cycle has several grants, a round must not end amid one.
    while (rounds > 0 && income_ > cost_ && cycle_of(rounds * wishes) == cycle_of(rounds * wishes - 1)) --rounds;
    if (rounds <= 0) return false;
    const Credit before = cost_ - credit_ + income_ - 1;  // so that the division rounds up
    const Cycle last = cycle_of(rounds * wishes - 1);
    turn_ = (wishing[wishes - 1] + 1) % kPorts;
    for (uint32_t n = 0; n < wishes; ++n) {
      const Credit at = before + n * cost_;
      const Cycle first = now - 1 + at / income_;
      ports.granted(wishing[n], {first, static_cast<uint32_t>(rounds), cost_ * wishes, income_, at % income_});
    }
    credit_ += (last + 1) * income_ - rounds * wishes * cost_;
    now_ = now + last + 1;
    return true;
  }
  Cycle cycle_of(Credit grant) const { return ((grant + 1) * cost_ - credit_ + income_ - 1) / income_ - 1; }

  // `cycles` cycles in each of which `beats` beats are granted, for which there is credit.
  void spend(uint32_t cycles, uint32_t beats) {
    const Credit saved = income_ - cost_ * beats;
    credit_ = std::min(credit_ + cycles * saved, saved + cost_);
    now_ += cycles;
  }

  template <typename Ports>
  void one_cycle(Ports &ports, Cycle now, const std::array<uint32_t, kPorts> &wishing, uint32_t wishes) {
    if (credit_ + income_ < cost_) {
      const Cycle waits = (cost_ - credit_ - 1) / income_;  // cycles that bring too little
      credit_ += waits * income_;
      now_ = now + waits;
      return;
    }
    credit_ = std::min(credit_ + income_, income_ + cost_);
    now_ = now + 1;
    for (uint32_t n = 0; n < wishes && credit_ >= cost_; ++n) {
      credit_ -= cost_;
      turn_ = (wishing[n] + 1) % kPorts;
      ports.granted(wishing[n], Grants::each_cycle(now, 1));
    }
  }

  // Cycles before `now` in which no port wanted anything.
  void idle_until(Cycle now) {
    if (now <= now_) return;
    credit_ = std::min(credit_ + (now - now_) * income_, income_ + cost_);
    now_ = now;
  }

  Credit income_, cost_, credit_;
  Cycle now_ = 0;  // the first cycle that is not yet accounted for
  uint32_t turn_ = 0;
};

}  // namespace vta

#endif
