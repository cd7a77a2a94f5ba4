// SPDX-License-Identifier: Apache-2.0
//
// Softmax and its logarithm along an axis, of float32 and of int8. Sums add up in double, in order; a Softmax of float32
// adds up blocks, whose powers add up in float32.
#include "engine.h"
#include "functions.h"
#include "vector.h"

#include <string.h>

// --- softmax: 1 for its logarithm, outer, size, inner, first and end of the inner. Buffers: data, target. ---

static int check_softmax(const work_t *w) {
  int64_t elements = product_of(3, w->p + 1);
  return w->count == 2 && elements > 0 && in_range(w->p[4], 0, w->p[5]) && w->p[5] <= w->p[3] &&
         holds(w, 0, elements, 4) && holds(w, 1, elements, 4);
}

typedef float four_t __attribute__((vector_size(16)));
typedef int32_t bits_t __attribute__((vector_size(16)));

#define BLOCK 64              // powers that add up in float32
#define POWER_OF_0 256.0      // no power is subnormal: NEON of 32-bit ARM takes those for zeros
#define LEAST_SHARE 0x1p-125  // a smaller share is 0
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define FOUR_TIMES _Pragma("clang loop unroll_count(4)")
#else
#define FOUR_TIMES _Pragma("GCC unroll 4")
#endif

#ifdef __ARM_NEON
#include <arm_neon.h>
INLINE four_t load(const float *from) { return vld1q_f32(from); }
INLINE void store(float *to, four_t value) { vst1q_f32(to, value); }
INLINE four_t larger(four_t a, four_t b) { return vmaxq_f32(a, b); }
INLINE four_t plus(four_t a, four_t b) { return vaddq_f32(a, b); }  // not +, which gcc computes by VFP
INLINE four_t minus(four_t a, four_t b) { return vsubq_f32(a, b); }
INLINE four_t times(four_t a, four_t b) { return vmulq_f32(a, b); }
INLINE bits_t is_less(four_t a, four_t b) { return (bits_t)vcltq_f32(a, b); }
#else
INLINE four_t load(const float *from) {
  four_t value;
  memcpy(&value, from, 16);
  return value;
}
INLINE void store(float *to, four_t value) { memcpy(to, &value, 16); }
INLINE four_t larger(four_t a, four_t b) {
  const bits_t first = (a > b) | (a != a);
  return (four_t)(((bits_t)a & first) | ((bits_t)b & ~first));
}
INLINE four_t plus(four_t a, four_t b) { return a + b; }
INLINE four_t minus(four_t a, four_t b) { return a - b; }
INLINE four_t times(four_t a, four_t b) { return a * b; }
INLINE bits_t is_less(four_t a, four_t b) { return a < b; }
#endif

INLINE four_t all(float value) { return (four_t){value, value, value, value}; }

// The same of `count` floats, four at most, that lie `stride` apart; missing ones are `rest`.
INLINE four_t load_some(const float *from, ptrdiff_t stride, ptrdiff_t count, float rest) {
  if (stride == 1 && count >= 4) return load(from);
  return (four_t){count > 0 ? from[0] : rest, count > 1 ? from[stride] : rest, count > 2 ? from[2 * stride] : rest,
                  count > 3 ? from[3 * stride] : rest};
}
INLINE void store_some(float *to, ptrdiff_t stride, ptrdiff_t count, four_t value) {
  if (stride == 1 && count >= 4) {
    store(to, value);
    return;
  }
  if (count > 0) to[0] = value[0];
  if (count > 1) to[stride] = value[1];
  if (count > 2) to[2 * stride] = value[2];
  if (count > 3) to[3 * stride] = value[3];
}

// The constants of a power: factors, the least x, the number that rounds, and the terms.
typedef struct {
  four_t factors, least, round, by_5, by_4, by_3, by_2, one;
} series_t;

INLINE series_t series(void) {
  series_t by = {{1.44269504f, 0.693359375f, -2.12194440e-4f, 0.0013814602f},
                 all(-90.0f), all(12583047.0f),  // 1.5 * 2^23 + 127 + 8
                 all(0.0083687156f), all(0.041668389f), all(0.16666521f), all(0.49999994f), all(1.0f)};
#if defined(__arm__) && defined(__ARM_NEON)
  // Unknown to the compiler, or it makes them anew for each power.
  __asm__("" : "+w"(by.factors), "+w"(by.least), "+w"(by.round), "+w"(by.by_5), "+w"(by.by_4), "+w"(by.by_3),
               "+w"(by.by_2), "+w"(by.one));
#endif
  return by;
}

