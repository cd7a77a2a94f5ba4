// SPDX-License-Identifier: Apache-2.0
//
// In which cycles the micro-ops of a GEMM or ALU go: vta_issue, micro-op by micro-op.
//
// Micro-ops come in pairs, the first and second of the instruction, the third and fourth, and so on. With the interlock
// a micro-op waits until the third cycle after the issue of one whose destination is its own, or its source; and the
// second of a pair goes together with the first where the two may (vta_issue.sv) and the second need not wait longer.
// Without, they go one by one. An ALU micro-op of two accumulator tensors, or a pair of them, takes two cycles, the
// second of which is its issue. A window GEMM has no pairs.
#ifndef HILT_TIMING_ISSUE_H
#define HILT_TIMING_ISSUE_H

#include <array>
#include <cstdint>

#include "cycle.h"
#include "instruction.h"
#include "uop_buffer.h"

namespace vta {

constexpr bool kInterlock = VTA_HAZARD_INTERLOCK != 0;
constexpr Cycle kReuse = 3;  // from an issue to the next one of the same destination

// Where each index of a micro-op is, or by how much it moves on.
struct Indices {
  int64_t dst, src, wgt;
};

enum class NestKind { kGemm, kAluImmediate, kAluTensors };

// Whether the micro-op at `second` may go with the one at `first`, as far as neither their buffers nor others forbid.
inline bool may_pair(NestKind kind, const Indices &first, const Indices &second) {
  if (!kInterlock || ((first.dst ^ second.dst) & 1) == 0) return false;
  if (kind == NestKind::kGemm) return first.src == second.src && first.wgt == second.wgt;
  if (kind == NestKind::kAluImmediate) return true;
  return second.src != first.dst && (((first.src ^ second.src) & 1) != 0 || first.src == second.src);
}

// Whether what a window GEMM writes goes up from one micro-op to the next: then none waits.
constexpr bool rises(const Nest &nest) {
  return nest.window && nest.dst_factor_in == 1 && uint64_t{nest.dst_factor_out} + nest.skip_in >= nest.iter_in;
}

// Takes micro-ops in order and says when each pair goes. Cycle 0 is the first in which one can.
class Issue {
 public:
  Issue(const Nest &nest, NestKind kind) : kind_(kind), pairs_(!nest.window), waits_(kInterlock && !rises(nest)) {}

  // The cycle of the last issue, -1 before the first: where nothing waits, the next one is in the cycle after.
  Cycle last() const { return next_ - 1; }
  // One micro-op, alone.
  void go(const Indices &indices) {
    const Cycle at = can_go(indices, next_);
    note(indices.dst, at + phases());
    next_ = at + phases() + 1;
  }
  // Two of a pair: together, or one after the other.
  void go(const Indices &first, const Indices &second) {
    const Cycle at = can_go(first, next_);
    if (!pairs_ || !may_pair(kind_, first, second) || can_go(second, at) > at) {
      go(first);
      go(second);
      return;
    }
    note(first.dst, at + phases());
    note(second.dst, at + phases());
    next_ = at + phases() + 1;
  }

 private:
  struct Issued {
    int64_t dst = -1;
    Cycle at = -kReuse;
  };

  // Cycles between going and the issue of the destination.
  Cycle phases() const { return kind_ == NestKind::kAluTensors ? 1 : 0; }

  Cycle can_go(const Indices &indices, Cycle at) const {
    if (!waits_) return at;
    for (const Issued &issued : issued_) {
      const bool meets = issued.dst == indices.dst || (kind_ == NestKind::kAluTensors && issued.dst == indices.src);
      if (meets && issued.at + kReuse > at) at = issued.at + kReuse;
    }
    return at;
  }

  void note(int64_t dst, Cycle at) {
    issued_[oldest_] = {dst, at};
    oldest_ = (oldest_ + 1) % issued_.size();
  }

  NestKind kind_;
  bool pairs_, waits_;
  std::array<Issued, 4> issued_{};  // two cycles of two
  uint32_t oldest_ = 0;
  Cycle next_ = 0;
};

}  // namespace vta

#endif
