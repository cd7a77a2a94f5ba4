// SPDX-License-Identifier: Apache-2.0
//
// Functions of bytes as tables of 256 entries: of int8 tensors, and of pixels, channel by channel.
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

const kernel_t look_up_kernels[] = {{check_table, run_table}, {check_pixel_table, run_pixel_table}};
const int look_up_kernel_count = sizeof look_up_kernels / sizeof look_up_kernels[0];
