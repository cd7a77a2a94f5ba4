// SPDX-License-Identifier: Apache-2.0
//
// Products of floats in fixed point with lines of int8: the floats are rounded to steps of a power of two, sums are exact.
#ifndef HILT_FIXED_POINT_H
#define HILT_FIXED_POINT_H

#include "engine.h"
#include "vector.h"

#include <math.h>
#include <string.h>

#define LINES 4             // of int8, for which a piece of the state is read once
#define NEAR 16             // of int8, which stay in the cache for all states
#define EXACT 1008          // products of int8 and of a state's steps, whose sum keeps within 32 bits
#define STEPS_BITS 14       // of the largest value
#define MOST_DEPTH (1 << 20)
#define MOST_OFFSET 255
#define LEAST_FACTOR 0x1p-100
#define MOST_EXPONENT 100    // a power of two of float32
#define WHOLE 6755399441055744.0  // added and taken away, it rounds half to even

// The few products that vectors leave, on processors that have ours.
#if defined(__clang__) && defined(__ARM_NEON)
#define FEW _Pragma("clang loop vectorize(disable) unroll(disable)")
#define BY_FOUR _Pragma("clang loop unroll_count(4)")
#else
#define FEW
#define BY_FOUR _Pragma("GCC unroll 4")
#endif

static inline ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

// Returns k of the steps 2^-k of data: its largest finite value is less than 2^14 of them.
static inline int exponent_of(const float *data, ptrdiff_t count) {
  uint32_t most = 0;  // bits of floats without their sign are in the order of the floats
  for (ptrdiff_t i = 0; i < count; ++i) {
    uint32_t bits;
    memcpy(&bits, data + i, 4);
    bits &= 0x7fffffffu;
    bits = bits < 0x7f800000u ? bits : 0;
    most = bits > most ? bits : most;
  }
  float largest;
  memcpy(&largest, &most, 4);
  int exponent;
  frexp((double)largest, &exponent);
  return STEPS_BITS - exponent;
}

// Rounds values to steps of 2^-exponent, 2^14 of them at most; NaN is 0.
static inline void to_steps(const float *values, int16_t *to, ptrdiff_t count, int exponent) {
  const double factor = ldexp(1.0, exponent), end = 1 << STEPS_BITS;
  ptrdiff_t i = 0;
#ifdef __ARM_NEON
  // A product by a power of two is exact, or too small for a step; 1.5 * 2^23 rounds it into the lowest bits, 0 of NaN.
  if (in_range(exponent, -MOST_EXPONENT, MOST_EXPONENT))
    for (; i + 4 <= count; i += 4) {
      const float32x4_t value = vmulq_n_f32(vld1q_f32(values + i), (float)factor);
      const float32x4_t clipped = vmaxq_f32(vminq_f32(value, vdupq_n_f32((float)end)), vdupq_n_f32((float)-end));
      const int32x4_t bits = vreinterpretq_s32_f32(vaddq_f32(clipped, vdupq_n_f32(12582912.0f)));
      const uint32x4_t numbers = vceqq_f32(clipped, clipped);
      vst1_s16(to + i, vmovn_s32(vandq_s32(bits, vreinterpretq_s32_u32(numbers))));
    }
#endif
  for (; i < count; ++i) {
    double value = (double)values[i] * factor;
    value = value != value ? 0.0 : value < -end ? -end : value > end ? end : value;
    to[i] = (int16_t)((value + WHOLE) - WHOLE);
  }
}

// Gives the sums of a state's products with LINES lines of int8, which lie `apart`: of `count` products, EXACT at most.
static inline __attribute__((always_inline)) void sum_lines(const int16_t *state, const int8_t *lines, ptrdiff_t apart, ptrdiff_t count,
                             int32_t parts[LINES]) {
  ptrdiff_t k = 0;
#ifdef __ARM_NEON
  int32x4_t lanes[LINES] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
  const ptrdiff_t whole = count / 16 * 16;
  BY_FOUR for (; k < whole; k += 16) {
    const int16x8_t low = vld1q_s16(state + k), high = vld1q_s16(state + k + 8);
    UNROLLED for (int line = 0; line < LINES; ++line) {
      const int8x16_t bytes = vld1q_s8(lines + line * apart + k);
      const int16x8_t first = vmovl_s8(vget_low_s8(bytes)), second = vmovl_s8(vget_high_s8(bytes));
      lanes[line] = vmlal_s16(lanes[line], vget_low_s16(first), vget_low_s16(low));
      lanes[line] = vmlal_s16(lanes[line], vget_high_s16(first), vget_high_s16(low));
      lanes[line] = vmlal_s16(lanes[line], vget_low_s16(second), vget_low_s16(high));
      lanes[line] = vmlal_s16(lanes[line], vget_high_s16(second), vget_high_s16(high));
    }
  }
  int32x2_t halves[LINES];
  UNROLLED for (int line = 0; line < LINES; ++line)
    halves[line] = vadd_s32(vget_low_s32(lanes[line]), vget_high_s32(lanes[line]));
  vst1q_s32(parts, vcombine_s32(vpadd_s32(halves[0], halves[1]), vpadd_s32(halves[2], halves[3])));
#else
  UNROLLED for (int line = 0; line < LINES; ++line) parts[line] = 0;
#endif
  FEW for (; k < count; ++k)
    UNROLLED for (int line = 0; line < LINES; ++line) parts[line] += (int32_t)lines[line * apart + k] * state[k];
}

