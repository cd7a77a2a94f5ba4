// SPDX-License-Identifier: Apache-2.0
//
// Functions of bytes: tables of 256 entries, of int8 tensors and of pixels, channel by channel; PRelu's two factors.
#include "engine.h"
#include "vector.h"

#include <string.h>

#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

// --- table: elements. Buffers: data, entries (256, of -128 first), target. ---

static int check_table(const work_t *w) {
  return w->count == 3 && product_of(1, w->p) >= 0 && holds(w, 0, w->p[0], 1) && holds(w, 1, 256, 1) &&
         holds(w, 2, w->p[0], 1);
}

#ifdef __aarch64__
typedef struct {
  uint8x16x4_t of[4];
} quarters_t;

static inline quarters_t quarters_of(const uint8_t *entries) {
  quarters_t quarters;
  UNROLLED for (int part = 0; part < 16; ++part) quarters.of[part / 4].val[part % 4] = vld1q_u8(entries + 16 * part);
  return quarters;
}

// Places outside of a quarter of the table give 0, or leave the old element.
static inline uint8x16_t looked_up(quarters_t quarters, uint8x16_t places) {
  uint8x16_t found = vqtbl4q_u8(quarters.of[0], places);
  UNROLLED for (int quarter = 1; quarter < 4; ++quarter)
    found = vqtbx4q_u8(found, quarters.of[quarter], vsubq_u8(places, vdupq_n_u8((uint8_t)(64 * quarter))));
  return found;
}
#endif

static void look_up(const uint8_t *x, const uint8_t *entries, uint8_t *y, ptrdiff_t count) {
  ptrdiff_t i = 0;
#ifdef __aarch64__
  const quarters_t quarters = quarters_of(entries);
  for (; i + 16 <= count; i += 16) vst1q_u8(y + i, looked_up(quarters, vld1q_u8(x + i)));
#endif
  for (; i + 16 <= count; i += 16)
    UNROLLED for (int part = 0; part < 16; part += 4) {  // one load and one store for four
      uint32_t four;
      memcpy(&four, x + i + part, 4);
      uint32_t found = entries[four & 255] | (uint32_t)entries[four >> 8 & 255] << 8 |
                       (uint32_t)entries[four >> 16 & 255] << 16 | (uint32_t)entries[four >> 24] << 24;
      memcpy(y + i + part, &found, 4);
    }
  for (; i < count; ++i) y[i] = entries[x[i]];
}

static int run_table(const work_t *w) {
  uint8_t entries[256];
  memcpy(entries, w->data[1] + 128, 128);
  memcpy(entries + 128, w->data[1], 128);
  look_up(w->data[0], entries, w->data[2], w->p[0]);
  return 0;
}

// --- pixel_table: outer, channels, inner. Buffers: data, entries (channels, 256, of 0 first), target. ---

static int check_pixel_table(const work_t *w) {
  int64_t elements = product_of(3, w->p);
  return w->count == 3 && elements >= 0 && in_range(w->p[1], 1, 65536) && holds(w, 0, elements, 1) &&
         holds(w, 1, 256 * w->p[1], 1) && holds(w, 2, elements, 1);
}

// Pixels whose channels lie beside each other.
static void look_up_lines(const uint8_t *x, const uint8_t *entries, uint8_t *y, ptrdiff_t pixels, ptrdiff_t channels) {
  ptrdiff_t i = 0;
#ifdef __aarch64__
  for (; channels == 3 && i + 16 <= pixels; i += 16) {
    uint8x16x3_t colours = vld3q_u8(x + 3 * i);
    UNROLLED for (int c = 0; c < 3; ++c) colours.val[c] = looked_up(quarters_of(entries + 256 * c), colours.val[c]);
    vst3q_u8(y + 3 * i, colours);
  }
#endif
  for (; channels == 3 && i < pixels; ++i) {
    const uint8_t *pixel = x + 3 * i;
    uint8_t red = entries[pixel[0]], green = entries[256 + pixel[1]], blue = entries[512 + pixel[2]];
    uint8_t *target = y + 3 * i;
    target[0] = red, target[1] = green, target[2] = blue;
  }
  for (; i < pixels; ++i)
    for (ptrdiff_t c = 0; c < channels; ++c) y[i * channels + c] = entries[256 * c + x[i * channels + c]];
}

static int run_pixel_table(const work_t *w) {
  const ptrdiff_t outer = w->p[0], channels = w->p[1], inner = w->p[2];
  const uint8_t *x = w->data[0], *entries = w->data[1];
  uint8_t *y = w->data[2];
  if (channels == 1) {
    look_up(x, entries, y, outer * inner);
  } else if (inner == 1) {
    look_up_lines(x, entries, y, outer, channels);
  } else {
    for (ptrdiff_t i = 0; i < outer * channels; ++i)
      look_up(x + i * inner, entries + 256 * (i % channels), y + i * inner, inner);
  }
  return 0;
}

