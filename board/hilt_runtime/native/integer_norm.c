// SPDX-License-Identifier: Apache-2.0
//
// int8 less a mean, over a deviation, times a factor: integers are summed exactly, results are float32 or int8.
//
// Data are (outer, groups, inner, lanes); channel g * lanes + l is that of group g and lane l. Lanes behind the last
// channel have factors of 0, and do not count.
#include "engine.h"
#include "vector.h"

#include <math.h>

enum { OUTER, GROUPS, INNER, LANES, SHAPE };

#define AT_ONCE 8               // columns
#define MOST_SUMMED (1 << 16)   // squares of int8 in 32 bits
#define MOST_COUNTED (1 << 24)  // elements of a mean: the variance has an exact numerator in 64 bits
#define SUMMED_SHORT 255        // int8 in 16 bits

#ifdef __ARM_NEON
// Loads eight bytes by one instruction: clang takes vld1_s8 of 32-bit ARM for a copy by words.
static inline int8x8_t load_eight(const int8_t *from) {
#if defined(__clang__) && defined(__arm__)
  int8x8_t data;
  __asm__("vld1.8 {%P0}, [%1]" : "=w"(data) : "r"(from), "m"(*(const int8_t(*)[8])from));
  return data;
#else
  return vld1_s8(from);
#endif
}
#endif

typedef struct {
  int64_t sum, squares;
} sums_t;

