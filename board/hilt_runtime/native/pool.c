// SPDX-License-Identifier: Apache-2.0
//
// Maxima and means of windows of int8: exact, with VTA's rounding and clip.
#include "integer.h"
#include "vector.h"

#include <math.h>
#include <string.h>

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

const kernel_t pool_kernels[] = {
    {check_pool, run_max_pool},
    {check_pool, run_average_pool},
    {check_global, run_global_average_pool},
    {check_pool_packed, run_pool_packed},
};
const int pool_kernel_count = sizeof pool_kernels / sizeof pool_kernels[0];
