// SPDX-License-Identifier: Apache-2.0

#include "nest.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <algorithm>

namespace vta {
namespace {

uint64_t scaled(uint32_t out, uint32_t factor_out, uint32_t in, uint32_t factor_in) {
  return uint64_t{out} * factor_out + uint64_t{in} * factor_in;
}

// sum[o] += even * wgt[o][0] + odd * wgt[o][1], for every output channel o of two input channels.
void add_pair(uint32_t *sum, int16_t even, int16_t odd, const int16_t (*wgt)[2]) {
#ifdef __AVX2__
  if constexpr (kBlock % 8 == 0) {  // compilers find this instruction only where AVX-512 has it too
    const __m256i inputs = _mm256_set1_epi32(static_cast<uint16_t>(even) | odd * 0x10000);
    for (uint32_t o = 0; o < kBlock; o += 8) {
      auto *sums = reinterpret_cast<__m256i *>(sum + o);
      const __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(wgt + o));
      _mm256_storeu_si256(sums, _mm256_add_epi32(_mm256_loadu_si256(sums), _mm256_madd_epi16(inputs, weights)));
    }
    return;
  }
#endif
  for (uint32_t o = 0; o < kBlock; ++o)
    sum[o] += static_cast<uint32_t>(int32_t{even} * wgt[o][0] + int32_t{odd} * wgt[o][1]);
}

// acc += inp . wgt^T; out is the low byte of the sum. With reset acc is 0 afterwards, while out keeps the sum: the
// public HLS design does so.
void multiply(AccElement &acc, OutElement &out, const InpElement &inp, const WgtElement &wgt, bool reset) {
  for (uint32_t b = 0; b < kBatch; ++b) {
    uint32_t sum[kBlock];
    for (uint32_t o = 0; o < kBlock; ++o) sum[o] = static_cast<uint32_t>(acc.value[b][o]);
    for (uint32_t pair = 0; pair < kBlock / 2; ++pair)
      add_pair(sum, inp.value[b][2 * pair], inp.value[b][2 * pair + 1], wgt.value[pair]);
    for (uint32_t o = 0; o < kBlock; ++o) acc.value[b][o] = reset ? 0 : static_cast<int32_t>(sum[o]);
    for (uint32_t o = 0; o < kBlock; ++o) out.value[b][o] = static_cast<int8_t>(sum[o]);
  }
}

// What a lane of outputs 2 * pair and 2 * pair + 1 has in a window GEMM at iteration (out, in): behind the taps
// constants, before the first row and column zero.
int32_t windowed(const Buffers &buffers, const Nest &nest, uint64_t src, const NestPosition &at, uint32_t b,
                 uint32_t pair, uint32_t lane) {
  const uint32_t tap = lane / 2, row = tap / kWindowColumns, column = tap % kWindowColumns;
  if (tap >= kWindowTaps) return tap == kWindowTaps ? 1 : -128;
  if (row > at.out || column > at.in) return 0;
  const uint64_t before = src - scaled(row, nest.src_factor_out, column, nest.src_factor_in);
  return buffers.inp[before].value[b][2 * pair + lane % 2];
}

// The iteration (out, in) of a window GEMM. With reset the products replace acc.
void multiply_window(Buffers &buffers, const Nest &nest, uint64_t dst, uint64_t src, uint64_t wgt,
                     const NestPosition &at) {
  if (at.out < nest.skip_out || at.in < nest.skip_in) return;
  for (uint32_t b = 0; b < kBatch; ++b)
    for (uint32_t o = 0; o < kBlock; ++o) {
      uint32_t sum = nest.reset ? 0 : static_cast<uint32_t>(buffers.acc[dst].value[b][o]);
      for (uint32_t i = 0; i < kBlock; ++i)
        sum += static_cast<uint32_t>(windowed(buffers, nest, src, at, b, o / 2, i) *
                                     buffers.wgt[wgt].value[i / 2][o][i % 2]);
      buffers.acc[dst].value[b][o] = static_cast<int32_t>(sum);
      buffers.out[dst].value[b][o] = static_cast<int8_t>(sum);
    }
}

// The amount is the low five bits of `by`, signed; a negative amount shifts left.
int32_t shift(int32_t value, int32_t by) {
  const int32_t amount = static_cast<int32_t>(static_cast<uint32_t>(by) << 27) >> 27;
  return amount >= 0 ? value >> amount : static_cast<int32_t>(static_cast<uint32_t>(value) << -amount);
}

int32_t combine(uint32_t opcode, int32_t dst, int32_t src) {
  switch (opcode) {
    case kMin: return std::min(dst, src);
    case kMax: return std::max(dst, src);
    case kAdd: return static_cast<int32_t>(static_cast<uint32_t>(dst) + static_cast<uint32_t>(src));
    case kShr: return shift(dst, src);
    default: return static_cast<int32_t>(static_cast<uint32_t>(dst) * static_cast<uint32_t>(src));  // MUL
  }
}

// Walks the nest: `step(dst, src, wgt)` gets the indices of one micro-op and returns false when it faulted.
template <typename Step>
uint64_t walk(const Buffers &buffers, const Nest &nest, NestPosition &position, uint64_t limit, Fault &fault, Step step) {
  const uint64_t range = nest.uop_end > nest.uop_bgn ? nest.uop_end - nest.uop_bgn : 0;
  uint64_t done = 0;
  if (range == 0 || nest.iter_in == 0) position.out = nest.iter_out;
  for (; position.out < nest.iter_out; ++position.out, position.in = 0) {
    for (; position.in < nest.iter_in; ++position.in, position.uop = 0) {
      const uint64_t dst = scaled(position.out, nest.dst_factor_out, position.in, nest.dst_factor_in);
      const uint64_t src = scaled(position.out, nest.src_factor_out, position.in, nest.src_factor_in);
      const uint64_t wgt = scaled(position.out, nest.wgt_factor_out, position.in, nest.wgt_factor_in);
      const uint64_t stop = std::min(range, position.uop + (limit - done));
      for (; position.uop < stop; ++position.uop, ++done) {
        const uint64_t index = nest.uop_bgn + position.uop;
        if (index >= kUopDepth) {
          fault = {kUopIndex, index};
          return done;
        }
        const MicroOp uop = decode_uop(buffers.uop[index]);
        if (!step(uop.dst + dst, uop.src + src, uop.wgt + wgt)) return done;
      }
      if (position.uop < range) return done;
    }
  }
  position.finished = true;
  return done;
}

}  // namespace