// Gives a state's products with whole LINES of rows of int8, EXACT products each at most.
static __attribute__((noinline, unused)) void times_short(const int16_t *state, const int8_t *lines, const float *factors,
                                                  ptrdiff_t size, ptrdiff_t rows, float *y) {
  for (ptrdiff_t row = 0; row < rows; row += LINES, lines += LINES * size) {
    int32_t parts[LINES];
    sum_lines(state, lines, size, size, parts);
#ifdef __ARM_NEON
    vst1q_f32(y + row, vmulq_f32(vcvtq_f32_s32(vld1q_s32(parts)), vld1q_f32(factors + row)));
#else
    UNROLLED for (int line = 0; line < LINES; ++line) y[row + line] = (float)parts[line] * factors[row + line];
#endif
  }
}

// Gives a state's products with LINES rows of int8, which lie `apart`: sums times their factors.
static __attribute__((noinline, unused)) void times_lines(const int16_t *state, const int8_t *lines, ptrdiff_t apart,
                                                  ptrdiff_t size, const float factors[LINES], float y[LINES]) {
  int32_t parts[LINES];
  double sums[LINES] = {0};
  for (ptrdiff_t first = 0; first < size; first += EXACT) {
    sum_lines(state + first, lines + first, apart, least(size - first, EXACT), parts);
    UNROLLED for (int line = 0; line < LINES; ++line) sums[line] += parts[line];
  }
  UNROLLED for (int line = 0; line < LINES; ++line) y[line] = (float)sums[line] * factors[line];
}

// Gives the sums of two states' products with LINES lines of int8, which lie `apart`: of `count`, EXACT at most.
static inline __attribute__((always_inline)) void sum_pair(const int16_t *one, const int16_t *other, const int8_t *lines,
                                                           ptrdiff_t apart, ptrdiff_t count, int32_t parts[2 * LINES]) {
  ptrdiff_t k = 0;
#ifdef __ARM_NEON
  int32x4_t upper[LINES], lower[LINES];
  const int8_t *at[LINES];
  UNROLLED for (int line = 0; line < LINES; ++line) {
    upper[line] = lower[line] = vdupq_n_s32(0);
    at[line] = lines + line * apart;
  }
  FEW for (; k + 16 <= count; k += 16) {
    int8x16_t bytes[LINES];
    UNROLLED for (int line = 0; line < LINES; ++line) {
      bytes[line] = vld1q_s8(at[line]);
      at[line] += 16;
      __asm__("" : "+r"(at[line]));  // a register for each line, which moves on
    }
    UNROLLED for (int half = 0; half < 2; ++half) {
      const int16x8_t above = vld1q_s16(one + k + 8 * half), below = vld1q_s16(other + k + 8 * half);
      UNROLLED for (int line = 0; line < LINES; ++line) {
        const int16x8_t wide = vmovl_s8(half ? vget_high_s8(bytes[line]) : vget_low_s8(bytes[line]));
        upper[line] = vmlal_s16(upper[line], vget_low_s16(wide), vget_low_s16(above));
        lower[line] = vmlal_s16(lower[line], vget_low_s16(wide), vget_low_s16(below));
        upper[line] = vmlal_s16(upper[line], vget_high_s16(wide), vget_high_s16(above));
        lower[line] = vmlal_s16(lower[line], vget_high_s16(wide), vget_high_s16(below));
      }
    }
  }
  int32x2_t halves[2 * LINES];
  UNROLLED for (int line = 0; line < LINES; ++line) {
    halves[line] = vadd_s32(vget_low_s32(upper[line]), vget_high_s32(upper[line]));
    halves[LINES + line] = vadd_s32(vget_low_s32(lower[line]), vget_high_s32(lower[line]));
  }
  vst1q_s32(parts, vcombine_s32(vpadd_s32(halves[0], halves[1]), vpadd_s32(halves[2], halves[3])));
  vst1q_s32(parts + LINES, vcombine_s32(vpadd_s32(halves[4], halves[5]), vpadd_s32(halves[6], halves[7])));
#else
  UNROLLED for (int line = 0; line < 2 * LINES; ++line) parts[line] = 0;
#endif
  FEW for (; k < count; ++k)
    UNROLLED for (int line = 0; line < LINES; ++line) {
      const int32_t value = lines[line * apart + k];
      parts[line] += value * one[k];
      parts[LINES + line] += value * other[k];
    }
}

