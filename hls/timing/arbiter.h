// The memory's bandwidth, shared by the ports in turn: vta::MemoryPorts of hls/sim, for many cycles at a time.
//
// A cycle brings `income` of credit, of which what one beat costs may be saved; every beat takes `cost`. Ports are asked
// in turn, from the one after the last that was granted a beat. Where the ports that want beats go on wanting them,
// the pattern of grants is known ahead:
//   one port, or enough credit for all of them every cycle: each is granted a beat a cycle;
//   credit for exactly one beat a cycle: they are granted one each in turn.
// All else is done cycle by cycle.
#ifndef HILT_TIMING_ARBITER_H
#define HILT_TIMING_ARBITER_H

#include <algorithm>
#include <array>

#include "bursts.h"
#include "cycle.h"
#include "vta_sim.h"

namespace vta {

class Arbiter {
 public:
  static constexpr uint32_t kPorts = 4;

  // The memory has long been idle at cycle 0.
  explicit Arbiter(const vta_memory_model &model)
      : income_(model.bandwidth_numerator == 0 ? kBusBytes : model.bandwidth_numerator),
        cost_(Credit{kBusBytes} * (model.bandwidth_numerator == 0 ? 1 : model.bandwidth_denominator)),
        credit_(income_ + cost_) {}

  // The first cycle that is not yet granted.
  Cycle now() const { return now_; }

  // Grants beats, perhaps none, from cycle `now` on and before `end`, as long as no other port's wish is touched. `ports` has
  // wants(p), run(p) and granted(p, first, count, spacing). Some port wants a beat at `now`, none before.
  template <typename Ports>
  void grant(Ports &ports, Cycle now, Cycle end) {
    idle_until(now);
    std::array<uint32_t, kPorts> wishing;
    uint32_t wishes = 0;
    uint32_t run = ~0u;
    for (uint32_t n = 0; n < kPorts; ++n) {
      const uint32_t port = (turn_ + n) % kPorts;
      if (ports.wants(port) <= now) {
        wishing[wishes++] = port;
        run = std::min(run, ports.run(port));
      } else {
        end = std::min(end, ports.wants(port));
      }
    }
    const Cycle cycles = end - now;
    if (income_ >= cost_ * wishes) {
      const auto beats = static_cast<uint32_t>(std::min<Cycle>(run, cycles));
      const Credit most = income_ + cost_ - cost_ * wishes;
      credit_ = std::min(credit_ + beats * (income_ - cost_ * wishes), most);
      turn_ = (wishing[wishes - 1] + 1) % kPorts;
      now_ = now + beats;
      for (uint32_t n = 0; n < wishes; ++n) ports.granted(wishing[n], now, beats, 1);
    } else if (income_ == cost_ && credit_ == 0 && cycles >= wishes) {
      const auto rounds = static_cast<uint32_t>(std::min<Cycle>(run, cycles / wishes));
      turn_ = (wishing[wishes - 1] + 1) % kPorts;
      now_ = now + rounds * Cycle{wishes};
      for (uint32_t n = 0; n < wishes; ++n) ports.granted(wishing[n], now + n, rounds, wishes);
    } else {
      one_cycle(ports, now, wishing, wishes);
    }
  }

 private:
  using Credit = int64_t;

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
      ports.granted(wishing[n], now, 1, 1);
    }
  }

  // Cycles before `now` in which no port wanted anything.
  void idle_until(Cycle now) {
    credit_ = std::min(credit_ + (now - now_) * income_, income_ + cost_);
    now_ = now;
  }

  Credit income_, cost_, credit_;
  Cycle now_ = 0;  // the first cycle that is not yet accounted for
  uint32_t turn_ = 0;
};

}  // namespace vta

#endif
