// SPDX-License-Identifier: Apache-2.0
//
// The memory's bandwidth and channels, shared by the masters in turn: vta::MemoryPorts of hls/sim, for many cycles at a
// time. A port here is a master's.
//
// A cycle brings `income` of credit, of which what one beat costs may be saved; every beat takes `cost`. Ports are
// asked in turn, from the one after the last that was granted a beat. Where the ports that want beats go on wanting
// them, the pattern of grants is known ahead:
//   enough credit for a beat of each channel every cycle: its ports are granted these in turn;
//   less: they are granted beats in turn, as fast as the credit comes in.
// What is between the two is done cycle by cycle.
#ifndef HILT_TIMING_ARBITER_H
#define HILT_TIMING_ARBITER_H

#include <algorithm>
#include <array>

#include "bursts.h"
#include "cycle.h"
#include "memory_channels.h"
#include "port.h"
#include "vta_sim.h"

namespace vta {

class Arbiter {
 public:
  static constexpr uint32_t kPorts = kMasters;

  // The memory is idle from power-on to cycle 0, while the registers are written.
  explicit Arbiter(const vta_memory_model &model)
      : income_(model.bandwidth_numerator == 0 ? kReadPorts * kBusBytes : model.bandwidth_numerator),
        cost_(Credit{kBusBytes} * (model.bandwidth_numerator == 0 ? 1 : model.bandwidth_denominator)),
        credit_(std::min(kCyclesBefore * income_, income_ + cost_)) {}

  // The first cycle that is not yet granted.
  Cycle now() const { return now_; }

  // Grants beats, perhaps none, from cycle `now` on and before `end`, up to where another port's wish begins or an
  // instruction may have come or gone (ports.settled()). Some port wants a beat at `now`, and none did before.
  template <typename Ports>
  void grant(Ports &ports, Cycle now, Cycle end) {
    idle_until(now);
    Wishes wishes;
    turns_.in_order([&](uint32_t port) {
      const Cycle wants = ports.wants(port);
      if (wants <= now) {
        wishes.add(port, ports.run(port));
      } else {
        end = std::min(end, wants);
      }
    });
    if (wishes.count == 1 && income_ >= cost_) {
      alone(ports, wishes.ports[0], end);
    } else if (income_ >= cost_ * wishes.channels) {
      if (!channels_in_turn(ports, now, end, wishes)) one_cycle(ports, now, wishes);
    } else if (!in_turn(ports, now, end, wishes)) {
      one_cycle(ports, now, wishes);
    }
  }

 private:
  using Credit = int64_t;
  static constexpr Cycle kCyclesBefore = 24;  // eight registers, three cycles each
  static constexpr Cycle kEndToWish = 4;
  static constexpr Cycle kMostCycles = 1 << 20;  // keeps products of credit within range

  // The ports that want a beat, in the order in which they are asked.
  struct Wishes {
    void add(uint32_t port, uint32_t run) {
      ports[count++] = port;
      uint32_t &of_channel = channel_count[channel_of(port)];
      channels += of_channel == 0;
      most = std::max(most, ++of_channel);
      shortest_run = std::min(shortest_run, run);
    }

    std::array<uint32_t, kPorts> ports;
    std::array<uint32_t, kChannels> channel_count{};
    uint32_t count = 0, channels = 0, most = 0;  // most: ports of one channel
    uint32_t shortest_run = ~0u;
  };

  // One port has the memory to itself: it is granted each beat as soon as it wants it.
  template <typename Ports>
  void alone(Ports &ports, uint32_t port, Cycle end) {
    turns_.moved(port);
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

  // Each channel grants a beat every cycle, to its ports in turn: a round has as many cycles as the largest number of
  // ports that share a channel. False where less than a round is certain.
  template <typename Ports>
  bool channels_in_turn(Ports &ports, Cycle now, Cycle end, const Wishes &wishes) {
    // What ends in a round makes no port want a beat before the round's end.
    static_assert(most_masters_of_a_channel() <= kEndToWish);
    Cycle rounds = (end - now) / wishes.most;
    for (uint32_t n = 0; n < wishes.count; ++n) {
      const uint32_t sharing = wishes.channel_count[channel_of(wishes.ports[n])];
      if (sharing != wishes.most && sharing != 1) return false;
      rounds = std::min<Cycle>(rounds, ports.run(wishes.ports[n]) * sharing / wishes.most);
    }
    if (rounds == 0) return false;
    const auto cycles = static_cast<uint32_t>(rounds * wishes.most);
    spend(cycles, wishes.channels);
    std::array<uint32_t, kChannels> place{};
    for (uint32_t n = 0; n < wishes.count; ++n) {
      const uint32_t port = wishes.ports[n], channel = channel_of(port);
      const uint32_t sharing = wishes.channel_count[channel];
      turns_.moved(port);
      ports.granted(port, {now + place[channel]++, cycles / sharing, sharing, 1, 0});
    }
    return true;
  }

  // The ports use all the credit, each as soon as there is enough, one after another: grant g, from 0 on, comes in the
  // cycle in which credit_ and the income since `now` reach (g + 1) * cost_. False where less than a round is certain,
  // and where channels take turns of which one has several ports.
  template <typename Ports>
  bool in_turn(Ports &ports, Cycle now, Cycle end, const Wishes &wishes) {
    if (wishes.channels > 1 && wishes.most > 1) return false;
    if (credit_ >= cost_) return false;
    // Where a round takes longer than the end of an instruction needs to make another port want a beat, the last beat
    // of a run, which may be an instruction's last, is left to itself.
    uint32_t run = wishes.shortest_run;
    if ((wishes.count - 1) * cost_ >= kEndToWish * income_) --run;
    const Cycle cycles = std::min(end - now, kMostCycles);
    Credit rounds = std::min<Credit>(run, (credit_ + cycles * income_) / cost_ / wishes.count);
    // Where a cycle has several grants, a round must not end amid one.
    while (rounds > 0 && income_ > cost_ && cycle_of(rounds * wishes.count) == cycle_of(rounds * wishes.count - 1)) --rounds;
    if (rounds <= 0) return false;
    const Credit before = cost_ - credit_ + income_ - 1;  // so that the division rounds up
    const Cycle last = cycle_of(rounds * wishes.count - 1);
    for (uint32_t n = 0; n < wishes.count; ++n) {
      const Credit at = before + n * cost_;
      const Cycle first = now - 1 + at / income_;
      turns_.moved(wishes.ports[n]);
      ports.granted(wishes.ports[n],
                    {first, static_cast<uint32_t>(rounds), cost_ * wishes.count, income_, at % income_});
    }
    credit_ += (last + 1) * income_ - rounds * wishes.count * cost_;
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
  void one_cycle(Ports &ports, Cycle now, const Wishes &wishes) {
    if (credit_ + income_ < cost_) {
      const Cycle waits = (cost_ - credit_ - 1) / income_;  // cycles that bring too little
      credit_ += waits * income_;
      now_ = now + waits;
      return;
    }
    credit_ = std::min(credit_ + income_, income_ + cost_);
    now_ = now + 1;
    std::array<bool, kChannels> used{};
    for (uint32_t n = 0; n < wishes.count && credit_ >= cost_; ++n) {
      const uint32_t port = wishes.ports[n];
      if (used[channel_of(port)]) continue;
      used[channel_of(port)] = true;
      credit_ -= cost_;
      turns_.moved(port);
      ports.granted(port, Grants::each_cycle(now, 1));
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
  Turns turns_;
};

}  // namespace vta

#endif
