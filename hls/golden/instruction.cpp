// SPDX-License-Identifier: Apache-2.0

#include "instruction.h"

#include <cstring>

namespace vta {
namespace {

// Takes consecutive fields out of a word, from bit `position` up.
class Fields {
 public:
  Fields(uint64_t word, uint32_t position) : word_(word), position_(position) {}

  uint32_t take(uint32_t width) {
    const uint64_t value = (word_ >> position_) & ((uint64_t{1} << width) - 1);
    position_ += width;
    return static_cast<uint32_t>(value);
  }

 private:
  uint64_t word_;
  uint32_t position_;
};

int32_t sign_extend_16(uint32_t value) { return static_cast<int16_t>(value); }

Transfer decode_transfer(const uint64_t *words) {
  Transfer transfer{};
  if constexpr (kIsa == IsaRevision::kWide) {
    transfer.memory_type = Fields(words[0], 8).take(3);
    transfer.sram_base = Fields(words[0], 16).take(16);
    transfer.dram_base = Fields(words[0], 32).take(32);
    Fields lanes(words[2], 0);
    transfer.lane_shift = lanes.take(2);
    transfer.lanes_kept = lanes.take(4);
  } else {
    Fields low(words[0], 7);
    transfer.memory_type = low.take(kIsa == IsaRevision::kA ? 2 : 3);
    transfer.sram_base = low.take(16);
    transfer.dram_base = low.take(32);
    transfer.lane_shift = low.take(2);
    transfer.lanes_kept = low.take(4);
  }
  Fields high(words[1], 0);
  transfer.y_size = high.take(16);
  transfer.x_size = high.take(16);
  transfer.x_stride = high.take(16);
  transfer.y_pad_0 = high.take(4);
  transfer.y_pad_1 = high.take(4);
  transfer.x_pad_0 = high.take(4);
  transfer.x_pad_1 = high.take(4);
  return transfer;
}

Nest decode_nest_wide(const uint64_t *words) {
  Nest nest{};
  Fields word0(words[0], 7);
  nest.reset = word0.take(1);
  nest.alu_opcode = Fields(words[0], 11).take(3);
  nest.use_imm = Fields(words[0], 14).take(1);
  nest.imm = sign_extend_16(Fields(words[0], 16).take(16));
  nest.uop_bgn = Fields(words[0], 32).take(32);
  Fields word1(words[1], 0);
  nest.uop_end = word1.take(32);
  nest.iter_out = word1.take(16);
  nest.iter_in = word1.take(16);
  Fields word2(words[2], 0);
  nest.dst_factor_out = word2.take(21);
  nest.src_factor_out = word2.take(21);
  nest.wgt_factor_out = word2.take(21);
  Fields word3(words[3], 0);
  nest.dst_factor_in = word3.take(21);
  nest.src_factor_in = word3.take(21);
  nest.wgt_factor_in = word3.take(21);
  return nest;
}

Nest decode_nest_128(const uint64_t *words, bool gemm) {
  Nest nest{};
  Fields word0(words[0], 7);
  nest.reset = word0.take(1);
  nest.uop_bgn = word0.take(kLogUopDepth);
  nest.uop_end = word0.take(kLogUopDepth + 1);
  nest.iter_out = word0.take(14);
  nest.iter_in = word0.take(14);
  Fields word1(words[1], 0);
  nest.dst_factor_out = word1.take(kLogAccDepth);
  nest.dst_factor_in = word1.take(kLogAccDepth);
  const uint32_t src_width = gemm ? kLogInpDepth : kLogAccDepth;
  nest.src_factor_out = word1.take(src_width);
  nest.src_factor_in = word1.take(src_width);
  if (gemm) {
    nest.wgt_factor_out = word1.take(kLogWgtDepth);
    nest.wgt_factor_in = word1.take(kLogWgtDepth);
  } else {
    nest.alu_opcode = word1.take(kIsa == IsaRevision::kA ? 2 : 3);
    nest.use_imm = word1.take(1);
    nest.imm = sign_extend_16(word1.take(16));
  }
  return nest;
}

// A window GEMM's factors of the weights say what it does not write.
void open_window(Nest &nest, uint64_t word) {
  nest.window = kHasWindow && Fields(word, kIsa == IsaRevision::kWide ? 8 : 63).take(1) != 0;
  if (!nest.window) return;
  nest.skip_out = nest.wgt_factor_out;
  nest.skip_in = nest.wgt_factor_in;
  nest.wgt_factor_out = nest.wgt_factor_in = 0;
}

}  // namespace

// A parameter set that overflows the 128-bit words must not be compiled for them (Accelerator chooses wide).
static_assert(kIsa == IsaRevision::kWide || 8 + 2 * kLogUopDepth + 1 + 28 <= 64, "GEMM's first word overflows");
static_assert(kIsa == IsaRevision::kWide || 2 * (kLogAccDepth + kLogInpDepth + kLogWgtDepth) <= 64,
              "GEMM's second word overflows");
static_assert(kIsa == IsaRevision::kWide || 4 * kLogAccDepth + (kIsa == IsaRevision::kA ? 19 : 20) <= 64,
              "ALU's second word overflows");

Instruction decode(const uint8_t *bytes, uint64_t number) {
  uint64_t words[kInstructionBytes / 8];
  std::memcpy(words, bytes, sizeof words);
  Instruction instruction{};
  instruction.number = number;
  Fields head(words[0], 0);
  instruction.opcode = head.take(3);
  instruction.pop_prev = head.take(1);
  instruction.pop_next = head.take(1);
  instruction.push_prev = head.take(1);
  instruction.push_next = head.take(1);
  if (instruction.opcode == kLoad || instruction.opcode == kStore) {
    instruction.transfer = decode_transfer(words);
  } else if (instruction.opcode == kGemm || instruction.opcode == kAlu) {
    if constexpr (kIsa == IsaRevision::kWide) {
      instruction.nest = decode_nest_wide(words);
    } else {
      instruction.nest = decode_nest_128(words, instruction.opcode == kGemm);
    }
    if (instruction.opcode == kGemm) open_window(instruction.nest, words[0]);
  }
  return instruction;
}

}  // namespace vta
