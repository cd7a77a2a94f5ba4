// SPDX-License-Identifier: Apache-2.0
//
// Lines of float32 less their mean, over their deviation. Sums add up in double, in order.
#include "engine.h"
#include "vector.h"

#include <math.h>

// --- norm: lines, size, 1 where each line has one factor and else 0, how many lines have factors, the first line's
// number; f: epsilon. Buffers: data, factors, numbers that are added, target. ---

enum { LINES, SIZE, BY_LINE, KINDS, FIRST };

static int check_norm(const work_t *w) {
  const int64_t *p = w->p;
  const int64_t elements = product_of(2, p), factors = p[BY_LINE] ? p[KINDS] : p[SIZE];
  return w->count == 4 && elements > 0 && p[KINDS] > 0 && in_range(p[FIRST], 0, INT32_MAX) &&
         holds(w, 0, elements, 4) && holds(w, 1, factors, 4) && holds(w, 2, factors, 4) && holds(w, 3, elements, 4);
}

#define ROWS 4  // sums at once

static inline double term(float v, float mean, int squares) {
  if (!squares) return (double)v;
  const float centred = v - mean, square = centred * centred;
  return (double)square;
}

// means[row] of `size` floats, or of the squares of their distances from means[row]; the lines lie one behind another.
static inline __attribute__((always_inline)) void means_of_rows(const float *x, ptrdiff_t size, int squares,
                                                                float means[ROWS]) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  const float m0 = means[0], m1 = means[1], m2 = means[2], m3 = means[3];
  const float *x1 = x + size, *x2 = x1 + size, *x3 = x2 + size;
#define ADD(k) \
  s0 += term(x[k], m0, squares), s1 += term(x1[k], m1, squares), s2 += term(x2[k], m2, squares), s3 += term(x3[k], m3, squares)
  ptrdiff_t left = size;
  for (; left >= 4; left -= 4, x += 4, x1 += 4, x2 += 4, x3 += 4) ADD(0), ADD(1), ADD(2), ADD(3);
  SCALAR for (ptrdiff_t k = 0; k < left; ++k) ADD(k);
  const double count = (double)size;
  means[0] = (float)(s0 / count), means[1] = (float)(s1 / count);
  means[2] = (float)(s2 / count), means[3] = (float)(s3 / count);
}

static float mean_of_row(const float *x, ptrdiff_t size, int squares, float mean) {
  double sum = 0.0;
  SCALAR for (ptrdiff_t k = 0; k < size; ++k) sum += term(x[k], mean, squares);
  return (float)(sum / (double)size);
}

// y[k] = (x[k] - mean) * inverse * factors[k] + added[k]; or with the first of both for all.
#if defined(__arm__) && defined(__ARM_FP)
#define EIGHT(op, right)                                                                                \
  op " s0, s0, " right(0) "\n" op " s1, s1, " right(1) "\n" op " s2, s2, " right(2) "\n"                 \
  op " s3, s3, " right(3) "\n" op " s4, s4, " right(4) "\n" op " s5, s5, " right(5) "\n"                 \
  op " s6, s6, " right(6) "\n" op " s7, s7, " right(7) "\n"
#define MEAN(i) "s16"
#define INVERSE(i) "s17"
#define FACTOR(i) "s18"
#define ADDED(i) "s19"
#define PART_0 "s8"
#define PART_1 "s9"
#define PART_2 "s10"
#define PART_3 "s11"
#define PART_4 "s12"
#define PART_5 "s13"
#define PART_6 "s14"
#define PART_7 "s15"
#define PART(i) PART_##i
#define CENTRED EIGHT("vsub.f32", MEAN) EIGHT("vmul.f32", INVERSE)
#define USED                                                                                              \
  "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", \
      "s18", "s19", "memory"

static ptrdiff_t scale_eights(const float *x, const float numbers[4], const float *factors, const float *added,
                              int by_row, ptrdiff_t size, float *y) {
  const ptrdiff_t done = size & ~(ptrdiff_t)7;
  for (const float *end = x + done; x < end;)
    if (by_row)
      __asm__ volatile("vldmia %2, {s16-s19}\nvldmia %0!, {s0-s7}\n" CENTRED EIGHT("vmul.f32", FACTOR)
                       EIGHT("vadd.f32", ADDED) "vstmia %1!, {s0-s7}"
                       : "+r"(x), "+r"(y) : "r"(numbers) : USED);
    else
      __asm__ volatile("vldmia %4, {s16-s17}\nvldmia %0!, {s0-s7}\nvldmia %2!, {s8-s15}\n" CENTRED
                       EIGHT("vmul.f32", PART) "vldmia %3!, {s8-s15}\n" EIGHT("vadd.f32", PART) "vstmia %1!, {s0-s7}"
                       : "+r"(x), "+r"(y), "+r"(factors), "+r"(added) : "r"(numbers) : USED);
  return done;
}
#else
static ptrdiff_t scale_eights(const float *x, const float numbers[4], const float *factors, const float *added,
                              int by_row, ptrdiff_t size, float *y) {
  (void)x, (void)numbers, (void)factors, (void)added, (void)by_row, (void)size, (void)y;
  return 0;
}
#endif

static void scale_row(const float *x, float mean, float variance, float epsilon, const float *factors,
                      const float *added, int by_row, ptrdiff_t size, float *y) {
  const float deviation = sqrtf(variance + epsilon), inverse = (float)(1.0 / (double)deviation);
  const float factor = factors[0], more = added[0], numbers[4] = {mean, inverse, factor, more};
  ptrdiff_t k = scale_eights(x, numbers, factors, added, by_row, size, y);
  if (by_row)
    SCALAR for (; k < size; ++k) y[k] = (x[k] - mean) * inverse * factor + more;
  else
    SCALAR for (; k < size; ++k) y[k] = (x[k] - mean) * inverse * factors[k] + added[k];
}

static int run_norm(const work_t *w) {
  const int64_t *p = w->p;
  const ptrdiff_t size = p[SIZE];
  const float epsilon = (float)w->f[0];
  for (ptrdiff_t line = 0; line < p[LINES]; line += ROWS) {
    const float *x = (const float *)w->data[0] + line * size;
    float *y = (float *)w->data[3] + line * size;
    const ptrdiff_t count = p[LINES] - line < ROWS ? p[LINES] - line : ROWS;
    float means[ROWS] = {0}, variances[ROWS];
    if (count == ROWS) {
      means_of_rows(x, size, 0, means);
      memcpy(variances, means, sizeof means);
      means_of_rows(x, size, 1, variances);
    }
    for (ptrdiff_t row = 0; row < count; ++row, x += size, y += size) {
      if (count < ROWS) {
        means[row] = mean_of_row(x, size, 0, 0);
        variances[row] = mean_of_row(x, size, 1, means[row]);
      }
      const ptrdiff_t first = p[BY_LINE] ? (p[FIRST] + line + row) % p[KINDS] : 0;
      const float *factors = (const float *)w->data[1] + first, *added = (const float *)w->data[2] + first;
      scale_row(x, means[row], variances[row], epsilon, factors, added, p[BY_LINE] != 0, size, y);
    }
  }
  return 0;
}

const kernel_t norm_kernels[] = {{check_norm, run_norm}};
const int norm_kernel_count = sizeof norm_kernels / sizeof norm_kernels[0];
