// SPDX-License-Identifier: Apache-2.0
//
// hilt's integer operators: exact, with VTA's rounding, wrap and clip.
#include "engine.h"
#include "vector.h"

#include <math.h>
#include <string.h>

#ifdef __ARM_NEON
#include <arm_neon.h>
#ifndef __aarch64__
#define NEON_32 1
#endif
#endif

// clang takes four elements of 32 bits at a time where the bytes beside them allow sixteen.
#if defined(__clang__)
#define WIDE _Pragma("clang loop vectorize_width(16)")
#else
#define WIDE
#endif

#define CHUNK 512  // elements of a row of sums on the stack

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t most(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

// Adds half a step, shifts right and clips; the sum wraps in 32 bits.
static inline int8_t narrowed(int32_t sum, int32_t half, int shift, int32_t low, int32_t high) {
  int32_t value = (int32_t)((uint32_t)sum + (uint32_t)half) >> shift;
  value = value < low ? low : value;
  return (int8_t)(value > high ? high : value);
}

static inline int32_t half_of(ptrdiff_t shift) { return shift > 0 ? (int32_t)(UINT32_C(1) << (shift - 1)) : 0; }

static int clips(ptrdiff_t low, ptrdiff_t high) { return in_range(low, -128, 127) && in_range(high, -128, 127); }

// --- add, multiply: axes, sizes[6], strides of each input[6], left shifts[2] of a sum, or numbers that a product adds
// to its inputs[2], shift, low, high, the number that a product adds behind its shift. ---
// The target is dense. Buffers: left, right, target.

enum {
  AXES, SIZES = 1, LEFT = 7, RIGHT = 13, SHIFT_LEFT = 19, SHIFT_RIGHT = 20, SHIFT = 21, LOW = 22, HIGH = 23, BEHIND = 24
};

static int spans(const work_t *w, int buffer, const int64_t *strides) {
  int64_t far = 0;
  for (int64_t i = 0; i < w->p[AXES]; ++i) {
    if (!in_range(strides[i], 0, (int64_t)1 << 31)) return 0;
    far += (w->p[SIZES + i] - 1) * strides[i];
    if (far > (int64_t)1 << 40) return 0;
  }
  return holds(w, buffer, far + 1, 1);
}

static int check_pair(const work_t *w) {
  const int64_t *p = w->p;
  if (w->count != 3 || !in_range(p[AXES], 1, HILT_AXES)) return 0;
  int64_t elements = product_of((int)p[AXES], p + SIZES);
  return elements > 0 && holds(w, 2, elements, 1) && spans(w, 0, p + LEFT) && spans(w, 1, p + RIGHT) &&
         in_range(p[SHIFT], 0, 31) && clips(p[LOW], p[HIGH]);
}

static int check_add(const work_t *w) {
  return check_pair(w) && in_range(w->p[SHIFT_LEFT], 0, 31) && in_range(w->p[SHIFT_RIGHT], 0, 31);
}

static int check_multiply(const work_t *w) {
  const int64_t *p = w->p, most = (1 << 14) - 1;
  return check_pair(w) && p[SHIFT] <= 30 && in_range(p[SHIFT_LEFT], -most, most) &&
         in_range(p[SHIFT_RIGHT], -most, most) && in_range(p[BEHIND], -most, most);
}

#define PAIR_LINE(name, type, expression)                                                                    \
  static void name(const int8_t *restrict a, ptrdiff_t sa, const int8_t *restrict b, ptrdiff_t sb,               \
                   int8_t *restrict y, ptrdiff_t count, const int64_t *p) {                                    \
    const type low = (type)p[LOW], high = (type)p[HIGH], half = (type)half_of(p[SHIFT]);                     \
    const int left = (int)p[SHIFT_LEFT], right = (int)p[SHIFT_RIGHT], shift = (int)p[SHIFT];                 \
    const int behind = (int)p[BEHIND];                                                                       \
    (void)left, (void)right, (void)behind;                                                                   \
    if (sa == 1 && sb == 1) {                                                                                \
      WIDE for (ptrdiff_t i = 0; i < count; ++i) {                                                                  \
        type u = a[i], v = b[i], t = expression;                                                             \
        t = t < low ? low : t;                                                                               \
        y[i] = (int8_t)(t > high ? high : t);                                                                \
      }                                                                                                      \
    } else if (sa == 1 && sb == 0) {                                                                         \
      const type v = b[0];                                                                                   \
      WIDE for (ptrdiff_t i = 0; i < count; ++i) {                                                                  \
        type u = a[i], t = expression;                                                                       \
        t = t < low ? low : t;                                                                               \
        y[i] = (int8_t)(t > high ? high : t);                                                                \
      }                                                                                                      \
    } else {                                                                                                 \
      WIDE for (ptrdiff_t i = 0; i < count; ++i) {                                                                  \
        type u = a[i * sa], v = b[i * sb], t = expression;                                                   \
        t = t < low ? low : t;                                                                               \
        y[i] = (int8_t)(t > high ? high : t);                                                                \
      }                                                                                                      \
    }                                                                                                        \
  }

#define ADDED32 \
  ((int32_t)(((uint32_t)u << left) + ((uint32_t)v << right) + (uint32_t)half) >> shift)
PAIR_LINE(add_line, int32_t, ADDED32)
PAIR_LINE(add_line_16, int16_t, (int16_t)((int16_t)(u * (1 << left) + v * (1 << right) + half) >> shift))
PAIR_LINE(multiply_line, int32_t, (((u + left) * (v + right) + half) >> shift) + behind)
PAIR_LINE(multiply_line_16, int16_t, (int16_t)((int16_t)(u * v + half) >> shift))

#ifdef __ARM_NEON
// Sixteen elements of two rows, or of a row and one value, at a time. Returns how many it made.
#define PAIR_NEON(name, sum)                                                                                     \
  static ptrdiff_t name##_neon(const int8_t *restrict a, ptrdiff_t sa, const int8_t *restrict b, ptrdiff_t sb,   \
                               int8_t *restrict y, ptrdiff_t count, const int64_t *p) {                          \
    const int16x8_t lefts = vdupq_n_s16((int16_t)p[SHIFT_LEFT]), rights = vdupq_n_s16((int16_t)p[SHIFT_RIGHT]);  \
    const int16x8_t half = vdupq_n_s16((int16_t)half_of(p[SHIFT])), down = vdupq_n_s16((int16_t)-p[SHIFT]);      \
    const int8x16_t lows = vdupq_n_s8((int8_t)p[LOW]), highs = vdupq_n_s8((int8_t)p[HIGH]);                      \
    ptrdiff_t i = 0;                                                                                             \
    (void)lefts, (void)rights;                                                                                   \
    if (sa != 1 || (sb != 1 && sb != 0)) return 0;                                                               \
    for (; i + 16 <= count; i += 16) {                                                                           \
      const int8x16_t left = vld1q_s8(a + i), right = sb ? vld1q_s8(b + i) : vdupq_n_s8(b[0]);                   \
      int8x8_t u = vget_low_s8(left), v = vget_low_s8(right);                                                    \
      const int8x8_t first = vqmovn_s16(vshlq_s16(vaddq_s16(sum, half), down));                                  \
      u = vget_high_s8(left), v = vget_high_s8(right);                                                           \
      const int8x8_t second = vqmovn_s16(vshlq_s16(vaddq_s16(sum, half), down));                                 \
      vst1q_s8(y + i, vminq_s8(vmaxq_s8(vcombine_s8(first, second), lows), highs));                              \
    }                                                                                                            \
    return i;                                                                                                    \
  }