static ptrdiff_t shorter(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

// Adds `count` values that lie one behind another.
static void add_row(const int8_t *x, ptrdiff_t count, sums_t *to) {
  for (ptrdiff_t here; (here = shorter(count, MOST_SUMMED)) > 0; x += here, count -= here) {
    int32_t sum = 0, squares = 0;
    ptrdiff_t i = 0;
#ifdef __ARM_NEON
    int32x4_t all = vdupq_n_s32(0), all_squares = vdupq_n_s32(0);
    for (; i + 16 <= here; i += 16) {
      const int8x16_t data = vld1q_s8(x + i);
      const int8x8_t low = vget_low_s8(data), high = vget_high_s8(data);
      all = vpadalq_s16(all, vpaddlq_s8(data));
      all_squares = vpadalq_s16(vpadalq_s16(all_squares, vmull_s8(low, low)), vmull_s8(high, high));
    }
    const int32x2_t halves = vadd_s32(vget_low_s32(all), vget_high_s32(all));
    const int32x2_t squared = vadd_s32(vget_low_s32(all_squares), vget_high_s32(all_squares));
    const int32x2_t both = vpadd_s32(halves, squared);
    sum = vget_lane_s32(both, 0), squares = vget_lane_s32(both, 1);
#endif
    for (; i < here; ++i) sum += x[i], squares += x[i] * x[i];
    to->sum += sum, to->squares += squares;
  }
}

// Gives the sums of `columns` columns, AT_ONCE at most, of rows that lie `pitch` apart.
static void sum_columns(const int8_t *x, ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t columns, sums_t to[AT_ONCE]) {
  memset(to, 0, AT_ONCE * sizeof *to);
#ifdef __ARM_NEON
  if (columns == AT_ONCE) {
    for (ptrdiff_t here; (here = shorter(rows, MOST_SUMMED)) > 0; rows -= here) {
      int32x4_t low = vdupq_n_s32(0), high = low, low_squares = low, high_squares = low;
      for (ptrdiff_t left = here, few; (few = shorter(left, SUMMED_SHORT)) > 0; left -= few) {
        int16x8_t part = vdupq_n_s16(0);
        for (ptrdiff_t i = 0; i < few; ++i, x += pitch) {
          const int8x8_t data = load_eight(x);
          const int16x8_t squares = vmull_s8(data, data);
          part = vaddw_s8(part, data);
          low_squares = vaddw_s16(low_squares, vget_low_s16(squares));
          high_squares = vaddw_s16(high_squares, vget_high_s16(squares));
        }
        low = vaddw_s16(low, vget_low_s16(part)), high = vaddw_s16(high, vget_high_s16(part));
      }
      int32_t sums[AT_ONCE], squares[AT_ONCE];
      vst1q_s32(sums, low), vst1q_s32(sums + 4, high);
      vst1q_s32(squares, low_squares), vst1q_s32(squares + 4, high_squares);
      for (int c = 0; c < AT_ONCE; ++c) to[c].sum += sums[c], to[c].squares += squares[c];
    }
    return;
  }
#endif
  for (ptrdiff_t here; (here = shorter(rows, MOST_SUMMED)) > 0; rows -= here) {
    int32_t sums[AT_ONCE] = {0}, squares[AT_ONCE] = {0};
    for (ptrdiff_t i = 0; i < here; ++i, x += pitch)
      for (ptrdiff_t c = 0; c < columns; ++c) sums[c] += x[c], squares[c] += x[c] * x[c];
    for (ptrdiff_t c = 0; c < columns; ++c) to[c].sum += sums[c], to[c].squares += squares[c];
  }
}

// Gives the sums of a pixel's channels, of `groups` rows that lie `pitch` apart.
static sums_t sum_pixel(const int8_t *x, ptrdiff_t pitch, ptrdiff_t groups, ptrdiff_t lanes, ptrdiff_t channels) {
  sums_t made = {0, 0};
#ifdef __ARM_NEON
  if (channels <= MOST_SUMMED && lanes % 16 == 0) {
    static const int8_t there[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    int32x4_t all = vdupq_n_s32(0), squares = all;
    for (ptrdiff_t g = 0; g < groups; ++g, x += pitch)
      for (ptrdiff_t lane = 0, left; lane < lanes && (left = channels - g * lanes - lane) > 0; lane += 16) {
        int8x16_t data = vld1q_s8(x + lane);
        if (left < 16) data = vandq_s8(data, vld1q_s8(there + 16 - left));
        const int8x8_t low = vget_low_s8(data), high = vget_high_s8(data);
        all = vpadalq_s16(all, vpaddlq_s8(data));
        squares = vpadalq_s16(vpadalq_s16(squares, vmull_s8(low, low)), vmull_s8(high, high));
      }
    const int32x2_t halves = vadd_s32(vget_low_s32(all), vget_high_s32(all));
    const int32x2_t both = vpadd_s32(halves, vadd_s32(vget_low_s32(squares), vget_high_s32(squares)));
    made.sum = vget_lane_s32(both, 0), made.squares = vget_lane_s32(both, 1);
    return made;
  }
#endif
  for (ptrdiff_t g = 0; g < groups; ++g, x += pitch) add_row(x, shorter(lanes, channels - g * lanes), &made);
  return made;
}

typedef struct {
  float mean, inverse;  // of the deviation
} means_t;

static means_t means_of(sums_t of, int64_t count, double epsilon) {
  const double n = (double)count;
  double sum, spread;  // n * squares - sum * sum, exact
  if (count <= MOST_SUMMED) {
    sum = (double)(int32_t)of.sum;
    spread = n * (double)(int32_t)of.squares - sum * sum;
  } else {
    sum = (double)of.sum;
    spread = (double)(count * of.squares - of.sum * of.sum);
  }
  return (means_t){(float)(sum / n), (float)(1.0 / sqrt(spread / (n * n) + epsilon))};
}

// --- channel_sums: outer, groups, inner, lanes. Buffers: data, target int64 (outer, groups, lanes, 2): the sum of each
// channel, and that of its squares. ---

static int check_channel_sums(const work_t *w) {
  const int64_t *p = w->p;
  const int64_t elements = product_of(SHAPE, p), shape[] = {p[OUTER], p[GROUPS], p[LANES], 2};
  return w->count == 2 && elements > 0 && holds(w, 0, elements, 1) && holds(w, 1, product_of(4, shape), 8);
}

static int run_channel_sums(const work_t *w) {
  const ptrdiff_t inner = w->p[INNER], lanes = w->p[LANES];
  sums_t *to = (sums_t *)(void *)w->data[1];
  const int8_t *x = (const int8_t *)w->data[0];
  for (ptrdiff_t i = 0; i < w->p[OUTER] * w->p[GROUPS]; ++i, x += inner * lanes, to += lanes) {
    if (lanes == 1) {
      *to = (sums_t){0, 0};
      add_row(x, inner, to);
    }
    for (ptrdiff_t lane = 0; lanes > 1 && lane < lanes; lane += AT_ONCE) {
      const ptrdiff_t here = shorter(lanes - lane, AT_ONCE);
      sums_t columns[AT_ONCE];
      sum_columns(x + lane, lanes, inner, here, columns);
      memcpy(to + lane, columns, (size_t)here * sizeof *to);
    }
  }
  return 0;
}

// --- group_means: outer, room for channels, channels, groups, elements of a channel; f: epsilon. Buffers: sums of
// channels, factors float32 (2, room), target float32 (2, outer, room): means, and factors over the deviation. ---

static int check_group_means(const work_t *w) {
  const int64_t *p = w->p;
  const int64_t made = product_of(2, p);
  return w->count == 3 && made > 0 && in_range(p[2], 1, p[1]) && in_range(p[3], 1, p[2]) && p[2] % p[3] == 0 &&
         in_range(p[4], 1, MOST_COUNTED / (p[2] / p[3])) && holds(w, 0, 2 * made, 8) && holds(w, 1, 2 * p[1], 4) &&
         holds(w, 2, 2 * made, 4);
}

static int run_group_means(const work_t *w) {
  const ptrdiff_t outer = w->p[0], room = w->p[1], channels = w->p[2], size = channels / w->p[3];
  const sums_t *sums = (const sums_t *)(const void *)w->data[0];
  const float *factors = (const float *)(const void *)w->data[1];
  float *means = (float *)(void *)w->data[2], *slopes = means + outer * room;
  for (ptrdiff_t i = 0; i < outer; ++i, sums += room, means += room, slopes += room) {
    for (ptrdiff_t first = 0; first < channels; first += size) {
      sums_t whole = {0, 0};
      for (ptrdiff_t c = first; c < first + size; ++c) whole.sum += sums[c].sum, whole.squares += sums[c].squares;
      const means_t made = means_of(whole, w->p[4] * size, w->f[0]);
      for (ptrdiff_t c = first; c < first + size; ++c) means[c] = made.mean, slopes[c] = made.inverse * factors[c];
    }
    for (ptrdiff_t c = channels; c < room; ++c) means[c] = slopes[c] = 0.0f;
  }
  return 0;
}

// --- pixel_means: outer, groups, inner, lanes, channels, first, end of the pixels; f: epsilon. Buffers: data, target
// float32 (2, outer, inner): means over the channels, and one over the deviation. ---

static int check_pixel_means(const work_t *w) {
  const int64_t *p = w->p;
  const int64_t elements = product_of(SHAPE, p), shape[] = {2, p[OUTER], p[INNER]};
  return w->count == 2 && elements > 0 && in_range(p[4], 1, MOST_COUNTED) && in_range(p[GROUPS], 1, MOST_COUNTED) &&
         in_range(p[GROUPS] * p[LANES] - p[4], 0, p[LANES] - 1) && in_range(p[5], 0, p[6]) &&
         in_range(p[6], 0, p[INNER]) && holds(w, 0, elements, 1) && holds(w, 1, product_of(3, shape), 4);
}

static int run_pixel_means(const work_t *w) {
  const int64_t *p = w->p;
  const ptrdiff_t groups = p[GROUPS], inner = p[INNER], lanes = p[LANES], channels = p[4], end = p[6];
  const int8_t *x = (const int8_t *)w->data[0];
  float *means = (float *)(void *)w->data[1], *inverses = means + p[OUTER] * inner;
  for (ptrdiff_t i = 0; i < p[OUTER]; ++i, x += groups * inner * lanes, means += inner, inverses += inner) {
    for (ptrdiff_t pixel = p[5], here; pixel < end; pixel += here) {
      sums_t sums[AT_ONCE] = {{0, 0}};
      if (lanes == 1) {
        here = shorter(end - pixel, AT_ONCE);
        sum_columns(x + pixel, inner, channels, here, sums);
      } else {
        here = 1;
        sums[0] = sum_pixel(x + pixel * lanes, inner * lanes, groups, lanes, channels);
      }
      for (ptrdiff_t k = 0; k < here; ++k) {
        const means_t made = means_of(sums[k], channels, w->f[0]);
        means[pixel + k] = made.mean, inverses[pixel + k] = made.inverse;
      }
    }
  }
  return 0;
}

// --- normalize: outer, groups, inner, lanes, 1 where each pixel has a mean and else 0, 1 where results are int8 and else
// 0, first, end of the pixels; f: least and largest result. Buffers: data, means, factors float32 (2, groups * lanes),
// target. (data - mean) * slope + added, where the slope is one over the deviation, times the factor. ---

enum { BY_PIXEL = SHAPE, ROUNDED, FIRST, END };

static int check_normalize(const work_t *w) {
  const int64_t *p = w->p;
  const int64_t elements = product_of(SHAPE, p);
  const int64_t shape[] = {2, p[OUTER], p[BY_PIXEL] ? p[INNER] : p[GROUPS], p[BY_PIXEL] ? 1 : p[LANES]};
  const int64_t channels[] = {2, p[GROUPS], p[LANES]};
  return w->count == 4 && elements > 0 && in_range(p[FIRST], 0, p[END]) && in_range(p[END], 0, p[INNER]) &&
         holds(w, 0, elements, 1) && holds(w, 1, product_of(4, shape), 4) && holds(w, 2, product_of(3, channels), 4) &&
         holds(w, 3, elements, p[ROUNDED] ? 1 : 4) && (!p[ROUNDED] || (w->f[0] >= -128 && w->f[1] <= 127));
}

// Pixels of one channel or of several lanes: slopes are without factors, where these are not NULL.
typedef struct {
  const int8_t *x;
  uint8_t *y;
  ptrdiff_t count;
  const float *means, *slopes, *factors, *added;
  float least, most;
} line_t;

#define INLINED static inline __attribute__((always_inline))
#define EVEN 12582912.0f  // 1.5 * 2^23: added, it rounds half to even into the lowest bits

#ifdef __ARM_NEON
typedef struct {
  float32x4_t mean, slope, added;
} four_t;

INLINED float32x4_t normal_of(int16x4_t data, four_t by, float32x4_t least, float32x4_t most) {
  const float32x4_t centred = vsubq_f32(vcvtq_f32_s32(vmovl_s16(data)), by.mean);
  return vminq_f32(vmaxq_f32(vaddq_f32(vmulq_f32(centred, by.slope), by.added), least), most);
}

INLINED int16x4_t even_of(float32x4_t made) {
  return vmovn_s32(vreinterpretq_s32_f32(vaddq_f32(made, vdupq_n_f32(EVEN))));
}

INLINED void eight_of(int8x8_t data, uint8_t *y, four_t low, four_t high, float32x4_t least, float32x4_t most,
                      int rounded) {
  const int16x8_t wide = vmovl_s8(data);
  const float32x4_t first = normal_of(vget_low_s16(wide), low, least, most);
  const float32x4_t second = normal_of(vget_high_s16(wide), high, least, most);
  if (rounded)
    vst1_s8((int8_t *)y, vmovn_s16(vcombine_s16(even_of(first), even_of(second))));
  else
    vst1q_f32((float *)(void *)y, first), vst1q_f32((float *)(void *)y + 4, second);
}
#endif

INLINED void one_of(line_t l, ptrdiff_t i, ptrdiff_t mean, ptrdiff_t factor, int rounded) {
  const float slope = l.factors ? l.slopes[mean] * l.factors[factor] : l.slopes[mean];
  float made = ((float)l.x[i] - l.means[mean]) * slope + l.added[factor];
  made = made > l.least ? made : l.least;
  made = made < l.most ? made : l.most;
  if (rounded)
    ((int8_t *)l.y)[i] = (int8_t)((made + EVEN) - EVEN);
  else
    ((float *)(void *)l.y)[i] = made;
}

// Computes pixels of one channel: means and slopes are those of the first or of each.
INLINED void plane_of(line_t l, int each, int rounded) {
  ptrdiff_t i = 0;
#ifdef __ARM_NEON
  const float32x4_t least = vdupq_n_f32(l.least), most = vdupq_n_f32(l.most);
  four_t low = {vdupq_n_f32(*l.means), vdupq_n_f32(*l.slopes), vdupq_n_f32(*l.added)}, high = low;
  for (; i + 16 <= l.count; i += 16) {
    const int8x16_t data = vld1q_s8(l.x + i);
    UNROLLED for (int half = 0; half < 16; half += 8) {
      if (each) {
        const float32x4_t factor = vdupq_n_f32(*l.factors);
        low.mean = vld1q_f32(l.means + i + half), low.slope = vmulq_f32(vld1q_f32(l.slopes + i + half), factor);
        high.mean = vld1q_f32(l.means + i + half + 4), high.slope = vmulq_f32(vld1q_f32(l.slopes + i + half + 4), factor);
      }
      eight_of(half ? vget_high_s8(data) : vget_low_s8(data), l.y + (rounded ? 1 : 4) * (i + half), low, high, least, most,
               rounded);
    }
  }
#endif
  SCALAR for (; i < l.count; ++i) one_of(l, i, each ? i : 0, 0, rounded);
}

// Computes pixels of `lanes` channels, by eight channels at once: means and slopes are those of each channel, or, with
// factors, of each pixel.
INLINED void lanes_of(line_t l, ptrdiff_t lanes, int by_pixel, int rounded) {
  ptrdiff_t lane = 0;
#ifdef __ARM_NEON
  const float32x4_t least = vdupq_n_f32(l.least), most = vdupq_n_f32(l.most);
  for (; lane + 8 <= lanes; lane += 8) {
    const float *of_channel = by_pixel ? l.factors : l.slopes;
    const float32x4_t first = vld1q_f32(of_channel + lane), second = vld1q_f32(of_channel + lane + 4);
    four_t low = {first, first, vld1q_f32(l.added + lane)}, high = {second, second, vld1q_f32(l.added + lane + 4)};
    if (!by_pixel) low.mean = vld1q_f32(l.means + lane), high.mean = vld1q_f32(l.means + lane + 4);
    const int8_t *x = l.x + lane;
    uint8_t *y = l.y + (rounded ? 1 : 4) * lane;
    for (ptrdiff_t pixel = 0; pixel < l.count; ++pixel, x += lanes, y += (rounded ? 1 : 4) * lanes) {
      if (by_pixel) {
        low.mean = high.mean = vld1q_dup_f32(l.means + pixel);
        const float32x4_t inverse = vld1q_dup_f32(l.slopes + pixel);
        low.slope = vmulq_f32(inverse, first), high.slope = vmulq_f32(inverse, second);
      }
      eight_of(load_eight(x), y, low, high, least, most, rounded);
    }
  }
#endif
  for (; lane < lanes; ++lane)
    SCALAR for (ptrdiff_t pixel = 0; pixel < l.count; ++pixel)
      one_of(l, pixel * lanes + lane, by_pixel ? pixel : lane, lane, rounded);
}

INLINED void normalize(const work_t *w, int rounded) {
  const int64_t *p = w->p;
  const ptrdiff_t groups = p[GROUPS], inner = p[INNER], lanes = p[LANES], first = p[FIRST], count = p[END] - first;
  const ptrdiff_t statistics = p[BY_PIXEL] ? inner : groups * lanes, item = rounded ? 1 : 4;
  const float *means = (const float *)(const void *)w->data[1], *slopes = means + p[OUTER] * statistics;
  const float *factors = (const float *)(const void *)w->data[2], *added = factors + groups * lanes;
  for (ptrdiff_t i = 0; i < p[OUTER] * groups; ++i) {
    const ptrdiff_t image = i / groups * statistics, channel = i % groups * lanes, at = (i * inner + first) * lanes;
    line_t l = {(const int8_t *)w->data[0] + at, w->data[3] + at * item, count, means + image, slopes + image, NULL,
                added + channel, (float)w->f[0], (float)w->f[1]};
    if (p[BY_PIXEL])
      l.means += first, l.slopes += first, l.factors = factors + channel;
    else
      l.means += channel, l.slopes += channel;
    if (lanes == 1 && p[BY_PIXEL])
      plane_of(l, 1, rounded);
    else if (lanes == 1)
      plane_of(l, 0, rounded);
    else if (p[BY_PIXEL])
      lanes_of(l, lanes, 1, rounded);
    else
      lanes_of(l, lanes, 0, rounded);
  }
}

static int run_normalize(const work_t *w) {
  if (w->p[ROUNDED])
    normalize(w, 1);
  else
    normalize(w, 0);
  return 0;
}

const kernel_t integer_norm_kernels[] = {{check_channel_sums, run_channel_sums},
                                          {check_group_means, run_group_means},
                                          {check_pixel_means, run_pixel_means},
                                          {check_normalize, run_normalize}};
const int integer_norm_kernel_count = sizeof integer_norm_kernels / sizeof integer_norm_kernels[0];