// --- prelu: outer, groups, inner, lanes, left shift, number to add to the products. Buffers: data (outer, groups, inner,
// lanes), factors (groups, 2, lanes) of 2^-15, those of data from 0 on first, target. ---

static int check_prelu(const work_t *w) {
  const int64_t *p = w->p;
  const int64_t elements = product_of(4, p);
  return w->count == 3 && elements >= 0 && in_range(p[4], 0, 8) && in_range(p[5], -256, 256) &&
         in_range(p[1], 0, 65536) && in_range(p[3], 0, 65536) && holds(w, 0, elements, 1) &&
         holds(w, 1, 2 * p[1] * p[3], 2) && holds(w, 2, elements, 1);
}

// What all channels have in common.
typedef struct {
  int left, offset;
} prelu_t;

static inline int8_t prelu_of(int8_t data, int16_t positive, int16_t negative, prelu_t all) {
  const int32_t product = (data * (1 << all.left) * (data < 0 ? negative : positive) + (1 << 14)) >> 15;
  const int32_t made = product + all.offset;
  return (int8_t)(made < -128 ? -128 : made > 127 ? 127 : made);
}

#ifdef __ARM_NEON
static inline int8x8_t prelu_of_8(int8x8_t data, int16x8_t positive, int16x8_t negative, prelu_t all) {
  const int16x8_t wide = vmovl_s8(data);
  const int16x8_t factor = vbslq_s16(vreinterpretq_u16_s16(vshrq_n_s16(wide, 15)), negative, positive);
  const int16x8_t product = vqrdmulhq_s16(vshlq_s16(wide, vdupq_n_s16((int16_t)all.left)), factor);
  return vqmovn_s16(vqaddq_s16(product, vdupq_n_s16((int16_t)all.offset)));
}

static inline void prelu_16(const int8_t *x, const int16x8_t factors[4], prelu_t all, int8_t *y) {
  const int8x16_t data = vld1q_s8(x);
  const int8x8_t low = prelu_of_8(vget_low_s8(data), factors[0], factors[2], all);
  const int8x8_t high = prelu_of_8(vget_high_s8(data), factors[1], factors[3], all);
  vst1q_s8(y, vcombine_s8(low, high));
}
#endif

// One channel: its elements lie behind one another.
static void prelu_plane(const int8_t *x, const int16_t *factors, prelu_t all, int8_t *y, ptrdiff_t count) {
  const int16_t positive = factors[0], negative = factors[1];
  ptrdiff_t i = 0;
#ifdef __ARM_NEON
  const int16x8_t first = vdupq_n_s16(positive), second = vdupq_n_s16(negative);
  const int16x8_t both[4] = {first, first, second, second};
  for (; i + 16 <= count; i += 16) prelu_16(x + i, both, all, y + i);
#endif
  for (; i < count; ++i) y[i] = prelu_of(x[i], positive, negative, all);
}

// Lanes of channels beside each other.
static void prelu_lanes(const int8_t *x, const int16_t *factors, prelu_t all, int8_t *y, ptrdiff_t count,
                        ptrdiff_t lanes) {
  ptrdiff_t lane = 0;
#ifdef __ARM_NEON
  for (; lane + 16 <= lanes; lane += 16) {
    const int16_t *positive = factors + lane, *negative = positive + lanes;
    const int16x8_t here[4] = {vld1q_s16(positive), vld1q_s16(positive + 8), vld1q_s16(negative), vld1q_s16(negative + 8)};
    for (ptrdiff_t i = lane; i < count * lanes; i += lanes) prelu_16(x + i, here, all, y + i);
  }
#endif
  if (lane < lanes)
    for (ptrdiff_t i = 0; i < count; ++i)
      for (ptrdiff_t l = lane; l < lanes; ++l)
        y[i * lanes + l] = prelu_of(x[i * lanes + l], factors[l], factors[lanes + l], all);
}

static int run_prelu(const work_t *w) {
  const ptrdiff_t outer = w->p[0], groups = w->p[1], inner = w->p[2], lanes = w->p[3];
  const prelu_t all = {(int)w->p[4], (int)w->p[5]};
  const int16_t *factors = (const int16_t *)(const void *)w->data[1];
  for (ptrdiff_t i = 0; i < outer * groups; ++i) {
    const int8_t *x = (const int8_t *)w->data[0] + i * inner * lanes;
    const int16_t *own = factors + i % groups * 2 * lanes;
    int8_t *y = (int8_t *)w->data[2] + i * inner * lanes;
    if (lanes == 1)
      prelu_plane(x, own, all, y, inner);
    else
      prelu_lanes(x, own, all, y, inner, lanes);
  }
  return 0;
}

const kernel_t look_up_kernels[] = {
    {check_table, run_table}, {check_pixel_table, run_pixel_table}, {check_prelu, run_prelu}};
const int look_up_kernel_count = sizeof look_up_kernels / sizeof look_up_kernels[0];