// Makes POWER_OF_0 * e^x of twice four x up to 0, of those below -90 that of -90, as hilt_runtime.functions does.
#if defined(__arm__) && defined(__ARM_NEON)
// Sixteen registers, with the best and the sums. vmls rounds the product, too.
#define BOTH(op, to, a, b) op " %q[" to "0], %q[" a "0], " b "\n" op " %q[" to "1], %q[" a "1], " b "\n"
#define OWN(op, to, a, b) \
  op " %q[" to "0], %q[" a "0], %q[" b "0]\n" op " %q[" to "1], %q[" a "1], %q[" b "1]\n"
#define ADD(number) OWN("vmul.f32", "s", "s", "x") BOTH("vadd.f32", "s", "s", "%q[" number "]")
INLINE void powers_of(four_t x[2], series_t by) {
  four_t t0, t1, s0, s1;
  __asm__(BOTH("vmax.f32", "x", "x", "%q[least]") BOTH("vmul.f32", "t", "x", "%e[factors][0]")
          BOTH("vadd.f32", "t", "t", "%q[round]") BOTH("vsub.f32", "s", "t", "%q[round]")
          BOTH("vmls.f32", "x", "s", "%e[factors][1]") BOTH("vmls.f32", "x", "s", "%f[factors][0]")
          BOTH("vmul.f32", "s", "x", "%f[factors][1]") BOTH("vadd.f32", "s", "s", "%q[by_5]")
          ADD("by_4") ADD("by_3") ADD("by_2") ADD("one") ADD("one")
          BOTH("vshl.i32", "t", "t", "#23") OWN("vmul.f32", "x", "s", "t")
          : [x0] "+&w"(x[0]), [x1] "+&w"(x[1]), [t0] "=&w"(t0), [t1] "=&w"(t1), [s0] "=&w"(s0), [s1] "=&w"(s1)
          : [factors] "t"(by.factors), [least] "w"(by.least), [round] "w"(by.round), [by_5] "w"(by.by_5),
            [by_4] "w"(by.by_4), [by_3] "w"(by.by_3), [by_2] "w"(by.by_2), [one] "w"(by.one));
}
#else
INLINE void powers_of(four_t x[2], series_t by) {
  UNROLLED for (int i = 0; i < 2; ++i) {
    const four_t clipped = larger(x[i], by.least), turns = clipped * by.factors[0] + by.round, k = turns - by.round;
    const four_t rest = (clipped - k * by.factors[1]) - k * by.factors[2];
    four_t sum = rest * by.factors[3] + by.by_5;
    sum = sum * rest + by.by_4;
    sum = sum * rest + by.by_3;
    sum = sum * rest + by.by_2;
    sum = sum * rest + by.one;
    sum = sum * rest + by.one;
    x[i] = sum * (four_t)((bits_t)turns << 23);
  }
}
#endif

// Of four lines, or four times of one: the largest, the factor from powers to shares, or the logarithm of the sum, and the
// least power whose share is not 0.
typedef struct {
  four_t best, factor, least;
} scale_t;

INLINE void set_scale(scale_t *scale, int lane, float best, double sum, int logarithm) {
  sum += (double)(best - best);  // NaN of infinity and NaN
  scale->best[lane] = best;
  scale->factor[lane] = (float)(logarithm ? log_of(sum / POWER_OF_0) : 1.0 / sum);
  scale->least[lane] = (float)(sum * LEAST_SHARE);
}

INLINE void finish(const float *x, ptrdiff_t stride, ptrdiff_t count, scale_t by, int logarithm, float *y) {
  const four_t from = load_some(logarithm ? x : y, stride, count, 0.0f);
  const four_t share = (four_t)((bits_t)times(from, by.factor) & ~is_less(from, by.least));
  store_some(y, stride, count, logarithm ? minus(minus(from, by.best), by.factor) : share);
}

static double sum_in_order(const float *powers, ptrdiff_t size, ptrdiff_t stride) {
  double sum = 0.0;
  for (ptrdiff_t k = 0; k < size; ++k) sum += (double)powers[k * stride];
  return sum;
}

INLINE float best_of_line(const float *x, ptrdiff_t size, ptrdiff_t stride) {
  four_t best = all(*x);
  const ptrdiff_t fours = size / 4;
  FOUR_TIMES for (ptrdiff_t k = 0; k < fours; ++k) best = larger(best, load_some(x + 4 * k * stride, stride, 4, 0.0f));
  if (size & 3) best = larger(best, load_some(x + 4 * fours * stride, stride, size & 3, *x));
  best = larger(best, (four_t){best[2], best[3], best[0], best[1]});
  return larger(best, (four_t){best[1], best[0], best[3], best[2]})[0];
}

