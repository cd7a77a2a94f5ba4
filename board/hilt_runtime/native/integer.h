// SPDX-License-Identifier: Apache-2.0
//
// Shared by hilt's integer operators: VTA's rounding and clip, and the taps of windows.
#ifndef HILT_INTEGER_H
#define HILT_INTEGER_H

#include "engine.h"

// clang takes four elements of 32 bits at a time where the bytes beside them allow sixteen.
#if defined(__clang__)
#define WIDE _Pragma("clang loop vectorize_width(16)")
#else
#define WIDE
#endif

#define CHUNK 512  // elements of a row of sums on the stack

static inline ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t most(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

// Adds half a step, shifts right and clips; the sum wraps in 32 bits.
static inline int8_t narrowed(int32_t sum, int32_t half, int shift, int32_t low, int32_t high) {
  int32_t value = (int32_t)((uint32_t)sum + (uint32_t)half) >> shift;
  value = value < low ? low : value;
  return (int8_t)(value > high ? high : value);
}

static inline int32_t half_of(ptrdiff_t shift) { return shift > 0 ? (int32_t)(UINT32_C(1) << (shift - 1)) : 0; }

static inline int clips(ptrdiff_t low, ptrdiff_t high) { return in_range(low, -128, 127) && in_range(high, -128, 127); }

// Returns the outputs [begin, end) whose tap lies in the data.
static inline void inside(ptrdiff_t tap, ptrdiff_t pad, ptrdiff_t stride, ptrdiff_t size, ptrdiff_t outputs, ptrdiff_t *begin,
                   ptrdiff_t *end) {
  *begin = pad > tap ? (pad - tap + stride - 1) / stride : 0;
  ptrdiff_t last = size - 1 + pad - tap;
  *end = last < 0 ? 0 : least(last / stride + 1, outputs);
}

#endif
