// SPDX-License-Identifier: Apache-2.0
//
// Sums of lines of float32, or of the squares of their distances from a mean: they add up in double, in order.
#ifndef HILT_SUMS_H
#define HILT_SUMS_H

#include "vector.h"

#include <stddef.h>

#define ROWS 4  // sums at once

static inline double distance(float v, float mean, int squares) {
  if (!squares) return (double)v;
  const float centred = v - mean, square = centred * centred;
  return (double)square;
}

static inline double sum_row(const float *x, ptrdiff_t size, int squares, float mean) {
  double sum = 0.0;
  SCALAR for (ptrdiff_t k = 0; k < size; ++k) sum += distance(x[k], mean, squares);
  return sum;
}

// Gives the sums of ROWS lines that lie one behind another.
static inline __attribute__((always_inline)) void sum_rows(const float *x, ptrdiff_t size, int squares,
                                                           const float means[ROWS], double sums[ROWS]) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  const float m0 = means[0], m1 = means[1], m2 = means[2], m3 = means[3];
  const float *x1 = x + size, *x2 = x1 + size, *x3 = x2 + size;
#define ADD(k)                                                            \
  s0 += distance(x[k], m0, squares), s1 += distance(x1[k], m1, squares), \
      s2 += distance(x2[k], m2, squares), s3 += distance(x3[k], m3, squares)
  ptrdiff_t left = size;
  for (; left >= 4; left -= 4, x += 4, x1 += 4, x2 += 4, x3 += 4) ADD(0), ADD(1), ADD(2), ADD(3);
  SCALAR for (ptrdiff_t k = 0; k < left; ++k) ADD(k);
#undef ADD
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

#endif