// Writes powers, eight at most, and adds them to four sums.
INLINE void add_powers(const float *x, ptrdiff_t stride, ptrdiff_t count, four_t best, series_t by, float *y,
                       four_t *sums) {
  four_t powers[2] = {minus(load_some(x, stride, count, 0.0f), best),
                      minus(load_some(x + 4 * stride, stride, count - 4, 0.0f), best)};
  powers_of(powers, by);
  UNROLLED for (int i = 0; i < 2; ++i) {
    store_some(y + 4 * i * stride, stride, count - 4 * i, powers[i]);
    *sums = plus(*sums, count == 8 ? powers[i] : load_some(y + 4 * i * stride, stride, count - 4 * i, 0.0f));
  }
}

INLINE void softmax_line(const float *x, float *y, ptrdiff_t size, ptrdiff_t stride, int logarithm) {
  const four_t best = all(best_of_line(x, size, stride));
  const series_t by = series();
  double sum = 0.0;
  for (ptrdiff_t first = 0; first < size; first += BLOCK) {
    const ptrdiff_t count = size - first < BLOCK ? size - first : BLOCK, eights = count / 8;
    const float *from = x + first * stride;
    float *to = y + first * stride;
    four_t sums = {0};
    for (ptrdiff_t k = 0; k < eights; ++k, from += 8 * stride, to += 8 * stride)
      add_powers(from, stride, 8, best, by, to, &sums);
    if (count & 7) add_powers(from, stride, count & 7, best, by, to, &sums);
    sum += (double)((sums[0] + sums[2]) + (sums[1] + sums[3]));
  }
  scale_t scale;
  set_scale(&scale, 0, best[0], logarithm ? sum_in_order(y, size, stride) : sum, logarithm);
  scale = (scale_t){best, all(scale.factor[0]), all(scale.least[0])};
  const ptrdiff_t fours = size / 4;
  FOUR_TIMES for (ptrdiff_t k = 0; k < fours; ++k)
    finish(x + 4 * k * stride, stride, 4, scale, logarithm, y + 4 * k * stride);
  if (size & 3) finish(x + 4 * fours * stride, stride, size & 3, scale, logarithm, y + 4 * fours * stride);
}

// Writes the powers of a block of four lines beside each other, and returns their sums.
INLINE four_t powers_of_columns(const float *x, ptrdiff_t count, ptrdiff_t inner, four_t best, series_t by, float *y) {
  for (ptrdiff_t k = 0; k < count; k += 2) {
    const ptrdiff_t next = k + 1 < count ? k + 1 : k;
    four_t powers[2] = {minus(load(x + k * inner), best), minus(load(x + next * inner), best)};
    powers_of(powers, by);
    store(y + k * inner, powers[0]);
    store(y + next * inner, powers[1]);
  }
  four_t sums[4] = {all(0.0f), all(0.0f), all(0.0f), all(0.0f)};
  for (ptrdiff_t k = 0; k < count; k += 4)
    UNROLLED for (ptrdiff_t i = 0; i < 4; ++i)
      if (k + i < count) sums[i] = plus(sums[i], load(y + (k + i) * inner));
  return plus(plus(sums[0], sums[2]), plus(sums[1], sums[3]));
}

// Four lines beside each other.
INLINE void softmax_columns(const float *x, float *y, ptrdiff_t size, ptrdiff_t inner, int logarithm) {
  four_t best = load(x);
  FOUR_TIMES for (ptrdiff_t k = 0; k < size; ++k) best = larger(best, load(x + k * inner));
  const series_t by = series();
  double totals[4] = {0};
  for (ptrdiff_t first = 0; first < size; first += BLOCK) {
    const ptrdiff_t count = size - first < BLOCK ? size - first : BLOCK;
    const four_t sum = powers_of_columns(x + first * inner, count, inner, best, by, y + first * inner);
    UNROLLED for (int lane = 0; lane < 4; ++lane) totals[lane] += (double)sum[lane];
  }
  scale_t scale;
  UNROLLED for (int lane = 0; lane < 4; ++lane)
    set_scale(&scale, lane, best[lane], logarithm ? sum_in_order(y + lane, size, inner) : totals[lane], logarithm);
  FOUR_TIMES for (ptrdiff_t k = 0; k < size; ++k) finish(x + k * inner, 1, 4, scale, logarithm, y + k * inner);
}

#define APART static __attribute__((noinline))  // or a compiler keeps the numbers of all forms at once
APART void shares_of_line(const float *x, float *y, ptrdiff_t size) { softmax_line(x, y, size, 1, 0); }
APART void shares_of_columns(const float *x, float *y, ptrdiff_t size, ptrdiff_t inner) {
  softmax_columns(x, y, size, inner, 0);
}
APART void logarithms_of_columns(const float *x, float *y, ptrdiff_t size, ptrdiff_t inner) {
  softmax_columns(x, y, size, inner, 1);
}
APART void results_of_line(const float *x, float *y, ptrdiff_t size, ptrdiff_t inner, int logarithm) {
  softmax_line(x, y, size, inner, logarithm);
}

