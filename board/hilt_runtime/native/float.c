// SPDX-License-Identifier: Apache-2.0
//
// ONNX's operators on float32. Sums and products add up in double, in order; the result is rounded once.
#include "engine.h"
#include "functions.h"
#include "lines.h"
#include "products.h"
#include "sums.h"
#include "vector.h"

#include <math.h>
#include <string.h>

#define CHUNK 256  // sums on the stack

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t most(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

static const float *floats(const work_t *w, int buffer) { return (const float *)w->data[buffer]; }
static float *target(const work_t *w) { return (float *)w->data[w->count - 1]; }

// --- unary: elements, function; f: two constants. Buffers: data, target. The order is that of UNARY in Python. ---

enum {
  U_ABS, U_NEG, U_RELU, U_CEIL, U_FLOOR, U_ROUND, U_SIGN, U_SQRT, U_RECIPROCAL, U_EXP, U_LOG, U_SIGMOID, U_TANH,
  U_HARD_SIGMOID, U_HARD_SWISH, U_LEAKY_RELU, U_ELU, U_SELU, U_SOFTPLUS, U_SOFTSIGN, U_MISH, U_ERF, U_GELU,
  U_GELU_TANH, U_AT_LEAST, U_AT_MOST, U_THRESHOLD, U_SHRINK, U_COUNT
};

static int check_unary(const work_t *w) {
  return w->count == 2 && product_of(1, w->p) >= 0 && holds(w, 0, w->p[0], 4) && holds(w, 1, w->p[0], 4) &&
         in_range(w->p[1], 0, U_COUNT - 1);
}

static inline float hard_sigmoid(float x, float alpha, float beta) {
  float y = x * alpha;
  y = y + beta;
  return y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y;
}

static inline float gelu_tanh(float x) {
  float inner = 0.044715f * x;
  inner = inner * x;
  inner = inner * x;
  inner = 0.7978845608028654f * (x + inner);
  return 0.5f * x * (1.0f + (float)tanh_of(inner));
}

// Functions of a float's bits, which NEON may compute as integers.
static inline uint32_t abs_bits(uint32_t bits) { return bits & 0x7fffffffu; }
static inline uint32_t neg_bits(uint32_t bits) { return bits ^ 0x80000000u; }
static inline uint32_t relu_bits(uint32_t bits) {  // +0 for -0 to -infinity; NaN stays
  return bits - 0x80000000u <= 0x7f800000u ? 0u : bits;
}

static int run_unary(const work_t *w) {
  const float *x = floats(w, 0);
  float *y = target(w);
  const ptrdiff_t n = w->p[0];
  const float a = (float)w->f[0], b = (float)w->f[1];
#define EACH_BITS(function)                                                                       \
  for (ptrdiff_t i = 0; i < n; ++i) ((uint32_t *)y)[i] = function(((const uint32_t *)x)[i]);      \
  break
#define EACH(expression)                  \
  SCALAR for (ptrdiff_t i = 0; i < n; ++i) {       \
    const float v = x[i];                 \
    y[i] = (float)(expression);           \
  }                                       \
  break
  switch (w->p[1]) {
    case U_ABS: EACH_BITS(abs_bits);
    case U_NEG: EACH_BITS(neg_bits);
    case U_RELU: EACH_BITS(relu_bits);
    case U_CEIL: EACH(ceilf(v));
    case U_FLOOR: EACH(floorf(v));
    case U_ROUND: EACH(rintf(v));
    case U_SIGN: EACH(v > 0.0f ? 1.0f : v < 0.0f ? -1.0f : v == 0.0f ? 0.0f : v);
    case U_SQRT: EACH(sqrtf(v));
    case U_RECIPROCAL: EACH(1.0f / v);
    case U_EXP: EACH(exp_of(v));
    case U_LOG: EACH(log_of(v));
    case U_SIGMOID: EACH(sigmoid_of(v));
    case U_TANH: EACH(tanh_of(v));
    case U_HARD_SIGMOID: EACH(hard_sigmoid(v, a, b));
    case U_HARD_SWISH: EACH(v * hard_sigmoid(v, a, b));
    case U_LEAKY_RELU: EACH(v >= 0.0f ? v : a * v);
    case U_ELU: EACH(v > 0.0f ? v : a * (float)expm1_of(v));
    case U_SELU: EACH(b * (v > 0.0f ? v : a * (float)expm1_of(v)));
    case U_SOFTPLUS: EACH(softplus_of(v));
    case U_SOFTSIGN: EACH(v / (1.0f + fabsf(v)));
    case U_MISH: EACH((double)v * tanh_of(softplus_of(v)));
    case U_ERF: EACH(erf_of(v));
    case U_GELU: EACH(0.5f * v * (1.0f + (float)erf_of(v / 1.4142135623730951f)));
    case U_GELU_TANH: EACH(gelu_tanh(v));
    case U_AT_LEAST: EACH(v < a ? a : v);
    case U_AT_MOST: EACH(v > a ? a : v);
    case U_THRESHOLD: EACH(v > a ? v : 0.0f);
    case U_SHRINK: EACH(v < -a ? v + b : v > a ? v - b : 0.0f);
  }
  return 0;
}

// --- binary: function, axes, sizes[6], strides of each input[6]. The target is dense; of comparisons it is bool. ---

enum { B_ADD, B_SUB, B_MUL, B_DIV, B_MAX, B_MIN, B_GREATER, B_GREATER_EQUAL, B_LESS, B_LESS_EQUAL, B_EQUAL, B_COUNT };

static int spans(const work_t *w, int buffer, int64_t axes, const int64_t *sizes, const int64_t *strides) {
  int64_t far = 0;
  for (int64_t i = 0; i < axes; ++i) {
    if (!in_range(strides[i], 0, (int64_t)1 << 31)) return 0;
    far += (sizes[i] - 1) * strides[i];
    if (far > (int64_t)1 << 40) return 0;
  }
  return holds(w, buffer, far + 1, 4);
}

static int check_binary(const work_t *w) {
  const int64_t *p = w->p;
  if (w->count != 3 || !in_range(p[0], 0, B_COUNT - 1) || !in_range(p[1], 1, HILT_AXES)) return 0;
  int64_t elements = product_of((int)p[1], p + 2);
  return elements > 0 && holds(w, 2, elements, p[0] < B_GREATER ? 4 : 1) && spans(w, 0, p[1], p + 2, p + 8) &&
         spans(w, 1, p[1], p + 2, p + 14);
}

static void binary_line(ptrdiff_t function, const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, void *to, ptrdiff_t n) {
#define PAIRS(type, expression)                                                      \
  do {                                                                               \
    type *y = (type *)to;                                                            \
    if (sa == 1 && sb == 1)                                                          \
      SCALAR for (ptrdiff_t i = 0; i < n; ++i) {                                              \
        const float u = a[i], v = b[i];                                              \
        y[i] = (type)(expression);                                                   \
      }                                                                              \
    else                                                                             \
      SCALAR for (ptrdiff_t i = 0; i < n; ++i) {                                       \
        const float u = a[i * sa], v = b[i * sb];                                    \
        y[i] = (type)(expression);                                                   \
      }                                                                              \
  } while (0);                                                                       \
  break
  switch (function) {
    case B_ADD: add_line(a, sa, b, sb, (float *)to, n); break;
    case B_SUB: subtract_line(a, sa, b, sb, (float *)to, n); break;
    case B_MUL: multiply_line(a, sa, b, sb, (float *)to, n); break;
    case B_DIV: divide_line(a, sa, b, sb, (float *)to, n); break;
    case B_MAX: PAIRS(float, (u > v || u != u ? u : v) + 0.0f);
    case B_MIN: PAIRS(float, (u < v || u != u ? u : v) + 0.0f);
    case B_GREATER: PAIRS(uint8_t, u > v);
    case B_GREATER_EQUAL: PAIRS(uint8_t, u >= v);
    case B_LESS: PAIRS(uint8_t, u < v);
    case B_LESS_EQUAL: PAIRS(uint8_t, u <= v);
    case B_EQUAL: PAIRS(uint8_t, u == v);
  }
}

static int run_binary(const work_t *w) {
  const int64_t *p = w->p, *sizes = p + 2, *from = p + 8, *other = p + 14;
  int last = (int)p[1] - 1;
  ptrdiff_t item = p[0] < B_GREATER ? 4 : 1, at[HILT_AXES] = {0};
  const float *a = floats(w, 0), *b = floats(w, 1);
  uint8_t *y = w->data[2];
  for (;;) {
    binary_line(p[0], a, from[last], b, other[last], y, sizes[last]);
    y += sizes[last] * item;
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      a += from[axis];
      b += other[axis];
      if (++at[axis] < sizes[axis]) break;
      a -= from[axis] * sizes[axis];
      b -= other[axis] * sizes[axis];
      at[axis] = 0;
    }
    if (axis < 0) return 0;
  }
}

