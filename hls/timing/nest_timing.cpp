#include "nest_timing.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace vta {
namespace {

constexpr Cycle kFirstIssue = 3, kGemmTail = 5, kAluTail = 2;
constexpr Cycle kEmpty = 1;
constexpr Cycle kReuse = 3;  // from an issue to the next one of the same destination
constexpr bool kInterlock = VTA_HAZARD_INTERLOCK != 0;

// The fault codes of docs/architecture.md.
constexpr uint32_t kFaultUop = 3, kFaultInp = 4, kFaultWgt = 5, kFaultAcc = 6, kFaultIllegal = 8;

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

// From the first issue to the last, of a nest that issues one micro-op a cycle but for its destinations.
Cycle one_tensor(const Nest &nest, const UopBuffer &uops, bool near) {
  const uint32_t length = nest.uop_end - nest.uop_bgn;
  if (!kInterlock) return static_cast<Cycle>(uint64_t{length} * nest.iter_out * nest.iter_in) - 1;
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

// Calls step(uop, out, in) for every micro-op in order while it returns true.
template <typename Step>
void walk(const Nest &nest, Step step) {
  for (uint32_t out = 0; out < nest.iter_out; ++out)
    for (uint32_t in = 0; in < nest.iter_in; ++in)
      for (uint32_t uop = nest.uop_bgn; uop < nest.uop_end; ++uop)
        if (!step(uop, out, in)) return;
}

// From the first issue to the last, of a nest of two accumulator tensors.
Cycle two_tensors(const Nest &nest, const UopBuffer &uops) {
  int64_t last = -1;
  Cycle issue = -1;  // the first can begin in cycle 0
  walk(nest, [&](uint32_t uop, uint32_t out, uint32_t in) {
    const int64_t dst = uops.dst()[uop] + int64_t{out} * nest.dst_factor_out + int64_t{in} * nest.dst_factor_in;
    const int64_t src = uops.src()[uop] + int64_t{out} * nest.src_factor_out + int64_t{in} * nest.src_factor_in;
    const bool waits = kInterlock && (dst == last || src == last);
    issue += (waits ? kReuse : 1) + 1;
    last = dst;
    return true;
  });
  return issue;
}

// The fault of a micro-op, in the order in which vta_execute looks for it; 0 if it has none.
uint32_t fault_of(const Nest &nest, bool gemm, const UopBuffer &uops, uint32_t uop, uint32_t out, uint32_t in) {
  if (uop >= kUopDepth) return kFaultUop;
  const uint64_t dst = uops.dst()[uop] + uint64_t{out} * nest.dst_factor_out + uint64_t{in} * nest.dst_factor_in;
  const uint64_t src = uops.src()[uop] + uint64_t{out} * nest.src_factor_out + uint64_t{in} * nest.src_factor_in;
  const uint64_t wgt = uops.wgt()[uop] + uint64_t{out} * nest.wgt_factor_out + uint64_t{in} * nest.wgt_factor_in;
  if (gemm && src >= kInpDepth) return kFaultInp;
  if (gemm && wgt >= kWgtDepth) return kFaultWgt;
  if (dst >= kAccDepth || (!gemm && !nest.use_imm && src >= kAccDepth)) return kFaultAcc;
  return 0;
}

bool may_fault(const Nest &nest, bool gemm, const UopRange &range) {
  const uint64_t out = nest.iter_out - 1, in = nest.iter_in - 1;
  const uint64_t dst = range.max_dst + out * nest.dst_factor_out + in * nest.dst_factor_in;
  const uint64_t src = range.max_src + out * nest.src_factor_out + in * nest.src_factor_in;
  const uint64_t wgt = range.max_wgt + out * nest.wgt_factor_out + in * nest.wgt_factor_in;
  if (dst >= kAccDepth) return true;
  return gemm ? src >= kInpDepth || wgt >= kWgtDepth : !nest.use_imm && src >= kAccDepth;
}

// Of a nest that ends in a fault: micro-op by micro-op up to it.
NestTime faulty(const Nest &nest, bool gemm, const UopBuffer &uops) {
  NestTime time{kFirstIssue - 1, 0, 0};  // cycles: to the last issue
  const bool two = !gemm && !nest.use_imm;
  int64_t last = -1, before_last = -1;
  uint32_t gap = kReuse;
  walk(nest, [&](uint32_t uop, uint32_t out, uint32_t in) {
    time.fault = fault_of(nest, gemm, uops, uop, out, in);
    if (time.fault != 0) {
      ++time.cycles;
      return false;
    }
    const int64_t dst = uops.dst()[uop] + int64_t{out} * nest.dst_factor_out + int64_t{in} * nest.dst_factor_in;
    const int64_t src = uops.src()[uop] + int64_t{out} * nest.src_factor_out + int64_t{in} * nest.src_factor_in;
    if (two) {
      time.cycles += (kInterlock && (dst == last || src == last) ? kReuse : 1) + 1;
    } else {
      gap = kInterlock ? gap_after(gap, dst == last, dst == before_last) : 1;
      time.cycles += gap;
    }
    before_last = last;
    last = dst;
    time.gemms += gemm;
    return true;
  });
  return time;
}

NestTime time_of(const Instruction &instruction, const UopBuffer &uops) {
  const Nest &nest = instruction.nest;
  const bool gemm = instruction.opcode == kGemm;
  if (!gemm && nest.alu_opcode > kMul) return {0, 0, kFaultIllegal};
  if (nest.uop_bgn >= nest.uop_end || nest.iter_out == 0 || nest.iter_in == 0) return {kEmpty, 0, 0};
  if (nest.uop_end > kUopDepth) return faulty(nest, gemm, uops);
  const UopRange range = uops.range(nest.uop_bgn, nest.uop_end);
  if (may_fault(nest, gemm, range)) return faulty(nest, gemm, uops);
  if (!gemm && !nest.use_imm) return {kFirstIssue + two_tensors(nest, uops) + kAluTail, 0, 0};
  const Cycle issues = one_tensor(nest, uops, range.near);
  if (!gemm) return {kFirstIssue + issues + kAluTail, 0, 0};
  return {kFirstIssue + issues + kGemmTail, uint64_t{nest.uop_end - nest.uop_bgn} * nest.iter_out * nest.iter_in, 0};
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