static int run_softmax(const work_t *w) {
  const ptrdiff_t outer = w->p[1], size = w->p[2], inner = w->p[3];
  const int logarithm = w->p[0] != 0;
  for (ptrdiff_t o = 0; o < outer; ++o) {
    const float *x = (const float *)w->data[0] + o * size * inner;
    float *y = (float *)w->data[1] + o * size * inner;
    ptrdiff_t i = w->p[4];
    for (; inner > 1 && i + 4 <= w->p[5]; i += 4)
      logarithm ? logarithms_of_columns(x + i, y + i, size, inner) : shares_of_columns(x + i, y + i, size, inner);
    for (; i < w->p[5]; ++i)
      inner == 1 && !logarithm ? shares_of_line(x, y, size) : results_of_line(x + i, y + i, size, inner, logarithm);
  }
  return 0;
}

// --- softmax of int8: 1 for its logarithm, outer, size, inner, first and end of the inner, bytes from an outer to the next
// of the data; f: scale. Buffers: data, powers (256), target. ---

static int check_softmax_int8(const work_t *w) {
  int64_t elements = product_of(3, w->p + 1), line = product_of(2, w->p + 2), lines[2] = {w->p[1], w->p[6]};
  return w->count == 3 && elements > 0 && w->p[2] <= INT32_MAX && in_range(w->p[4], 0, w->p[5]) &&
         w->p[5] <= w->p[3] && w->p[6] >= line && holds(w, 0, product_of(2, lines), 1) && holds(w, 1, 256, 4) &&
         holds(w, 2, elements, 4);
}

#define WORDS 4  // of four bytes, at once

// Counts the bytes of a line, four of one load where they lie one behind another.
static void count_bytes(const uint8_t *bits, ptrdiff_t size, ptrdiff_t inner, int32_t counts[256]) {
  ptrdiff_t k = 0;
  if (inner == 1)
    for (; k + 4 * WORDS <= size; k += 4 * WORDS)
      UNROLLED for (int word = 0; word < WORDS; ++word) {
        uint32_t four;
        memcpy(&four, bits + k + 4 * word, 4);
        ++counts[four & 255];
        ++counts[four >> 8 & 255];
        ++counts[four >> 16 & 255];
        ++counts[four >> 24];
      }
  for (; k < size; ++k) ++counts[bits[k * inner]];
}

// y[k] = results[bits[k]], in words.
static void look_up(const uint32_t results[256], const uint8_t *bits, uint32_t *restrict y, ptrdiff_t size,
                    ptrdiff_t inner) {
  ptrdiff_t k = 0;
  if (inner == 1)
    for (; k + 4 * WORDS <= size; k += 4 * WORDS)
      UNROLLED for (int word = 0; word < WORDS; ++word) {
        uint32_t four;
        memcpy(&four, bits + k + 4 * word, 4);
        const uint32_t found[4] = {results[four & 255], results[four >> 8 & 255], results[four >> 16 & 255],
                                   results[four >> 24]};
        memcpy(y + k + 4 * word, found, 16);
      }
  for (; k < size; ++k) y[k * inner] = results[bits[k * inner]];
}

// A line has 256 different results at most: its values are counted first.
static void softmax_int8_line(const int8_t *x, const float *powers, float *y, ptrdiff_t size, ptrdiff_t inner,
                              int logarithm, double scale) {
  int32_t counts[256] = {0};
  const uint8_t *bits = (const uint8_t *)x;
  count_bytes(bits, size, inner, counts);
  int best = 255;
  while (counts[best ^ 128] == 0) --best;
  double sum = 0.0;
  for (int k = best; k >= 0; --k) sum += (double)counts[k ^ 128] * (double)powers[best - k];
  float results[256] = {0};
  double log_sum = logarithm ? log_of(sum) : 0.0;
  for (int k = 0; k <= best; ++k)
    if (counts[k ^ 128])
      results[k ^ 128] = (float)(logarithm ? (double)(k - best) * scale - log_sum : (double)powers[best - k] / sum);
  look_up((const uint32_t *)results, bits, (uint32_t *)y, size, inner);
}

static int run_softmax_int8(const work_t *w) {
  ptrdiff_t outer = w->p[1], size = w->p[2], inner = w->p[3];
  for (ptrdiff_t o = 0; o < outer; ++o)
    for (ptrdiff_t i = w->p[4]; i < w->p[5]; ++i) {
      softmax_int8_line((const int8_t *)w->data[0] + o * w->p[6] + i, (const float *)w->data[1],
                        (float *)w->data[2] + o * size * inner + i, size, inner, w->p[0] != 0, w->f[0]);
    }
  return 0;
}

const kernel_t softmax_kernels[] = {{check_softmax, run_softmax}, {check_softmax_int8, run_softmax_int8}};
const int softmax_kernel_count = sizeof softmax_kernels / sizeof softmax_kernels[0];