PAIR_NEON(add, vaddq_s16(vshlq_s16(vmovl_s8(u), lefts), vshlq_s16(vmovl_s8(v), rights)))
PAIR_NEON(multiply, vmull_s8(u, v))
#define PAIR_16(name)                                                                                            \
  static void name##_16(const int8_t *restrict a, ptrdiff_t sa, const int8_t *restrict b, ptrdiff_t sb,          \
                        int8_t *restrict y, ptrdiff_t count, const int64_t *p) {                                 \
    const ptrdiff_t made = name##_neon(a, sa, b, sb, y, count, p);                                               \
    name##_line_16(a + made * sa, sa, b + made * sb, sb, y + made, count - made, p);                             \
  }
PAIR_16(add)
PAIR_16(multiply)
#else
#define add_16 add_line_16
#define multiply_16 multiply_line_16
#endif

typedef void pair_line_t(const int8_t *, ptrdiff_t, const int8_t *, ptrdiff_t, int8_t *, ptrdiff_t, const int64_t *);

// One value a lane for all pixels of a block: sixteen products at a time.
static int multiply_blocks(const work_t *w) {
  const int64_t *p = w->p;
  int last = (int)p[AXES] - 1;
  if (last < 1 || last > 2 || p[SIZES + last] != 16 || p[LEFT + last] != 1 || p[RIGHT + last] != 1) return 0;
  int a = p[LEFT + last - 1] == 16 && p[RIGHT + last - 1] == 0, b = p[RIGHT + last - 1] == 16 && p[LEFT + last - 1] == 0;
  if (!(a || b) || p[SHIFT] < 1 || p[SHIFT] > 14) return 0;
  const ptrdiff_t groups = last == 2 ? p[SIZES] : 1, pixels = p[SIZES + last - 1];
  const int64_t *whole = a ? p + LEFT : p + RIGHT, *lone = a ? p + RIGHT : p + LEFT;
  const int16_t low = (int16_t)p[LOW], high = (int16_t)p[HIGH], half = (int16_t)half_of(p[SHIFT]);
  const int shift = (int)p[SHIFT];
  int8_t *restrict y = (int8_t *)w->data[2];
  for (ptrdiff_t group = 0; group < groups; ++group) {
    const int8_t *restrict x = (const int8_t *)w->data[a ? 0 : 1] + (last == 2 ? group * whole[0] : 0);
    const int8_t *factor = (const int8_t *)w->data[a ? 1 : 0] + (last == 2 ? group * lone[0] : 0);
    int16_t factors[16];
    for (int lane = 0; lane < 16; ++lane) factors[lane] = factor[lane];
#ifdef __ARM_NEON
    const int16x8_t first = vld1q_s16(factors), second = vld1q_s16(factors + 8), halves = vdupq_n_s16(half);
    const int16x8_t lows = vdupq_n_s16(low), highs = vdupq_n_s16(high), right = vdupq_n_s16((int16_t)-shift);
    for (ptrdiff_t pixel = 0; pixel < pixels; ++pixel, x += 16, y += 16) {
      const int8x16_t v = vld1q_s8(x);
      int16x8_t a = vshlq_s16(vmlaq_s16(halves, vmovl_s8(vget_low_s8(v)), first), right);
      int16x8_t b = vshlq_s16(vmlaq_s16(halves, vmovl_s8(vget_high_s8(v)), second), right);
      a = vminq_s16(vmaxq_s16(a, lows), highs), b = vminq_s16(vmaxq_s16(b, lows), highs);
      vst1q_s8(y, vcombine_s8(vmovn_s16(a), vmovn_s16(b)));
    }
    continue;
#endif
    for (ptrdiff_t pixel = 0; pixel < pixels; ++pixel, x += 16, y += 16)
      WIDE for (int lane = 0; lane < 16; ++lane) {
        int16_t t = (int16_t)((int16_t)(x[lane] * factors[lane] + half) >> shift);
        t = t < low ? low : t;
        y[lane] = (int8_t)(t > high ? high : t);
      }
  }
  return 1;
}