// --- reduce: function, outer, size, inner. Buffers: data, target. ---

enum { R_SUM, R_MEAN, R_SQUARES, R_MAX, R_MIN, R_COUNT };

static int check_reduce(const work_t *w) {
  const int64_t *p = w->p;
  int64_t read = product_of(3, p + 1), made[2] = {p[1], p[3]}, written = product_of(2, made);
  return w->count == 2 && in_range(p[0], 0, R_COUNT - 1) && read > 0 && written >= 0 && holds(w, 0, read, 4) &&
         holds(w, 1, written, 4);
}

#define COLUMNS 16  // sums that stay in registers

// sums[i] of `size` lines, for `count` columns.
static inline __attribute__((always_inline)) void sums_along(const float *x, ptrdiff_t size, ptrdiff_t inner, ptrdiff_t count, int squares,
                              double *sums) {
  ptrdiff_t i = 0;
  for (; i + COLUMNS <= count; i += COLUMNS) {
    double block[COLUMNS] = {0};
    for (ptrdiff_t k = 0; k < size; ++k)
      UNROLLED for (int j = 0; j < COLUMNS; ++j) block[j] += distance(x[k * inner + i + j], 0.0f, squares);
    UNROLLED for (int j = 0; j < COLUMNS; ++j) sums[i + j] = block[j];
  }
  for (; i < count; ++i) {
    double sum = 0.0;
    SCALAR for (ptrdiff_t k = 0; k < size; ++k) sum += distance(x[k * inner + i], 0.0f, squares);
    sums[i] = sum;
  }
}

