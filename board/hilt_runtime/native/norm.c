// SPDX-License-Identifier: Apache-2.0
//
// Lines of float32 less their mean, over their deviation. Sums add up in double, in order.
#include "engine.h"
#include "sums.h"
#include "vfp.h"

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

// Gives means of lines, or of the squares of their distances from means.
static inline __attribute__((always_inline)) void means_of_rows(const float *x, ptrdiff_t size, ptrdiff_t count,
                                                                int squares, float means[ROWS]) {
  double sums[ROWS];
  if (count == ROWS)
    sum_rows(x, size, squares, means, sums);
  else
    for (ptrdiff_t row = 0; row < count; ++row) sums[row] = sum_row(x + row * size, size, squares, means[row]);
  for (ptrdiff_t row = 0; row < count; ++row) means[row] = (float)(sums[row] / (double)size);
}

// y[k] = (x[k] - mean) * inverse * factors[k] + added[k]; or with the first of both for all.
#if defined(__arm__) && defined(__ARM_FP)
#define MEAN(i) "s16"
#define INVERSE(i) "s17"
#define FACTOR(i) "s18"
#define ADDED(i) "s19"
#define CENTRED EIGHT("vsub.f32", LOW, MEAN) EIGHT("vmul.f32", LOW, INVERSE)
#define USED                                                                                              \
  "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", \
      "s18", "s19", "memory"

static ptrdiff_t scale_eights(const float *x, const float numbers[4], const float *factors, const float *added,
                              int by_row, ptrdiff_t size, float *y) {
  const ptrdiff_t done = size & ~(ptrdiff_t)7;
  for (const float *end = x + done; x < end;)
    if (by_row)
      __asm__ volatile("vldmia %2, {s16-s19}\nvldmia %0!, {s0-s7}\n" CENTRED EIGHT("vmul.f32", LOW, FACTOR)
                       EIGHT("vadd.f32", LOW, ADDED) "vstmia %1!, {s0-s7}"
                       : "+r"(x), "+r"(y) : "r"(numbers) : USED);
    else
      __asm__ volatile("vldmia %4, {s16-s17}\nvldmia %0!, {s0-s7}\nvldmia %2!, {s8-s15}\n" CENTRED
                       EIGHT("vmul.f32", LOW, HIGH) "vldmia %3!, {s8-s15}\n" EIGHT("vadd.f32", LOW, HIGH) "vstmia %1!, {s0-s7}"
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
    means_of_rows(x, size, count, 0, means);
    memcpy(variances, means, sizeof means);
    means_of_rows(x, size, count, 1, variances);
    for (ptrdiff_t row = 0; row < count; ++row, x += size, y += size) {
      const ptrdiff_t first = p[BY_LINE] ? (p[FIRST] + line + row) % p[KINDS] : 0;
      const float *factors = (const float *)w->data[1] + first, *added = (const float *)w->data[2] + first;
      scale_row(x, means[row], variances[row], epsilon, factors, added, p[BY_LINE] != 0, size, y);
    }
  }
  return 0;
}

const kernel_t norm_kernels[] = {{check_norm, run_norm}};
const int norm_kernel_count = sizeof norm_kernels / sizeof norm_kernels[0];