static int run_pair(const work_t *w, pair_line_t *line) {
  const int64_t *p = w->p, *sizes = p + SIZES, *from = p + LEFT, *other = p + RIGHT;
  int last = (int)p[AXES] - 1;
  const int8_t *a = (const int8_t *)w->data[0], *b = (const int8_t *)w->data[1];
  int8_t *y = (int8_t *)w->data[2];
  ptrdiff_t at[HILT_AXES] = {0};
  for (;;) {
    line(a, from[last], b, other[last], y, sizes[last], p);
    y += sizes[last];
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

static int run_add(const work_t *w) {
  ptrdiff_t left = w->p[SHIFT_LEFT], right = w->p[SHIFT_RIGHT], shift = w->p[SHIFT];
  int fits = left < 7 && right < 7 && shift < 15 &&
             (INT64_C(128) << left) + (INT64_C(128) << right) + half_of(shift) < 32768;
  return run_pair(w, fits ? add_16 : add_line);
}

static int run_multiply(const work_t *w) {
  const int64_t *p = w->p;
  const int plain = !p[SHIFT_LEFT] && !p[SHIFT_RIGHT] && !p[BEHIND] && half_of(p[SHIFT]) + 16384 < 32768;
  if (plain && multiply_blocks(w)) return 0;
  return run_pair(w, plain && p[SHIFT] > 0 && p[SHIFT] < 15 ? multiply_16 : multiply_line);
}

// --- pools: planes, height, width, rows and columns out, kernel[2], strides[2], top, left, divisor, shift, low, high,
// number to add to the means. Buffers: data, target. ---

enum {
  PLANES, HEIGHT, WIDTH, ROWS, COLUMNS, KERNEL, STRIDES = 7, TOP = 9, PAD_LEFT, DIVISOR, MEAN_SHIFT, MEAN_LOW,
  MEAN_HIGH, MEAN_ADDED
};

static int check_pool(const work_t *w) {
  const int64_t *p = w->p;
  int64_t given[3] = {p[PLANES], p[HEIGHT], p[WIDTH]}, made[3] = {p[PLANES], p[ROWS], p[COLUMNS]};
  int64_t read = product_of(3, given), written = product_of(3, made);
  if (w->count != 2 || read < 0 || written < 0 || !holds(w, 0, read, 1) || !holds(w, 1, written, 1)) return 0;
  for (int i = 0; i < 4; ++i)
    if (!in_range(p[KERNEL + i], 1, 1 << 14)) return 0;
  return in_range(p[TOP], 0, 1 << 14) && in_range(p[PAD_LEFT], 0, 1 << 14) && p[KERNEL] * p[KERNEL + 1] <= 1 << 24 &&
         in_range(p[DIVISOR], 0, INT32_MAX) && in_range(p[MEAN_SHIFT], -31, 31) && clips(p[MEAN_LOW], p[MEAN_HIGH]) &&
         in_range(p[MEAN_ADDED], -32768, 32767);
}

// Returns the outputs [begin, end) whose tap lies in the data.
static void inside(ptrdiff_t tap, ptrdiff_t pad, ptrdiff_t stride, ptrdiff_t size, ptrdiff_t outputs, ptrdiff_t *begin,
                   ptrdiff_t *end) {
  *begin = pad > tap ? (pad - tap + stride - 1) / stride : 0;
  ptrdiff_t last = size - 1 + pad - tap;
  *end = last < 0 ? 0 : least(last / stride + 1, outputs);
}

// How sums are divided: by `count`; by a product where `factor` is not 0, and then (sum * factor + begin) >> shift,
// modulo 2^32, is the mean and `behind`. `count` is 0 of none.
typedef struct {
  int64_t count;
  uint32_t factor, begin;
  int shift;
  int32_t behind;
} mean_t;

#define MEANS 16

// Returns how sums of windows are divided by `count`. The numerators 2 sum 2^left + d are made positive by `steps` whole
// means and multiplied by 2^shift / 2d, rounded up: exact while no numerator times 2d is over 2^shift.
static mean_t mean_by(int64_t count, const int64_t *p) {
  mean_t mean = {.count = count};
  const int64_t right = p[MEAN_SHIFT] > 0 ? p[MEAN_SHIFT] : 0, left = right - p[MEAN_SHIFT];
  if (right > 15 || left > 15 || count > 1 << 12 || p[KERNEL] * p[KERNEL + 1] > 1 << 12) return mean;
  const int64_t d = count << right, most_sum = p[KERNEL] * p[KERNEL + 1] * 128 << left;
  const int64_t steps = (most_sum + d - 1) / d, begin = d + 2 * d * steps, end = 2 * most_sum + begin + 1;
  int shift = 0;
  while (shift < 32 && INT64_C(1) << shift < end * 2 * d) ++shift;
  const int64_t factor = ((INT64_C(1) << shift) + 2 * d - 1) / (2 * d);
  if (shift > 31 || end * factor > UINT32_MAX) return mean;
  mean.factor = (uint32_t)(2 * factor << left), mean.begin = (uint32_t)(begin * factor), mean.shift = shift;
  mean.behind = (int32_t)(steps - p[MEAN_ADDED]);
  return mean;
}

// Returns the mean of windows that have so many elements of the data; `means` are those that were asked for.
static const mean_t *mean_for(mean_t means[MEANS], ptrdiff_t elements, const int64_t *p) {
  const int64_t count = p[DIVISOR] ? p[DIVISOR] : most(elements, 1);
  mean_t *mean = &means[count % MEANS];
  if (mean->count != count) *mean = mean_by(count, p);
  return mean;
}

static int8_t mean_of(int32_t sum, int64_t count, const int64_t *p) {
  double low = (double)p[MEAN_LOW], high = (double)p[MEAN_HIGH];
  double mean = floor(ldexp((double)sum, -(int)p[MEAN_SHIFT]) / (double)count + 0.5) + (double)p[MEAN_ADDED];
  mean = mean < low ? low : mean;
  return (int8_t)(mean > high ? high : mean);
}

static void mean_line(const int32_t *restrict sums, int8_t *restrict y, ptrdiff_t size, const mean_t *mean,
                      const int64_t *p) {
  const int32_t low = (int32_t)p[MEAN_LOW], high = (int32_t)p[MEAN_HIGH];
  if (mean->factor) {
    const uint32_t factor = mean->factor, begin = mean->begin;
    const int32_t behind = mean->behind;
    const int shift = mean->shift;
    WIDE for (ptrdiff_t i = 0; i < size; ++i) {
      int32_t value = (int32_t)(((uint32_t)sums[i] * factor + begin) >> shift) - behind;
      value = value < low ? low : value;
      y[i] = (int8_t)(value > high ? high : value);
    }
  } else if (mean->count == 1 && p[MEAN_SHIFT] >= 0 && !p[MEAN_ADDED]) {
    int32_t half = half_of(p[MEAN_SHIFT]);
    for (ptrdiff_t i = 0; i < size; ++i) y[i] = narrowed(sums[i], half, (int)p[MEAN_SHIFT], low, high);
  } else {
    for (ptrdiff_t i = 0; i < size; ++i) y[i] = mean_of(sums[i], mean->count, p);
  }
}

#define LINES(name, type, statement)                                                                       \
  static void name(type *restrict y, const int8_t *restrict x, ptrdiff_t stride, ptrdiff_t count) {        \
    if (stride == 1)                                                                                       \
      WIDE for (ptrdiff_t i = 0; i < count; ++i) statement(y[i], x[i]);                                         \
    else if (stride == 2)                                                                                  \
      WIDE for (ptrdiff_t i = 0; i < count; ++i) statement(y[i], x[2 * i]);                                     \
    else                                                                                                   \
      WIDE for (ptrdiff_t i = 0; i < count; ++i) statement(y[i], x[i * stride]);                                \
  }

#define LARGER(y, x) y = y > (x) ? y : (x)
#define MORE(y, x) y += (x)
LINES(larger_line, int8_t, LARGER)
LINES(sum_line, int32_t, MORE)
LINES(sum_line_16, int16_t, MORE)

// Calls a line function for each tap of the outputs [first, first + count) of a row.
#define TAPS(line, to)                                                                                     \
  for (ptrdiff_t row = 0; row < p[KERNEL]; ++row) {                                                        \
    ptrdiff_t y_in = out * p[STRIDES] + row - p[TOP];                                                      \
    if (y_in < 0 || y_in >= p[HEIGHT]) continue;                                                           \
    for (ptrdiff_t column = 0; column < p[KERNEL + 1]; ++column) {                                         \
      ptrdiff_t begin, end;                                                                                \
      inside(column, p[PAD_LEFT], stride, p[WIDTH], p[COLUMNS], &begin, &end);                             \
      begin = most(begin, first), end = least(end, first + count);                                         \
      if (begin < end)                                                                                     \
        line(to + (begin - first), plane + y_in * p[WIDTH] + begin * stride + column - p[PAD_LEFT], stride, \
             end - begin);                                                                                 \
    }                                                                                                      \
  }

static int run_max_pool(const work_t *w) {
  const int64_t *p = w->p;
  const ptrdiff_t stride = p[STRIDES + 1];
  for (ptrdiff_t k = 0; k < p[PLANES]; ++k) {
    const int8_t *plane = (const int8_t *)w->data[0] + k * p[HEIGHT] * p[WIDTH];
    for (ptrdiff_t out = 0; out < p[ROWS]; ++out)
      for (ptrdiff_t first = 0; first < p[COLUMNS]; first += CHUNK) {
        ptrdiff_t count = least(p[COLUMNS] - first, CHUNK);
        int8_t *y = (int8_t *)w->data[1] + (k * p[ROWS] + out) * p[COLUMNS] + first;
        memset(y, -128, (size_t)count);
        TAPS(larger_line, y)
      }
  }
  return 0;
}

// The taps of a window that lie in the image: rows and columns.
typedef struct {
  ptrdiff_t top, bottom, left, right;
} window_t;

static window_t window_of(const int64_t *p, ptrdiff_t out, ptrdiff_t column) {
  const ptrdiff_t y = out * p[STRIDES] - p[TOP], x = column * p[STRIDES + 1] - p[PAD_LEFT];
  return (window_t){most(y, 0), least(y + p[KERNEL], p[HEIGHT]), most(x, 0), least(x + p[KERNEL + 1], p[WIDTH])};
}

static ptrdiff_t elements_of(const window_t *in) {
  return most(in->bottom - in->top, 0) * most(in->right - in->left, 0);
}

// Divides the sums of the outputs [first, first + count) of a row, those of as many elements at once.
static void mean_row(const int32_t *sums, int8_t *y, ptrdiff_t count, ptrdiff_t out, ptrdiff_t first, ptrdiff_t lanes,
                     mean_t means[MEANS], const int64_t *p) {
  const ptrdiff_t last = p[WIDTH] - p[KERNEL + 1];
  for (ptrdiff_t begin = 0, end; begin < count; begin = end) {
    const window_t in = window_of(p, out, first + begin);
    end = begin + 1;
    if (p[DIVISOR])
      end = count;
    else if (in.right - in.left == p[KERNEL + 1])  // and so are those up to the right border
      end = least(most((last + p[PAD_LEFT]) / p[STRIDES + 1] + 1 - first, end), count);
    mean_line(sums + begin * lanes, y + begin * lanes, (end - begin) * lanes, mean_for(means, elements_of(&in), p), p);
  }
}

static int run_average_pool(const work_t *w) {
  const int64_t *p = w->p;
  const ptrdiff_t stride = p[STRIDES + 1];
  const int small = p[KERNEL] * p[KERNEL + 1] <= 255;  // sums of so many int8 fit 16 bits
  mean_t means[MEANS] = {{0}};
  for (ptrdiff_t k = 0; k < p[PLANES]; ++k) {
    const int8_t *plane = (const int8_t *)w->data[0] + k * p[HEIGHT] * p[WIDTH];
    for (ptrdiff_t out = 0; out < p[ROWS]; ++out)
      for (ptrdiff_t first = 0; first < p[COLUMNS]; first += CHUNK) {
        int32_t sums[CHUNK];
        int16_t narrow[CHUNK];
        ptrdiff_t count = least(p[COLUMNS] - first, CHUNK);
        if (small) {
          memset(narrow, 0, (size_t)count * sizeof *narrow);
          TAPS(sum_line_16, narrow)
          for (ptrdiff_t i = 0; i < count; ++i) sums[i] = narrow[i];
        } else {
          memset(sums, 0, (size_t)count * sizeof *sums);
          TAPS(sum_line, sums)
        }
        mean_row(sums, (int8_t *)w->data[1] + (k * p[ROWS] + out) * p[COLUMNS] + first, count, out, first, 1, means, p);
      }
  }
  return 0;
}

// --- global average pool: the pool's numbers, with planes, 1, pixels. ---

static int check_global(const work_t *w) {
  return check_pool(w) && w->p[ROWS] == 1 && w->p[COLUMNS] == 1 && w->p[HEIGHT] * w->p[WIDTH] <= 1 << 24;
}

static int run_global_average_pool(const work_t *w) {
  const int64_t *p = w->p;
  ptrdiff_t pixels = p[HEIGHT] * p[WIDTH];
  mean_t means[MEANS] = {{0}};
  for (ptrdiff_t k = 0; k < p[PLANES]; ++k) {
    const int8_t *x = (const int8_t *)w->data[0] + k * pixels;
    int32_t sum = 0;
    WIDE for (ptrdiff_t i = 0; i < pixels; ++i) sum += x[i];
    mean_line(&sum, (int8_t *)w->data[1] + k, 1, mean_for(means, pixels, p), p);
  }
  return 0;
}

// --- pools of a packed tensor: the pool's numbers, lanes, 1 for the largest. Buffers: data, target. ---

enum { LANES = 16, IS_MAX, MOST_LANES = 1024 };

static int check_pool_packed(const work_t *w) {
  const int64_t *p = w->p;
  int64_t given[4] = {p[PLANES], p[HEIGHT], p[WIDTH], p[LANES]}, made[4] = {p[PLANES], p[ROWS], p[COLUMNS], p[LANES]};
  int64_t read = product_of(4, given), written = product_of(4, made);
  return check_pool(w) && in_range(p[LANES], 1, MOST_LANES) && read >= 0 && written >= 0 && holds(w, 0, read, 1) &&
         holds(w, 1, written, 1);
}

#define GROUP 16     // lanes in vectors
#define NARROW 256   // int8, whose sum keeps within 16 bits
#define SPAN 2048    // sums of a row on the stack

// The largest of a window, of GROUP lanes.
static void largest_of(const window_t *in, const int8_t *plane, const int64_t *p, int8_t y[GROUP]) {
  int8_t best[GROUP];
  for (int lane = 0; lane < GROUP; ++lane) best[lane] = -128;
  for (ptrdiff_t row = in->top; row < in->bottom; ++row) {
    const int8_t *x = plane + (row * p[WIDTH] + in->left) * p[LANES];
    for (ptrdiff_t tap = in->left; tap < in->right; ++tap, x += p[LANES])
      for (int lane = 0; lane < GROUP; ++lane) best[lane] = best[lane] > x[lane] ? best[lane] : x[lane];
  }
  memcpy(y, best, GROUP);
}

// The sums of a window, of GROUP lanes: so many rows and columns at once as keep within 16 bits.
static void sum_of(const window_t *in, const int8_t *plane, const int64_t *p, int32_t wide[GROUP]) {
  const ptrdiff_t lanes = p[LANES], width = p[WIDTH];
  const ptrdiff_t most_rows = p[KERNEL] * p[KERNEL + 1] <= NARROW ? p[KERNEL] : 1;
  for (int lane = 0; lane < GROUP; ++lane) wide[lane] = 0;
  for (ptrdiff_t top = in->top; top < in->bottom; top += most_rows)
    for (ptrdiff_t left = in->left; left < in->right; left += NARROW) {
      const ptrdiff_t rows = least(in->bottom - top, most_rows), columns = least(in->right - left, NARROW);
      const int8_t *x = plane + (top * width + left) * lanes;
      sums16 sums = {0};
      for (ptrdiff_t row = rows; row > 0; --row, x += (width - columns) * lanes)
        for (ptrdiff_t column = columns; column > 0; --column, x += lanes) add16(&sums, x);
      int16_t narrow[GROUP];
      memcpy(narrow, &sums, sizeof narrow);
      for (int lane = 0; lane < GROUP; ++lane) wide[lane] += narrow[lane];
    }
}

static void pool_lane(const window_t *in, const int8_t *plane, const int64_t *p, int32_t *sum) {
  int32_t found = p[IS_MAX] ? -128 : 0;
  for (ptrdiff_t row = in->top; row < in->bottom; ++row)
    for (ptrdiff_t tap = in->left; tap < in->right; ++tap) {
      const int32_t x = plane[(row * p[WIDTH] + tap) * p[LANES]];
      found = p[IS_MAX] ? (int32_t)most(found, x) : found + x;
    }
  *sum = found;
}

static void pool_pixel(const work_t *w, const int8_t *plane, const window_t *in, mean_t means[MEANS], int8_t *y) {
  const int64_t *p = w->p;
  const ptrdiff_t lanes = p[LANES];
  const mean_t *mean = p[IS_MAX] ? NULL : mean_for(means, elements_of(in), p);
  int32_t sums[GROUP];
  ptrdiff_t lane = 0;
  for (; lane + GROUP <= lanes; lane += GROUP)
    if (p[IS_MAX]) {
      largest_of(in, plane + lane, p, y + lane);
    } else {
      sum_of(in, plane + lane, p, sums);
      mean_line(sums, y + lane, GROUP, mean, p);
    }
  for (; lane < lanes; ++lane) {
    pool_lane(in, plane + lane, p, sums);
    if (p[IS_MAX])
      y[lane] = (int8_t)sums[0];
    else
      mean_line(sums, y + lane, 1, mean, p);
  }
}

// The sums of a row's outputs [first, end), pixel by pixel: down each column that they read, then along the columns.
static void sum_row(const int8_t *plane, ptrdiff_t out, ptrdiff_t first, ptrdiff_t end, const int64_t *p,
                    int32_t *restrict sums) {
  const ptrdiff_t lanes = p[LANES], line = p[WIDTH] * lanes;
  const window_t before = window_of(p, out, first), behind = window_of(p, out, end - 1);
  const ptrdiff_t rows = behind.bottom - behind.top, read = (behind.right - before.left) * lanes;
  const int8_t *from = plane + behind.top * line + before.left * lanes;
  int16_t columns[SPAN];
  for (ptrdiff_t i = 0; i < read; i += GROUP) {
    sums16 sum = {0};
    for (ptrdiff_t row = 0; row < rows; ++row) add16(&sum, from + row * line + i);
    memcpy(columns + i, &sum, sizeof sum);
  }
  const ptrdiff_t stride = p[STRIDES + 1], kernel = p[KERNEL + 1], width = p[WIDTH];
  ptrdiff_t x = first * stride - p[PAD_LEFT];
  for (ptrdiff_t column = first; column < end; ++column, x += stride) {
    const ptrdiff_t left = most(x, 0), taps = least(x + kernel, width) - left;
    const int16_t *begin = columns + (left - before.left) * lanes;
    for (ptrdiff_t lane = 0; lane < lanes; lane += GROUP, begin += GROUP, sums += GROUP) {
      sums16 sum = {0};
      const int16_t *tap = begin;
      for (ptrdiff_t left_over = taps; left_over > 0; --left_over, tap += lanes) join16(&sum, tap);
      int16_t narrow[GROUP];
      memcpy(narrow, &sum, sizeof narrow);
      for (int i = 0; i < GROUP; ++i) sums[i] = narrow[i];
    }
  }
}

// Averages row by row: of windows that lie in each other's columns, whose sums keep within 16 bits.
static int run_averages_packed(const work_t *w) {
  const int64_t *p = w->p;
  const ptrdiff_t lanes = p[LANES], most_columns = (SPAN / lanes - p[KERNEL + 1]) / p[STRIDES + 1] + 1;
  int8_t *y = (int8_t *)w->data[1];
  mean_t means[MEANS] = {{0}};
  for (ptrdiff_t k = 0; k < p[PLANES]; ++k)
    for (ptrdiff_t out = 0; out < p[ROWS]; ++out)
      for (ptrdiff_t first = 0; first < p[COLUMNS]; first += most_columns) {
        const ptrdiff_t count = least(p[COLUMNS] - first, most_columns);
        int32_t sums[SPAN];
        sum_row((const int8_t *)w->data[0] + k * p[HEIGHT] * p[WIDTH] * lanes, out, first, first + count, p, sums);
        mean_row(sums, y, count, out, first, lanes, means, p);
        y += count * lanes;
      }
  return 0;
}

static int run_pool_packed(const work_t *w) {
  const int64_t *p = w->p;
  if (!p[IS_MAX] && p[COLUMNS] > 1 && p[LANES] % GROUP == 0 && p[KERNEL] * p[KERNEL + 1] <= NARROW &&
      p[KERNEL + 1] * p[LANES] <= SPAN)
    return run_averages_packed(w);
  const ptrdiff_t plane = p[HEIGHT] * p[WIDTH] * p[LANES], lanes = p[LANES], columns = p[COLUMNS];
  const int8_t *x = (const int8_t *)w->data[0];
  int8_t *y = (int8_t *)w->data[1];
  mean_t means[MEANS] = {{0}};
  for (ptrdiff_t k = 0; k < p[PLANES]; ++k, x += plane)
    for (ptrdiff_t out = 0; out < p[ROWS]; ++out)
      for (ptrdiff_t column = 0; column < columns; ++column, y += lanes) {
        const window_t in = window_of(p, out, column);
        pool_pixel(w, x, &in, means, y);
      }
  return 0;
}

// --- conv2d. Buffers: data, weights, bias (int32, one a channel), residual (the target's shape, or none: the bias
// again), shift (int32, one a channel), residual shift (int32), target. ---

enum {
  C_IMAGES, C_CHANNELS, C_HEIGHT, C_WIDTH, C_OUT, C_DEPTH, C_KERNEL, C_ROWS = 8, C_COLUMNS, C_STRIDES,
  C_DILATIONS = 12, C_TOP = 14, C_LEFT, C_GROUPS, C_LOW, C_HIGH, C_HAS_RESIDUAL, C_SPREAD
};

static int check_epilogue(const work_t *w, int64_t channels, int64_t outputs, int64_t low, int64_t high, int residual) {
  if (w->count != 7 || !holds(w, 2, channels, 4) || !holds(w, 4, channels, 4) || !holds(w, 5, channels, 4)) return 0;
  if (!holds(w, 6, outputs, 1) || (residual && !holds(w, 3, outputs, 1)) || !clips(low, high)) return 0;
  for (int64_t i = 0; i < channels; ++i)
    if (!in_range(((const int32_t *)w->data[4])[i], 0, 31) || !in_range(((const int32_t *)w->data[5])[i], 0, 31))
      return 0;
  return 1;
}

static int check_conv2d(const work_t *w) {
  const int64_t *p = w->p;
  int64_t data = product_of(4, p), weights = product_of(4, p + C_OUT);
  int64_t made[4] = {p[C_IMAGES], p[C_OUT], p[C_ROWS], p[C_COLUMNS]};
  int64_t outputs = product_of(4, made);
  if (data < 0 || weights < 0 || outputs < 0 || !holds(w, 0, data, 1) || !holds(w, 1, weights, 1)) return 0;
  for (int i = 0; i < 2; ++i)
    if (!in_range(p[C_KERNEL + i], 1, 1 << 14) || !in_range(p[C_STRIDES + i], 1, 1 << 14) ||
        !in_range(p[C_DILATIONS + i], 1, 1 << 14) || !in_range(p[C_TOP + i], 0, 1 << 14) ||
        !in_range(p[C_SPREAD + i], 1, 1 << 14))
      return 0;
  if (!in_range(p[C_GROUPS], 1, 1 << 20) || p[C_OUT] % p[C_GROUPS] || p[C_DEPTH] * p[C_GROUPS] != p[C_CHANNELS])
    return 0;
  return p[C_HEIGHT] >= 1 && p[C_WIDTH] >= 1 &&
         check_epilogue(w, p[C_OUT], outputs, p[C_LOW], p[C_HIGH], p[C_HAS_RESIDUAL] != 0);
}

static void finish(const int32_t *sums, ptrdiff_t count, ptrdiff_t channel, const work_t *w, ptrdiff_t place, int residual,
                   ptrdiff_t low, ptrdiff_t high) {
  int32_t bias = ((const int32_t *)w->data[2])[channel], shift = ((const int32_t *)w->data[4])[channel];
  int32_t half = half_of(shift), left = ((const int32_t *)w->data[5])[channel];
  int8_t *y = (int8_t *)w->data[6] + place;
  const int8_t *extra = (const int8_t *)w->data[3] + place;
  for (ptrdiff_t i = 0; i < count; ++i) {
    uint32_t sum = (uint32_t)sums[i] + (uint32_t)bias;
    if (residual) sum += (uint32_t)(int32_t)extra[i] << left;
    y[i] = narrowed((int32_t)sum, half, shift, (int32_t)low, (int32_t)high);
  }
}

static void add_taps(const work_t *w, ptrdiff_t image, ptrdiff_t channel, ptrdiff_t out, ptrdiff_t first, ptrdiff_t count,
                     int32_t *restrict sums) {
  const int64_t *p = w->p;
  ptrdiff_t stride = p[C_STRIDES + 1], base = channel / (p[C_OUT] / p[C_GROUPS]) * p[C_DEPTH];
  const int8_t *weight = (const int8_t *)w->data[1] + channel * p[C_DEPTH] * p[C_KERNEL] * p[C_KERNEL + 1];
  ptrdiff_t spread_rows = p[C_SPREAD], spread = p[C_SPREAD + 1];
  for (ptrdiff_t depth = 0; depth < p[C_DEPTH]; ++depth)
    for (ptrdiff_t row = 0; row < p[C_KERNEL]; ++row) {
      ptrdiff_t y_in = out * p[C_STRIDES] + row * p[C_DILATIONS] - p[C_TOP];
      int there = y_in >= 0 && y_in % spread_rows == 0 && y_in / spread_rows < p[C_HEIGHT];
      const int8_t *line = (const int8_t *)w->data[0] +
                           ((image * p[C_CHANNELS] + base + depth) * p[C_HEIGHT] + (there ? y_in / spread_rows : 0)) *
                               p[C_WIDTH];
      for (ptrdiff_t column = 0; column < p[C_KERNEL + 1]; ++column) {
        int32_t factor = *weight++;
        if (!there || factor == 0) continue;
        ptrdiff_t tap = column * p[C_DILATIONS + 1], begin, end;
        inside(tap, p[C_LEFT], stride, (p[C_WIDTH] - 1) * spread + 1, p[C_COLUMNS], &begin, &end);
        begin = most(begin, first), end = least(end, first + count);
        ptrdiff_t shifted = tap - p[C_LEFT];
        if (spread > 1) {
          for (ptrdiff_t i = begin; i < end; ++i)
            if ((i * stride + shifted) % spread == 0) sums[i - first] += factor * line[(i * stride + shifted) / spread];
        } else if (stride == 1) {
          const int8_t *x = line + shifted;
          WIDE for (ptrdiff_t i = begin; i < end; ++i) sums[i - first] += (int32_t)((int16_t)factor * (int16_t)x[i]);
        } else {
          for (ptrdiff_t i = begin; i < end; ++i) sums[i - first] += factor * line[i * stride + shifted];
        }
      }
    }
}

static int run_conv2d(const work_t *w) {
  const int64_t *p = w->p;
  for (ptrdiff_t image = 0; image < p[C_IMAGES]; ++image)
    for (ptrdiff_t channel = 0; channel < p[C_OUT]; ++channel)
      for (ptrdiff_t out = 0; out < p[C_ROWS]; ++out)
        for (ptrdiff_t first = 0; first < p[C_COLUMNS]; first += CHUNK) {
          int32_t sums[CHUNK] = {0};
          ptrdiff_t count = least(p[C_COLUMNS] - first, CHUNK);
          add_taps(w, image, channel, out, first, count, sums);
          ptrdiff_t place = ((image * p[C_OUT] + channel) * p[C_ROWS] + out) * p[C_COLUMNS] + first;
          finish(sums, count, channel, w, place, p[C_HAS_RESIDUAL] != 0, p[C_LOW], p[C_HIGH]);
        }
  return 0;
}

// --- dense: rows, depth, outputs, low, high, has residual. Buffers: as conv2d. ---

static int check_dense(const work_t *w) {
  const int64_t *p = w->p;
  int64_t data = product_of(2, p), weights = product_of(2, p + 1);
  int64_t made[2] = {p[0], p[2]}, outputs = product_of(2, made);
  return data >= 0 && weights >= 0 && outputs >= 0 && holds(w, 0, data, 1) && holds(w, 1, weights, 1) &&
         check_epilogue(w, p[2], outputs, p[3], p[4], p[5] != 0);
}

static int run_dense(const work_t *w) {
  const int64_t *p = w->p;
  for (ptrdiff_t row = 0; row < p[0]; ++row) {
    const int8_t *x = (const int8_t *)w->data[0] + row * p[1];
    for (ptrdiff_t out = 0; out < p[2]; ++out) {
      const int8_t *weight = (const int8_t *)w->data[1] + out * p[1];
      uint32_t sum = 0;
      const ptrdiff_t depth = p[1];
      WIDE for (ptrdiff_t k = 0; k < depth; ++k) sum += (uint32_t)(int32_t)((int16_t)x[k] * (int16_t)weight[k]);
      int32_t whole = (int32_t)sum;
      finish(&whole, 1, out, w, row * p[2] + out, p[5] != 0, p[3], p[4]);
    }
  }
  return 0;
}

const kernel_t integer_kernels[] = {
    {check_add, run_add},
    {check_multiply, run_multiply},
    {check_pool, run_max_pool},
    {check_pool, run_average_pool},
    {check_global, run_global_average_pool},
    {check_conv2d, run_conv2d},
    {check_dense, run_dense},
    {check_pool_packed, run_pool_packed},
};
const int integer_kernel_count = sizeof integer_kernels / sizeof integer_kernels[0];