// Integers in the order of the floats whose bits they are, -0 below 0; and back.
static inline int32_t ordered(int32_t bits) { return bits ^ (bits >> 31 & 0x7fffffff); }

static inline int32_t is_nan(int32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

static inline float extreme_of(int32_t best, int32_t nans) {
  const int32_t bits = nans ? 0x7fc00000 : ordered(best);
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

// The largest or smallest of `size` lines, for `count` columns, CHUNK at most; NaN where one is.
static inline __attribute__((always_inline)) void extremes_along(const float *x, ptrdiff_t size, ptrdiff_t inner,
                                                                 ptrdiff_t count, int largest, float *y) {
  const int32_t *bits = (const int32_t *)x;
  int32_t best[CHUNK], nans[CHUNK];
  for (ptrdiff_t i = 0; i < count; ++i) best[i] = ordered(bits[i]), nans[i] = 0;
  for (ptrdiff_t k = 0; k < size; ++k)
    for (ptrdiff_t i = 0; i < count; ++i) {
      const int32_t value = ordered(bits[k * inner + i]);
      best[i] = (largest ? value > best[i] : value < best[i]) ? value : best[i];
      nans[i] |= is_nan(bits[k * inner + i]);
    }
  for (ptrdiff_t i = 0; i < count; ++i) y[i] = extreme_of(best[i], nans[i]);
}

// The same of a line, one float behind another.
static inline __attribute__((always_inline)) float extreme_of_line(const float *x, ptrdiff_t size, int largest) {
  const int32_t *bits = (const int32_t *)x;
  int32_t best = ordered(bits[0]), nans = 0;
  for (ptrdiff_t k = 0; k < size; ++k) {
    const int32_t value = ordered(bits[k]);
    best = (largest ? value > best : value < best) ? value : best;
    nans |= is_nan(bits[k]);
  }
  return extreme_of(best, nans);
}

static float reduced(int64_t function, double sum, ptrdiff_t size) {
  return (float)(function == R_MEAN ? sum / (double)size : sum);
}

// Sums of whole lines.
static void reduce_lines(const work_t *w, ptrdiff_t lines, ptrdiff_t size) {
  const int squares = w->p[0] == R_SQUARES;
  for (ptrdiff_t first = 0; first < lines; first += ROWS) {
    double sums[ROWS];
    const float none[ROWS] = {0};
    const ptrdiff_t count = least(lines - first, ROWS);
    const float *x = floats(w, 0) + first * size;
    if (count == ROWS)
      squares ? sum_rows(x, size, 1, none, sums) : sum_rows(x, size, 0, none, sums);
    else
      for (ptrdiff_t i = 0; i < count; ++i) sums[i] = sum_row(x + i * size, size, squares, 0.0f);
    for (ptrdiff_t i = 0; i < count; ++i) target(w)[first + i] = reduced(w->p[0], sums[i], size);
  }
}

static int run_reduce(const work_t *w) {
  ptrdiff_t outer = w->p[1], size = w->p[2], inner = w->p[3];
  if (inner == 1 && w->p[0] <= R_SQUARES) {
    reduce_lines(w, outer, size);
    return 0;
  }
  for (ptrdiff_t o = 0; o < outer; ++o)
    for (ptrdiff_t first = 0; first < inner; first += CHUNK) {
      ptrdiff_t count = least(inner - first, CHUNK);
      const float *x = floats(w, 0) + o * size * inner + first;
      float *y = target(w) + o * inner + first;
      if (w->p[0] <= R_SQUARES) {
        double sums[CHUNK];
        w->p[0] == R_SQUARES ? sums_along(x, size, inner, count, 1, sums) : sums_along(x, size, inner, count, 0, sums);
        for (ptrdiff_t i = 0; i < count; ++i) y[i] = reduced(w->p[0], sums[i], size);
      } else {
        if (inner == 1)
          y[0] = w->p[0] == R_MAX ? extreme_of_line(x, size, 1) : extreme_of_line(x, size, 0);
        else
          w->p[0] == R_MAX ? extremes_along(x, size, inner, count, 1, y) : extremes_along(x, size, inner, count, 0, y);
        for (ptrdiff_t i = 0; i < count; ++i) y[i] += 0.0f;
      }
    }
  return 0;
}

// --- matmul: batches[2], rows, depth, columns, strides of the left's batches[2], row, depth, of the right's
// batches[2], depth, column. Buffers: left, right, target (dense). ---

enum { M_BATCHES, M_ROWS = 2, M_DEPTH, M_COLUMNS, M_LEFT, M_RIGHT = 9 };

static int check_matmul(const work_t *w) {
  const int64_t *p = w->p;
  int64_t made[4] = {p[0], p[1], p[M_ROWS], p[M_COLUMNS]}, elements = product_of(4, made);
  int64_t left[4] = {p[0], p[1], p[M_ROWS], p[M_DEPTH]}, right[4] = {p[0], p[1], p[M_DEPTH], p[M_COLUMNS]};
  return w->count == 3 && elements > 0 && product_of(4, left) > 0 && product_of(4, right) > 0 &&
         holds(w, 2, elements, 4) && spans(w, 0, 4, left, p + M_LEFT) && spans(w, 1, 4, right, p + M_RIGHT);
}

#define NEAR 64

// Writes `rows` of the product, one or two, to columns (count) of `y`.
static void multiply_rows(const int64_t *p, const float *a, const float *b, ptrdiff_t rows, ptrdiff_t count, float *y) {
  const int64_t *left = p + M_LEFT, *right = p + M_RIGHT;
  ptrdiff_t depth = p[M_DEPTH], columns = p[M_COLUMNS], done = 0;
  if (rows == 2 && right[3] == 1) done = paired_products(a, left[2], left[3], b, right[2], depth, count, y, columns);
  for (ptrdiff_t row = 0; done < count && row < rows; ++row, y += columns) {
    double sums[NEAR] = {0};
    add_products(a + row * left[2], left[3], b + done * right[3], right[2], right[3], depth, count - done, sums);
    for (ptrdiff_t i = done; i < count; ++i) y[i] = (float)sums[i - done];
  }
}

static int run_matmul(const work_t *w) {
  const int64_t *p = w->p, *left = p + M_LEFT, *right = p + M_RIGHT;
  float *y = target(w);
  for (ptrdiff_t first = 0; first < p[0]; ++first)
    for (ptrdiff_t second = 0; second < p[1]; ++second) {
      const float *a = floats(w, 0) + first * left[0] + second * left[1];
      const float *b = floats(w, 1) + first * right[0] + second * right[1];
      for (ptrdiff_t column = 0; column < p[M_COLUMNS]; column += NEAR)  // which stay in the cache for all rows
        for (ptrdiff_t row = 0; row < p[M_ROWS]; row += 2)
          multiply_rows(p, a + row * left[2], b + column * right[3], least(p[M_ROWS] - row, 2),
                        least(p[M_COLUMNS] - column, NEAR), y + row * p[M_COLUMNS] + column);
      y += p[M_ROWS] * p[M_COLUMNS];
    }
  return 0;
}

// --- windows: images, channels, height, width, outputs, depth, kernel[2], rows, columns, strides[2], dilations[2], top,
// left, groups, has bias. Buffers: data, weights, bias, target. The weights are finite: pads add nothing. ---

enum {
  C_IMAGES, C_CHANNELS, C_HEIGHT, C_WIDTH, C_OUT, C_DEPTH, C_KERNEL, C_ROWS = 8, C_COLUMNS, C_STRIDES,
  C_DILATIONS = 12, C_TOP = 14, C_LEFT, C_GROUPS, C_HAS_BIAS
};

static int window_in_range(const int64_t *p) {
  for (int i = 0; i < 2; ++i)
    if (!in_range(p[C_KERNEL + i], 1, 1 << 14) || !in_range(p[C_STRIDES + i], 1, 1 << 14) ||
        !in_range(p[C_DILATIONS + i], 1, 1 << 14) || !in_range(p[C_TOP + i], 0, 1 << 14))
      return 0;
  return p[C_HEIGHT] >= 1 && p[C_WIDTH] >= 1;
}

static int check_conv(const work_t *w) {
  const int64_t *p = w->p;
  int64_t made[4] = {p[C_IMAGES], p[C_OUT], p[C_ROWS], p[C_COLUMNS]}, outputs = product_of(4, made);
  int64_t data = product_of(4, p), weights = product_of(4, p + C_OUT);
  return w->count == 4 && data >= 0 && weights >= 0 && outputs >= 0 && window_in_range(p) && holds(w, 0, data, 4) &&
         holds(w, 1, weights, 4) && holds(w, 2, p[C_HAS_BIAS] ? p[C_OUT] : 0, 4) && holds(w, 3, outputs, 4) &&
         in_range(p[C_GROUPS], 1, 1 << 20) && p[C_OUT] % p[C_GROUPS] == 0 &&
         p[C_DEPTH] * p[C_GROUPS] == p[C_CHANNELS];
}

// Returns the outputs [begin, end) whose tap lies in the data.
static void inside(ptrdiff_t tap, ptrdiff_t pad, ptrdiff_t stride, ptrdiff_t size, ptrdiff_t outputs, ptrdiff_t *begin,
                   ptrdiff_t *end) {
  *begin = pad > tap ? (pad - tap + stride - 1) / stride : 0;
  ptrdiff_t last = size - 1 + pad - tap;
  *end = last < 0 ? 0 : least(last / stride + 1, outputs);
}

static void conv_taps(const work_t *w, ptrdiff_t image, ptrdiff_t channel, ptrdiff_t out, ptrdiff_t first, ptrdiff_t count,
                      double *restrict sums) {
  const int64_t *p = w->p;
  const ptrdiff_t stride = p[C_STRIDES + 1];
  ptrdiff_t base = channel / (p[C_OUT] / p[C_GROUPS]) * p[C_DEPTH];
  const float *weight = floats(w, 1) + channel * p[C_DEPTH] * p[C_KERNEL] * p[C_KERNEL + 1];
  for (ptrdiff_t depth = 0; depth < p[C_DEPTH]; ++depth)
    for (ptrdiff_t row = 0; row < p[C_KERNEL]; ++row) {
      ptrdiff_t y_in = out * p[C_STRIDES] + row * p[C_DILATIONS] - p[C_TOP];
      int there = in_range(y_in, 0, p[C_HEIGHT] - 1);
      const float *line =
          floats(w, 0) + ((image * p[C_CHANNELS] + base + depth) * p[C_HEIGHT] + (there ? y_in : 0)) * p[C_WIDTH];
      for (ptrdiff_t column = 0; column < p[C_KERNEL + 1]; ++column) {
        const double factor = *weight++;
        if (!there) continue;
        ptrdiff_t begin, end, shifted = column * p[C_DILATIONS + 1] - p[C_LEFT];
        inside(column * p[C_DILATIONS + 1], p[C_LEFT], stride, p[C_WIDTH], p[C_COLUMNS], &begin, &end);
        begin = most(begin, first), end = least(end, first + count);
        if (stride == 1)
          for (ptrdiff_t i = begin; i < end; ++i) sums[i - first] += factor * (double)line[i + shifted];
        else
          for (ptrdiff_t i = begin; i < end; ++i) sums[i - first] += factor * (double)line[i * stride + shifted];
      }
    }
}

static int run_conv(const work_t *w) {
  const int64_t *p = w->p;
  for (ptrdiff_t image = 0; image < p[C_IMAGES]; ++image)
    for (ptrdiff_t channel = 0; channel < p[C_OUT]; ++channel)
      for (ptrdiff_t out = 0; out < p[C_ROWS]; ++out)
        for (ptrdiff_t first = 0; first < p[C_COLUMNS]; first += CHUNK) {
          double sums[CHUNK] = {0};
          ptrdiff_t count = least(p[C_COLUMNS] - first, CHUNK);
          conv_taps(w, image, channel, out, first, count, sums);
          float *y = target(w) + ((image * p[C_OUT] + channel) * p[C_ROWS] + out) * p[C_COLUMNS] + first;
          for (ptrdiff_t i = 0; i < count; ++i)
            y[i] = p[C_HAS_BIAS] ? (float)sums[i] + floats(w, 2)[channel] : (float)sums[i];
        }
  return 0;
}

// --- pools of floats: the numbers of windows, with planes as images; 1 for the mean, 1 where pads count, and the rows
// and columns that count with pads. Buffers: data, target. ---

enum { P_MEAN = 18, P_WITH_PADS, P_BOTTOM, P_RIGHT };

static int check_pool(const work_t *w) {
  const int64_t *p = w->p;
  int64_t made[3] = {p[C_IMAGES], p[C_ROWS], p[C_COLUMNS]}, given[3] = {p[C_IMAGES], p[C_HEIGHT], p[C_WIDTH]};
  int64_t written = product_of(3, made), read = product_of(3, given);
  return w->count == 2 && written >= 0 && read >= 0 && window_in_range(p) && holds(w, 0, read, 4) &&
         holds(w, 1, written, 4) && in_range(p[P_BOTTOM], 0, (int64_t)1 << 31) &&
         in_range(p[P_RIGHT], 0, (int64_t)1 << 31);
}

static float pooled(const float *plane, const int64_t *p, ptrdiff_t out_row, ptrdiff_t out_column) {
  double sum = 0.0;
  float best = -INFINITY;
  ptrdiff_t counted = 0;
  for (ptrdiff_t row = 0; row < p[C_KERNEL]; ++row)
    for (ptrdiff_t column = 0; column < p[C_KERNEL + 1]; ++column) {
      ptrdiff_t y = out_row * p[C_STRIDES] + row * p[C_DILATIONS];
      ptrdiff_t x = out_column * p[C_STRIDES + 1] + column * p[C_DILATIONS + 1];
      int there = in_range(y - p[C_TOP], 0, p[C_HEIGHT] - 1) && in_range(x - p[C_LEFT], 0, p[C_WIDTH] - 1);
      counted += there || (p[P_WITH_PADS] && y < p[P_BOTTOM] && x < p[P_RIGHT]);
      if (!there) continue;
      float v = plane[(y - p[C_TOP]) * p[C_WIDTH] + x - p[C_LEFT]];
      sum += (double)v;
      best = best != best || best > v ? best : v;
    }
  return p[P_MEAN] ? (float)(sum / (double)counted) : best + 0.0f;
}

static int run_pool(const work_t *w) {
  const int64_t *p = w->p;
  float *y = target(w);
  for (ptrdiff_t plane = 0; plane < p[C_IMAGES]; ++plane)
    for (ptrdiff_t row = 0; row < p[C_ROWS]; ++row)
      for (ptrdiff_t column = 0; column < p[C_COLUMNS]; ++column)
        *y++ = pooled(floats(w, 0) + plane * p[C_HEIGHT] * p[C_WIDTH], p, row, column);
  return 0;
}

// --- blend: outer, size, places, inner, taps. target[place] = sum over taps of source[index] * weight, from 0.
// Buffers: source, indices (int64: taps x places), weights, target. ---

static int check_blend(const work_t *w) {
  const int64_t *p = w->p;
  int64_t given[3] = {p[0], p[1], p[3]}, made[3] = {p[0], p[2], p[3]}, table[2] = {p[2], p[4]};
  int64_t read = product_of(3, given), written = product_of(3, made), entries = product_of(2, table);
  if (w->count != 4 || read < 0 || written < 0 || entries < 0 || !holds(w, 0, read, 4) || !holds(w, 1, entries, 8) ||
      !holds(w, 2, entries, 4) || !holds(w, 3, written, 4))
    return 0;
  for (int64_t i = 0; i < entries; ++i)
    if (!in_range(((const int64_t *)w->data[1])[i], 0, p[1] - 1)) return 0;
  return 1;
}

static int run_blend(const work_t *w) {
  ptrdiff_t outer = w->p[0], size = w->p[1], places = w->p[2], inner = w->p[3], taps = w->p[4];
  const int64_t *indices = (const int64_t *)w->data[1];
  for (ptrdiff_t o = 0; o < outer; ++o)
    for (ptrdiff_t place = 0; place < places; ++place) {
      float *y = target(w) + (o * places + place) * inner;
      for (ptrdiff_t i = 0; i < inner; ++i) y[i] = 0.0f;
      for (ptrdiff_t tap = 0; tap < taps; ++tap) {
        const float *x = floats(w, 0) + (o * size + indices[tap * places + place]) * inner;
        const float weight = floats(w, 2)[tap * places + place];
        for (ptrdiff_t i = 0; i < inner; ++i) {
          const float part = x[i] * weight;
          y[i] = y[i] + part;
        }
      }
    }
  return 0;
}

// --- argmax: 1 for the least, outer, size, inner. Buffers: data, target (int64). ---

static int check_argmax(const work_t *w) {
  int64_t read = product_of(3, w->p + 1), made[2] = {w->p[1], w->p[3]}, written = product_of(2, made);
  return w->count == 2 && read > 0 && written >= 0 && holds(w, 0, read, 4) && holds(w, 1, written, 8);
}

static int run_argmax(const work_t *w) {
  ptrdiff_t outer = w->p[1], size = w->p[2], inner = w->p[3];
  for (ptrdiff_t o = 0; o < outer; ++o)
    for (ptrdiff_t i = 0; i < inner; ++i) {
      const float *x = floats(w, 0) + o * size * inner + i;
      ptrdiff_t place = 0;
      float best = x[0];
      for (ptrdiff_t k = 1; k < size && best == best; ++k) {
        float v = x[k * inner];
        if (v != v || (w->p[0] ? v < best : v > best)) best = v, place = k;
      }
      ((int64_t *)w->data[1])[o * inner + i] = place;
    }
  return 0;
}

// --- counted sum: rows, groups, entries, columns, first and end of the groups. Buffers: places (int64: rows x groups),
// table (entries x columns), counts (int32: groups x entries), target (groups x columns). ---

static int check_counted_sum(const work_t *w) {
  const int64_t *p = w->p;
  int64_t counts[2] = {p[1], p[2]}, made[2] = {p[1], p[3]};
  return w->count == 4 && p[0] <= INT32_MAX && in_range(p[4], 0, p[5]) && p[5] <= p[1] &&
         holds(w, 0, product_of(2, p), 8) && holds(w, 1, product_of(2, p + 2), 4) && holds(w, 2, product_of(2, counts), 4) &&
         holds(w, 3, product_of(2, made), 4);
}

// Counts a group's places; returns 1 where one is not there.
static int count_places(const int64_t *places, ptrdiff_t rows, ptrdiff_t apart, ptrdiff_t entries, int32_t *counts) {
  memset(counts, 0, (size_t)entries * 4);
  for (ptrdiff_t row = 0; row < rows; ++row) {
    const int64_t place = places[row * apart];
    if (!in_range(place, -entries, entries - 1)) return 1;
    ++counts[place < 0 ? place + entries : place];
  }
  return 0;
}

// Counts times entries of COLUMNS columns.
static void counted_block(const float *table, const int32_t *counts, ptrdiff_t entries, ptrdiff_t columns, float *y) {
  double sums[COLUMNS] = {0};
  for (ptrdiff_t entry = 0; entry < entries; ++entry, table += columns) {
    if (counts[entry] == 0) continue;
    const double times = counts[entry];
    UNROLLED for (int i = 0; i < COLUMNS; ++i) sums[i] = added(sums[i], times, (double)table[i]);
  }
  UNROLLED for (int i = 0; i < COLUMNS; ++i) y[i] = (float)sums[i];
}

static float counted_column(const float *table, const int32_t *counts, ptrdiff_t entries, ptrdiff_t columns) {
  double sum = 0.0;
  for (ptrdiff_t entry = 0; entry < entries; ++entry)
    if (counts[entry]) sum = added(sum, counts[entry], (double)table[entry * columns]);
  return (float)sum;
}

static int run_counted_sum(const work_t *w) {
  const ptrdiff_t rows = w->p[0], groups = w->p[1], entries = w->p[2], columns = w->p[3];
  for (ptrdiff_t group = w->p[4]; group < w->p[5]; ++group) {
    int32_t *counts = (int32_t *)w->data[2] + group * entries;
    if (count_places((const int64_t *)w->data[0] + group, rows, groups, entries, counts)) return 1;
    float *y = target(w) + group * columns;
    ptrdiff_t column = 0;
    for (; column + COLUMNS <= columns; column += COLUMNS)
      counted_block(floats(w, 1) + column, counts, entries, columns, y + column);
    for (; column < columns; ++column) y[column] = counted_column(floats(w, 1) + column, counts, entries, columns);
  }
  return 0;
}

const kernel_t float_kernels[] = {
    {check_unary, run_unary}, {check_binary, run_binary}, {check_reduce, run_reduce}, {check_matmul, run_matmul},
    {check_conv, run_conv},   {check_pool, run_pool},     {check_blend, run_blend},   {check_argmax, run_argmax},
    {check_counted_sum, run_counted_sum},
};
const int float_kernel_count = sizeof float_kernels / sizeof float_kernels[0];
