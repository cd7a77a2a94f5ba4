// SPDX-License-Identifier: Apache-2.0
//
// What the memory's arbiter knows of a port (hls/sim/memory_ports.h has the arbiter that is modelled).
#ifndef HILT_TIMING_PORT_H
#define HILT_TIMING_PORT_H

#include "cycle.h"

namespace vta {

struct Port {
  // The first cycle in which the port wants its next beat; kNever while it has nothing to move.
  Cycle wants = kNever;
  // Once that beat is granted, how many it wants one after another, itself included, each the cycle after the last.
  uint32_t run = 0;
};

// The cycles in which a port was granted `count` beats: one every numerator / denominator cycles, rounded down, from
// `first` on; at least one apart.
struct Grants {
  Cycle first;
  uint32_t count;
  int64_t numerator, denominator, phase;

  static Grants each_cycle(Cycle first, uint32_t count) { return {first, count, 1, 1, 0}; }

  Cycle at(uint32_t n) const {
    return denominator == 1 ? first + n * numerator : first + (phase + n * numerator) / denominator;
  }
  Cycle last() const { return at(count - 1); }
  Grants only(uint32_t n) const { return each_cycle(at(n), 1); }
};

// Latencies of a read port's bursts, drawn as the memory draws them.
class ReadLatency {
 public:
  ReadLatency(uint32_t latency, uint32_t jitter, uint32_t seed, uint32_t port)
      : latency_(latency == 0 ? 1 : latency), jitter_(jitter), generator_(uint64_t{seed} << 8 | port) {}

  Cycle draw() { return latency_ + (jitter_ == 0 ? 0 : static_cast<Cycle>(splitmix64() % (uint64_t{jitter_} + 1))); }

 private:
  uint64_t splitmix64() {
    uint64_t z = (generator_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  Cycle latency_;
  uint32_t jitter_;
  uint64_t generator_;
};

}  // namespace vta

#endif
