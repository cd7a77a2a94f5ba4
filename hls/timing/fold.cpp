// SPDX-License-Identifier: Apache-2.0

#include "fold.h"

#include "issue.h"

namespace vta {

bool opens_fold(const Instruction &reset, const UopBuffer &uops) {
  const Nest &nest = reset.nest;
  if (!kInterlock || reset.opcode != kGemm || !nest.reset || nest.window) return false;
  if (nest.uop_end != nest.uop_bgn + 1 || nest.uop_bgn >= kUopDepth) return false;
  if (nest.iter_out == 0 || nest.iter_in == 0) return false;
  if (nest.iter_in > 1 && nest.dst_factor_in != 1) return false;
  if (nest.iter_out > 1 && nest.dst_factor_out != nest.iter_in) return false;
  if (nest.src_factor_out != 0 || nest.src_factor_in != 0 || nest.wgt_factor_out != 0 || nest.wgt_factor_in != 0) return false;
  if (uops.src()[nest.uop_bgn] >= kInpDepth || uops.wgt()[nest.uop_bgn] >= kWgtDepth) return false;
  return uops.dst()[nest.uop_bgn] + uint64_t{nest.iter_out} * nest.iter_in <= kAccDepth;
}

void Fold::open(const Instruction &reset, const UopBuffer &uops, Cycle launch, Cycle cycles) {
  looks_ = true;
  folded_ = false;
  launch_ = launch;
  cycles_ = cycles;
  first_ = uops.dst()[reset.nest.uop_bgn];
  count_ = reset.nest.iter_out * reset.nest.iter_in;
}

bool Fold::fold(const Instruction &next) {
  looks_ = false;
  folded_ = next.opcode == kGemm && !next.nest.reset && !next.nest.window;
  return folded_;
}

bool Fold::covered(const Nest &gemm, const UopBuffer &uops) {
  begin_marks();
  destinations_.clear();
  for (uint32_t uop = gemm.uop_bgn; uop < gemm.uop_end; ++uop)
    if (mark(uops.dst()[uop])) destinations_.push_back(uops.dst()[uop]);
  begin_marks();
  const uint32_t outs = gemm.dst_factor_out == 0 ? 1 : gemm.iter_out, ins = gemm.dst_factor_in == 0 ? 1 : gemm.iter_in;
  uint64_t left = count_;
  for (uint32_t out = 0; out < outs; ++out)
    for (uint32_t in = 0; in < ins; ++in)
      for (const uint32_t dst : destinations_) {
        left -= clears(dst + out * gemm.dst_factor_out + in * gemm.dst_factor_in);
        if (left == 0) return true;
      }
  return false;
}

bool Fold::covered(const Nest &gemm, uint64_t limit, const UopBuffer &uops) {
  begin_marks();
  uint64_t left = count_;
  for (uint32_t out = 0; out < gemm.iter_out; ++out)
    for (uint32_t in = 0; in < gemm.iter_in; ++in)
      for (uint32_t uop = gemm.uop_bgn; uop < gemm.uop_end; ++uop) {
        if (limit-- == 0) return false;
        left -= clears(uops.dst()[uop] + out * gemm.dst_factor_out + in * gemm.dst_factor_in);
        if (left == 0) return true;
      }
  return false;
}

}  // namespace vta
