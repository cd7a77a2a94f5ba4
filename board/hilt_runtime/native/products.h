// SPDX-License-Identifier: Apache-2.0
//
// Products of float32 that add up in double, depth by depth.
#ifndef HILT_PRODUCTS_H
#define HILT_PRODUCTS_H

#include "vector.h"

#include <stddef.h>

#define BLOCK 16  // columns at once
#define PAIRED 8  // columns of two rows at once: 32-bit ARM has registers for no more

// sum + a * b in one instruction where there is one: the product of two floats is exact. A Cortex-A9 has VFP's vmla,
// which rounds both and which compilers leave out.
static inline double added(double sum, double a, double b) {
#if defined(__arm__) && defined(__ARM_FP)
  __asm__("vmla.f64 %P0, %P1, %P2" : "+w"(sum) : "w"(a), "w"(b));
  return sum;
#elif defined(__aarch64__)
  return __builtin_fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

// Adds the products of a row to `count` sums, depth by depth.
static inline void add_products(const float *a, ptrdiff_t a_depth, const float *b, ptrdiff_t b_depth, ptrdiff_t b_column,
                         ptrdiff_t depth, ptrdiff_t count, double *restrict sums) {
  ptrdiff_t i = 0;
  if (b_column == 1)
    for (; i + BLOCK <= count; i += BLOCK) {  // sums stay in registers
      double block[BLOCK];
      UNROLLED for (int j = 0; j < BLOCK; ++j) block[j] = sums[i + j];
      for (ptrdiff_t k = 0; k < depth; ++k) {
        const double factor = a[k * a_depth];
        const float *line = b + k * b_depth + i;
        UNROLLED for (int j = 0; j < BLOCK; ++j) block[j] = added(block[j], factor, (double)line[j]);
      }
      UNROLLED for (int j = 0; j < BLOCK; ++j) sums[i + j] = block[j];
    }
  for (; i + 4 <= count; i += 4) {
    double s0 = sums[i], s1 = sums[i + 1], s2 = sums[i + 2], s3 = sums[i + 3];
    const float *column = b + i * b_column;
    for (ptrdiff_t k = 0; k < depth; ++k) {
      const double factor = a[k * a_depth];
      const float *line = column + k * b_depth;
      s0 += factor * (double)line[0];
      s1 += factor * (double)line[b_column];
      s2 += factor * (double)line[2 * b_column];
      s3 += factor * (double)line[3 * b_column];
    }
    sums[i] = s0, sums[i + 1] = s1, sums[i + 2] = s2, sums[i + 3] = s3;
  }
  for (; i < count; ++i)
    for (ptrdiff_t k = 0; k < depth; ++k) sums[i] += (double)a[k * a_depth] * (double)b[k * b_depth + i * b_column];
}

// Writes the products of two rows with columns that lie one behind another to y[2][row]: each value of b is read once for both.
// Returns how many columns that are; those behind, fewer than PAIRED, are left.
static inline ptrdiff_t paired_products(const float *a, ptrdiff_t a_row, ptrdiff_t a_depth, const float *b,
                                        ptrdiff_t b_depth, ptrdiff_t depth, ptrdiff_t count, float *restrict y,
                                        ptrdiff_t row) {
  ptrdiff_t i = 0;
  for (; i + PAIRED <= count; i += PAIRED) {
    double upper[PAIRED] = {0}, lower[PAIRED] = {0};
    for (ptrdiff_t k = 0; k < depth; ++k) {
      const double above = a[k * a_depth], below = a[k * a_depth + a_row];
      const float *line = b + k * b_depth + i;
      UNROLLED for (int j = 0; j < PAIRED; ++j) {
        const double factor = (double)line[j];
        upper[j] = added(upper[j], above, factor);
        lower[j] = added(lower[j], below, factor);
      }
    }
    UNROLLED for (int j = 0; j < PAIRED; ++j) y[i + j] = (float)upper[j], y[row + i + j] = (float)lower[j];
  }
  return i;
}

#endif