// Writes y = (sum + added) * factor for LINES sums.
static inline void scale_sums(const int32_t *parts, int32_t added, float factor, float *y) {
#ifdef __ARM_NEON
  vst1q_f32(y, vmulq_n_f32(vcvtq_f32_s32(vaddq_s32(vld1q_s32(parts), vdupq_n_s32(added))), factor));
#else
  UNROLLED for (int line = 0; line < LINES; ++line) y[line] = (float)(parts[line] + added) * factor;
#endif
}

// Gives two states' products with LINES lines that lie `apart`, of any length, plus `added`, times a factor for each
// state.
static __attribute__((noinline, unused)) void times_long(const int16_t *states, const int8_t *lines, ptrdiff_t apart,
                                                 ptrdiff_t size, const int64_t added[2], const float factors[2],
                                                 float y[2 * LINES]) {
  double sums[2 * LINES];
  UNROLLED for (int line = 0; line < 2 * LINES; ++line) sums[line] = (double)added[line / LINES];
  for (ptrdiff_t first = 0; first < size; first += EXACT) {
    int32_t parts[2 * LINES];
    sum_pair(states + first, states + size + first, lines + first, apart, least(size - first, EXACT), parts);
    UNROLLED for (int line = 0; line < 2 * LINES; ++line) sums[line] += parts[line];
  }
  UNROLLED for (int line = 0; line < 2 * LINES; ++line) y[line] = (float)sums[line] * factors[line / LINES];
}

// Gives the products of two states, which lie one behind the other, with lines of int8, plus `added`, times a factor
// for each state. Of up to `exact` products the sums keep within 32 bits.
static inline void times_pair(const int16_t *states, const int8_t *lines, ptrdiff_t size, ptrdiff_t count, ptrdiff_t exact,
                              const int64_t added[2], const float factors[2], float *one, float *other) {
  const ptrdiff_t whole = size <= exact ? count / LINES * LINES : 0;
  for (ptrdiff_t line = 0; line < whole; line += LINES, lines += LINES * size) {
    int32_t parts[2 * LINES];
    sum_pair(states, states + size, lines, size, size, parts);
    scale_sums(parts, (int32_t)added[0], factors[0], one + line);
    scale_sums(parts + LINES, (int32_t)added[1], factors[1], other + line);
  }
  for (ptrdiff_t line = whole, here; line < count; line += here, lines += here * size) {
    here = count - line < LINES ? 1 : LINES;  // one line, LINES times
    float y[2 * LINES];
    times_long(states, lines, here == 1 ? 0 : size, size, added, factors, y);
    memcpy(one + line, y, (size_t)here * 4);
    memcpy(other + line, y + LINES, (size_t)here * 4);
  }
}

// Gives what the sums of rows are multiplied with, in float32; the smallest are 0, so that no product is subnormal.
static inline void factors_of(const float *scales, double step, ptrdiff_t count, float *to) {
  FEW for (ptrdiff_t i = 0; i < count; ++i) {
    const double factor = (double)scales[i] * step;
    to[i] = fabs(factor) < LEAST_FACTOR ? 0.0f : (float)factor;
  }
}

// Gives the products of states (count, size), in steps of `step`, with rows of int8; targets lie `apart`. Where it is 0,
// `scales` are the factors.
static inline void times_rows(const int16_t *states, ptrdiff_t count, const int8_t *matrix, const float *scales, ptrdiff_t size,
                       ptrdiff_t rows, double step, float *to, ptrdiff_t apart) {
  float made[NEAR];
  for (ptrdiff_t row = 0, here; (here = least(rows - row, NEAR)) > 0; row += here) {
    const float *factors = step == 0 ? scales + row : made;
    const ptrdiff_t whole = size <= EXACT ? here / LINES * LINES : 0;
    if (step != 0) factors_of(scales + row, step, here, made);
    for (ptrdiff_t state = 0; whole > 0 && state < count; ++state)
      times_short(states + state * size, matrix + row * size, factors, size, whole, to + state * apart + row);
    for (ptrdiff_t at = whole, lines; at < here; at += lines) {
      lines = here - at < LINES ? 1 : LINES;  // one line, LINES times
      float own[LINES], y[LINES];
      for (int line = 0; line < LINES; ++line) own[line] = factors[lines == 1 ? at : at + line];
      for (ptrdiff_t state = 0; state < count; ++state) {
        times_lines(states + state * size, matrix + (row + at) * size, lines == 1 ? 0 : size, size, own, y);
        memcpy(to + state * apart + row + at, y, (size_t)lines * 4);
      }
    }
  }
}

#endif
