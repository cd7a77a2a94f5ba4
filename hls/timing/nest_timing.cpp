// SPDX-License-Identifier: Apache-2.0

#include "nest_timing.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "chain.h"
#include "fold.h"
#include "issue.h"
#include "pairs.h"
#include "vta_registers.h"

namespace vta {
namespace {

constexpr Cycle kTail = 1;  // from the last issue
constexpr Cycle kEmpty = 1;

// The fault codes of docs/registers.md.
constexpr uint32_t kFaultUop = VTA_FAULT_UOP_INDEX,
                   kFaultInp = VTA_FAULT_INP_INDEX,
                   kFaultWgt = VTA_FAULT_WGT_INDEX,
                   kFaultAcc = VTA_FAULT_ACC_INDEX,
                   kFaultIllegal = VTA_FAULT_ILLEGAL_INSTRUCTION;

// Cycles spent and the state after them: the distance of the last two issues, 1 to 3.
struct Walk {
  Cycle cycles;
  uint32_t gap;
};

// `count` times `step`, which maps a gap to a Walk. There are three gaps, so the walk soon repeats itself.
template <typename Step>
Walk repeat(uint64_t count, uint32_t gap, Step step) {
  Cycle cycles = 0;
  std::array<Cycle, 4> cycles_at{};
  std::array<uint64_t, 4> left_at{};  // + 1
  while (count != 0) {
    if (left_at[gap] != 0) {
      const uint64_t period = left_at[gap] - 1 - count;
      cycles += static_cast<Cycle>(count / period) * (cycles - cycles_at[gap]);
      count %= period;
      left_at.fill(0);
      if (count == 0) break;
    }
    cycles_at[gap] = cycles;
    left_at[gap] = count + 1;
    const Walk walk = step(gap);
    cycles += walk.cycles;
    gap = walk.gap;
    --count;
  }
  return {cycles, gap};
}

uint32_t gap_after(uint32_t gap, bool same_as_last, bool same_as_the_one_before) {
  if (same_as_last) return kReuse;
  return same_as_the_one_before && gap == 1 ? 2 : 1;
}

// Issues of a sequence of destinations that is gone through again and again, each time `offset` further on.
template <typename Dst>
class Sequence {
 public:
  // `near`: whether the sequence has hazards within.
  Sequence(Dst dst, uint32_t length, bool near) : dst_(dst), length_(length), near_(near) {}

  // From the first issue of the first time to its last.
  Walk first() const {
    if (length_ == 1) return {0, kReuse};
    const uint32_t gap = gap_after(kReuse, dst_(1) == dst_(0), false);
    return rest({gap, gap});
  }

  // From the last issue of one time to that of the next. length_ >= 2.
  Walk again(int64_t offset, uint32_t gap) const {
    const int64_t first = dst_(0) + offset;
    const uint32_t gap_0 = gap_after(gap, first == dst_(length_ - 1), first == dst_(length_ - 2));
    const uint32_t gap_1 = gap_after(gap_0, dst_(1) == dst_(0), dst_(1) + offset == dst_(length_ - 1));
    return rest({Cycle{gap_0} + gap_1, gap_1});
  }

 private:
  // From the second issue on.
  Walk rest(Walk walk) const {
    if (length_ == 2) return walk;
    if (!near_) return {walk.cycles + length_ - 2, 1};
    for (uint32_t n = 2; n < length_; ++n) {
      walk.gap = gap_after(walk.gap, dst_(n) == dst_(n - 1), dst_(n) == dst_(n - 2));
      walk.cycles += walk.gap;
    }
    return walk;
  }

