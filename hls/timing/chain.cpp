// SPDX-License-Identifier: Apache-2.0

#include "chain.h"

#include "issue.h"

namespace vta {
namespace {

bool clamps(const Instruction &instruction) {
  const Nest &nest = instruction.nest;
  return instruction.opcode == kAlu && nest.use_imm && (nest.alu_opcode == kMin || nest.alu_opcode == kMax);
}

bool same_indices(const Nest &one, const Nest &other) {
  return one.uop_bgn == other.uop_bgn && one.uop_end == other.uop_end && one.iter_out == other.iter_out &&
         one.iter_in == other.iter_in && one.dst_factor_out == other.dst_factor_out &&
         one.dst_factor_in == other.dst_factor_in;
}

}  // namespace

bool opens_chain(const Instruction &first, const UopBuffer &uops) {
  const Nest &nest = first.nest;
  if (!kInterlock || first.opcode != kAlu || !nest.use_imm || nest.alu_opcode >= kMul) return false;
  if (nest.uop_end != nest.uop_bgn + 1 || nest.uop_bgn >= kUopDepth) return false;
  if (nest.iter_out == 0 || nest.iter_in == 0) return false;
  if (nest.iter_in > 1 && nest.dst_factor_in != 1) return false;
  if (nest.iter_out > 1 && nest.dst_factor_out < nest.iter_in) return false;
  const uint64_t span = uint64_t{nest.iter_out - 1} * nest.dst_factor_out + (nest.iter_in - 1);
  return uops.dst()[nest.uop_bgn] + span < kAccDepth;
}

bool Chain::join(const Instruction &next, Cycle at) {
  const bool joins = clamps(next) && same_indices(first_.nest, next.nest) && !next.pop_prev && !next.pop_next;
  open_ = joins && !next.push_prev && !next.push_next;
  look_ = at + 1;
  return joins;
}

}  // namespace vta