uint64_t run_gemm(Buffers &buffers, const Nest &nest, NestPosition &position, uint64_t limit, Fault &fault) {
  return walk(buffers, nest, position, limit, fault, [&](uint64_t dst, uint64_t src, uint64_t wgt) {
    if (src >= kInpDepth) return fault = {kInpIndex, src}, false;
    if (wgt >= kWgtDepth) return fault = {kWgtIndex, wgt}, false;
    if (dst >= kAccDepth) return fault = {kAccIndex, dst}, false;
    if (nest.window) {
      multiply_window(buffers, nest, dst, src, wgt, position);
    } else {
      multiply(buffers.acc[dst], buffers.out[dst], buffers.inp[src], buffers.wgt[wgt], nest.reset);
    }
    return true;
  });
}

uint64_t run_alu(Buffers &buffers, const Nest &nest, NestPosition &position, uint64_t limit, Fault &fault) {
  return walk(buffers, nest, position, limit, fault, [&](uint64_t dst, uint64_t src, uint64_t) {
    if (dst >= kAccDepth) return fault = {kAccIndex, dst}, false;
    if (!nest.use_imm && src >= kAccDepth) return fault = {kAccIndex, src}, false;
    AccElement &to = buffers.acc[dst];
    for (uint32_t b = 0; b < kBatch; ++b)
      for (uint32_t o = 0; o < kBlock; ++o) {
        const int32_t operand = nest.use_imm ? nest.imm : buffers.acc[src].value[b][o];
        const int32_t result = combine(nest.alu_opcode, to.value[b][o], operand);
        to.value[b][o] = result;
        buffers.out[dst].value[b][o] = static_cast<int8_t>(result);
      }
    return true;
  });
}

}  // namespace vta
