// SPDX-License-Identifier: Apache-2.0
//
// exp, log, tanh and what follows from them, in double, in the order of hilt_runtime.functions: the same bits
// everywhere.
#ifndef HILT_FUNCTIONS_H
#define HILT_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double horner(double x, const double *coefficients, int count) {
  double sum = coefficients[0];
  for (int i = 1; i < count; ++i) sum = sum * x + coefficients[i];
  return sum;
}

static inline double exp_of(double x) {
  static const double taylor[] = {1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0,
                                  1.0 / 6.0,     1.0 / 2.0,    1.0,         1.0};
  if (x != x) return x;
  x = x < -120.0 ? -120.0 : x > 120.0 ? 120.0 : x;
  const double turns = x * 1.4426950408889634 + 6755399441055744.0;  // rounds half to even, into the lowest bits
  const double k = turns - 6755399441055744.0;
  const double rest = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
  uint64_t bits;
  memcpy(&bits, &turns, 8);
  bits = (bits + 1023) << 52;  // 2^k
  double scale;
  memcpy(&scale, &bits, 8);
  return horner(rest, taylor, 9) * scale;
}

static inline double expm1_of(double x) {
  static const double taylor[] = {1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0,
                                  1.0 / 24.0,     1.0 / 6.0,     1.0 / 2.0,    1.0};
  return fabs(x) < 0.25 ? horner(x, taylor, 9) * x : exp_of(x) - 1.0;
}

static inline double tanh_of(double x) {
  static const double series[] = {-1382.0 / 155925.0, 62.0 / 2835.0, -17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0};
  if (fabs(x) < 0.25) return horner(x * x, series, 6) * x;
  return copysign(1.0 - 2.0 / (exp_of(2.0 * fabs(x)) + 1.0), x);
}

static inline double sigmoid_of(double x) {
  double small = exp_of(-fabs(x));
  return x >= 0 ? 1.0 / (1.0 + small) : small / (1.0 + small);
}

// atanh(s) / s by its series, of s * s.
static inline double atanh_ratio(double square) {
  static const double series[] = {1.0 / 27.0, 1.0 / 25.0, 1.0 / 23.0, 1.0 / 21.0, 1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0,
                                  1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0,  1.0 / 7.0,  1.0 / 5.0,  1.0 / 3.0,  1.0};
  return horner(square, series, 14);
}

// x is no subnormal double: those of float32 are normal.
static inline double log_of(double x) {
  static const double series[] = {1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0};
  if (x != x || x < 0) return NAN;
  if (x == 0) return -INFINITY;
  if (x == INFINITY) return x;
  uint64_t bits;
  memcpy(&bits, &x, 8);
  int exponent = (int)(bits >> 52) - 1022;
  bits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1022 << 52;
  double part;  // from 1/2 to 1
  memcpy(&part, &bits, 8);
  if (part < 0.7071067811865476) part *= 2.0, exponent -= 1;
  double s = (part - 1.0) / (part + 1.0);
  return (double)exponent * 0.6931471805599453 + 2.0 * s * horner(s * s, series, 7);
}

// log(1 + x) for x in [0, 1].
static inline double log1p_of(double x) {
  double s = x / (2.0 + x);
  return 2.0 * s * atanh_ratio(s * s);
}

static inline double softplus_of(double x) { return (x > 0 ? x : x != x ? x : 0.0) + log1p_of(exp_of(-fabs(x))); }

// The rational approximation of Numerical Recipes (erfc, Chebyshev): to 1.2e-7.
static inline double erf_of(double x) {
  static const double series[] = {0.17087277,  -0.82215223, 1.48851587, -1.13520398, 0.27886807,
                                  -0.18628806, 0.09678418,  0.37409196, 1.00002368,  -1.26551223};
  double size = fabs(x), t = 1.0 / (1.0 + 0.5 * size);
  double complement = t * exp_of(-size * size + horner(t, series, 10));
  return (x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x) * (1.0 - complement);
}

#endif
