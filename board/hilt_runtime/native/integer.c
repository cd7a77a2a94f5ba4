// SPDX-License-Identifier: Apache-2.0
//
// hilt's integer operators: exact, with VTA's rounding, wrap and clip.
#include "integer.h"
#include "vector.h"

#include <string.h>

#ifdef __ARM_NEON
#include <arm_neon.h>
#ifndef __aarch64__
#define NEON_32 1
#endif
#endif

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
    {check_conv2d, run_conv2d},
    {check_dense, run_dense},
};
const int integer_kernel_count = sizeof integer_kernels / sizeof integer_kernels[0];
