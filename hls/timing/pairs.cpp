// SPDX-License-Identifier: Apache-2.0

#include "pairs.h"

#include <algorithm>

namespace vta {
namespace {

// A micro-op that waits is at most so far behind: it is the second of a pair, the other the first of the pair two cycles
// before.
constexpr uint64_t kNear = 5;

// The last destination of one run through the micro-ops, seen from the next: by how much the loops have moved on.
Indices inner_step(const Nest &nest) { return {nest.dst_factor_in, nest.src_factor_in, nest.wgt_factor_in}; }

Indices outer_step(const Nest &nest) {
  const int64_t back = int64_t{nest.iter_in} - 1;
  return {nest.dst_factor_out - back * nest.dst_factor_in, nest.src_factor_out - back * nest.src_factor_in,
          nest.wgt_factor_out - back * nest.wgt_factor_in};
}

}  // namespace

uint64_t pairs_of(const Nest &nest, NestKind kind, const UopBuffer &uops) {
  if (!kInterlock || nest.window) return 0;
  const uint32_t length = nest.uop_end - nest.uop_bgn;
  const uint64_t runs = uint64_t{nest.iter_out} * nest.iter_in;
  const auto pairs = [&](uint32_t first, uint32_t second, const Indices &step) {
    const uint32_t a = nest.uop_bgn + first, b = nest.uop_bgn + second;
    return may_pair(kind, {uops.dst()[a], uops.src()[a], uops.wgt()[a]},
                    {uops.dst()[b] + step.dst, uops.src()[b] + step.src, uops.wgt()[b] + step.wgt});
  };
  const auto within = [&](uint32_t begin) {
    uint64_t count = 0;
    for (uint32_t n = begin; n + 1 < length; n += 2) count += pairs(n, n + 1, {0, 0, 0});
    return count;
  };
  if (length % 2 == 0) return runs * within(0);
  // Of two runs the first ends with the first micro-op of a pair, whose second is the next run's first.
  const uint64_t across = runs / 2;
  const uint64_t across_outer = nest.iter_in % 2 == 0 ? 0 : nest.iter_out / 2;
  return (runs - across) * within(0) + across * within(1) +
         (across - across_outer) * pairs(length - 1, 0, inner_step(nest)) +
         across_outer * pairs(length - 1, 0, outer_step(nest));
}

bool is_clear(const Nest &nest, const UopBuffer &uops) {
  const uint64_t length = nest.uop_end - nest.uop_bgn;
  const uint64_t row = length * nest.iter_in, all = row * nest.iter_out;
  const uint32_t *fields = uops.dst() + nest.uop_bgn;
  const auto dst = [&](uint64_t n) {
    return fields[n % length] + n / row * nest.dst_factor_out + n % row / length * nest.dst_factor_in;
  };
  uint32_t same = 0;
  for (uint64_t distance = 1; distance <= std::min(kNear, length - 1); ++distance)
    for (uint64_t n = distance; n < length; ++n) same |= fields[n] == fields[n - distance];
  // All runs of a row end alike but for the last ones, and so do all rows.
  const auto ends_clear = [&](uint64_t end) {
    for (uint64_t n = end - std::min(kNear, end); n < end; ++n)
      for (uint64_t m = n + 1; m <= n + kNear && m < all; ++m)
        if (dst(n) == dst(m)) return false;
    return true;
  };
  return same == 0 && ends_clear(length) && ends_clear(row);
}

}  // namespace vta
