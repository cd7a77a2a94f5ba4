// SPDX-License-Identifier: Apache-2.0
//
// Softmax and its logarithm along an axis, of float32 and of int8. Sums add up in double, in order.
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

static void softmax_one(const float *x, float *y, ptrdiff_t size, ptrdiff_t inner, int logarithm) {
  float best = x[0];
  SCALAR for (ptrdiff_t k = 1; k < size; ++k) {
    float v = x[k * inner];
    best = best != best || best > v ? best : v;
  }
  double sum = 0.0;
  for (ptrdiff_t k = 0; k < size; ++k) {
    float centred = x[k * inner] - best, power = (float)exp_of(centred);
    y[k * inner] = logarithm ? centred : power;
    sum += (double)power;
  }
  double log_sum = logarithm ? log_of(sum) : 0.0;
  for (ptrdiff_t k = 0; k < size; ++k)
    y[k * inner] = (float)(logarithm ? (double)y[k * inner] - log_sum : (double)y[k * inner] / sum);
}

static int run_softmax(const work_t *w) {
  ptrdiff_t outer = w->p[1], size = w->p[2], inner = w->p[3];
  for (ptrdiff_t o = 0; o < outer; ++o)
    for (ptrdiff_t i = w->p[4]; i < w->p[5]; ++i)
      softmax_one((const float *)w->data[0] + o * size * inner + i, (float *)w->data[1] + o * size * inner + i, size, inner, w->p[0] != 0);
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