  Dst dst_;
  uint32_t length_;
  bool near_;
};

template <typename Dst>
Cycle twice_nested(Dst dst, uint32_t length, bool near, int64_t factor_out, uint32_t iter_out, int64_t factor_in,
                   uint32_t iter_in) {
  const Sequence<Dst> sequence(dst, length, near);
  const int64_t back = factor_out - (int64_t{iter_in} - 1) * factor_in;
  const auto inner = [&](uint32_t gap) { return sequence.again(factor_in, gap); };
  const Walk first = sequence.first();
  const Walk first_row = repeat(iter_in - 1, first.gap, inner);
  const Walk rows = repeat(iter_out - 1, first_row.gap, [&](uint32_t gap) {
    const Walk begin = sequence.again(back, gap);
    const Walk rest = repeat(iter_in - 1, begin.gap, inner);
    return Walk{begin.cycles + rest.cycles, rest.gap};
  });
  return first.cycles + first_row.cycles + rows.cycles;
}

uint64_t micro_ops_of(const Nest &nest) {
  return uint64_t{nest.uop_end - nest.uop_bgn} * nest.iter_out * nest.iter_in;
}

// From the first issue to the last, of a nest without pairs that issues one micro-op a cycle but for its destinations.
Cycle one_by_one(const Nest &nest, const UopBuffer &uops, bool near) {
  const uint32_t length = nest.uop_end - nest.uop_bgn;
  if (!kInterlock || rises(nest)) return static_cast<Cycle>(micro_ops_of(nest)) - 1;
  const int64_t out = nest.dst_factor_out, in = nest.dst_factor_in;
  if (length >= 2) {
    const uint32_t *fields = uops.dst() + nest.uop_bgn;
    const auto dst = [fields](uint32_t n) { return int64_t{fields[n]}; };
    return twice_nested(dst, length, near, out, nest.iter_out, in, nest.iter_in);
  }
  // A single micro-op: a loop takes the place of the micro-ops.
  if (nest.iter_in >= 2) {
    const auto dst = [in](uint32_t n) { return n * in; };
    return twice_nested(dst, nest.iter_in, in == 0, 0, 1, out, nest.iter_out);
  }
  const auto dst = [out](uint32_t n) { return n * out; };
  return twice_nested(dst, nest.iter_out, out == 0, 0, 1, 0, 1);
}

Indices indices_of(const Nest &nest, const UopBuffer &uops, uint32_t uop, uint32_t out, uint32_t in) {
  return {uops.dst()[uop] + int64_t{out} * nest.dst_factor_out + int64_t{in} * nest.dst_factor_in,
          uops.src()[uop] + int64_t{out} * nest.src_factor_out + int64_t{in} * nest.src_factor_in,
          uops.wgt()[uop] + int64_t{out} * nest.wgt_factor_out + int64_t{in} * nest.wgt_factor_in};
}

// The fault of a micro-op, in the order in which vta_issue looks for it; 0 if it has none.
uint32_t fault_of(NestKind kind, const Indices &indices) {
  if (kind == NestKind::kGemm && indices.src >= kInpDepth) return kFaultInp;
  if (kind == NestKind::kGemm && indices.wgt >= kWgtDepth) return kFaultWgt;
  if (indices.dst >= kAccDepth || (kind == NestKind::kAluTensors && indices.src >= kAccDepth)) return kFaultAcc;
  return 0;
}

// Micro-op by micro-op, to the end or to the first fault. cycles: from the cycle in which the first can go to the last
// issue, or to the fault.
NestTime walk(const Nest &nest, NestKind kind, const UopBuffer &uops) {
  Issue issue(nest, kind);
  uint64_t gone = 0;
  uint32_t fault = 0;
  bool holds = false;  // the first of a pair, in `first`
  Indices first{};
  for (uint32_t out = 0; out < nest.iter_out && fault == 0; ++out)
    for (uint32_t in = 0; in < nest.iter_in && fault == 0; ++in)
      for (uint32_t uop = nest.uop_bgn; uop < nest.uop_end && fault == 0; ++uop) {
        Indices indices{};
        fault = uop >= kUopDepth ? kFaultUop : 0;
        if (fault == 0) {
          indices = indices_of(nest, uops, uop, out, in);
          fault = fault_of(kind, indices);
        }
        if (fault != 0) break;
        if (holds) {
          issue.go(first, indices);
        } else {
          first = indices;
        }
        holds = !holds;
        ++gone;
      }
  if (holds) issue.go(first);
  return {issue.last() + (fault != 0), kind == NestKind::kGemm ? gone : 0, fault};
}

bool may_fault(const Nest &nest, NestKind kind, const UopRange &range) {
  const uint64_t out = nest.iter_out - 1, in = nest.iter_in - 1;
  const uint64_t dst = range.max_dst + out * nest.dst_factor_out + in * nest.dst_factor_in;
  const uint64_t src = range.max_src + out * nest.src_factor_out + in * nest.src_factor_in;
  const uint64_t wgt = range.max_wgt + out * nest.wgt_factor_out + in * nest.wgt_factor_in;
  if (dst >= kAccDepth) return true;
  if (kind == NestKind::kGemm) return src >= kInpDepth || wgt >= kWgtDepth;
  return kind == NestKind::kAluTensors && src >= kAccDepth;
}

// From the first issue to the last, of a nest of one accumulator tensor that has no fault.
Cycle one_tensor(const Nest &nest, NestKind kind, const UopBuffer &uops, bool near) {
  const uint64_t pairs = pairs_of(nest, kind, uops);
  if (pairs == 0) return one_by_one(nest, uops, near);
  if (is_clear(nest, uops)) return static_cast<Cycle>(micro_ops_of(nest) - pairs) - 1;
  return walk(nest, kind, uops).cycles;
}

NestTime time_of(const Instruction &instruction, const UopBuffer &uops) {
  const Nest &nest = instruction.nest;
  const bool gemm = instruction.opcode == kGemm;
  const NestKind kind = gemm ? NestKind::kGemm : nest.use_imm ? NestKind::kAluImmediate : NestKind::kAluTensors;
  if (illegal_window(nest) || (!gemm && nest.alu_opcode > kMul)) return {0, 0, kFaultIllegal};
  if (nest.uop_bgn >= nest.uop_end || nest.iter_out == 0 || nest.iter_in == 0) return {kEmpty, 0, 0, false, false, true};
  const bool past = nest.uop_end > kUopDepth;
  const UopRange range = past ? UopRange{} : uops.range(nest.uop_bgn, nest.uop_end);
  if (past || may_fault(nest, kind, range)) {
    NestTime time = walk(nest, kind, uops);
    time.cycles += kFirstIssue;
    return time;
  }
  const Cycle issues =
      kind == NestKind::kAluTensors ? walk(nest, kind, uops).cycles : one_tensor(nest, kind, uops, range.near);
  return {kFirstIssue + issues + kTail, gemm ? micro_ops_of(nest) : 0, 0,
          opens_chain(instruction, uops), opens_fold(instruction, uops)};
}

}  // namespace

NestTime NestTiming::of(const uint8_t *instruction, const UopBuffer &uops) {
  constexpr uint64_t kTokenBits = 0x78;
  Words words;
  std::memcpy(words.data(), instruction, sizeof words);
  words[0] &= ~kTokenBits;
  uint64_t hash = 0;
  for (const uint64_t word : words) hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  Known &known = known_[(hash >> 40) % kKnown];
  uint64_t differs = known.version ^ uops.version();
  for (size_t n = 0; n < words.size(); ++n) differs |= known.words[n] ^ words[n];
  if (differs != 0)
    known = {uops.version(), words, time_of(decode(instruction, 0), uops)};
  return known.time;
}

}  // namespace vta
