// SPDX-License-Identifier: Apache-2.0
//
// The borders between int8 and float32: quantisation, its inverse, and tables of floats.
#include "engine.h"
#include "vector.h"

#include <string.h>

#ifdef __ARM_NEON
#include <arm_neon.h>
#ifndef __aarch64__
#define NEON_32 1
#endif
#endif

// --- table of float32: elements. Buffers: data, entries, target. ---

static int check_table_float(const work_t *w) {
  return w->count == 3 && product_of(1, w->p) >= 0 && holds(w, 0, w->p[0], 1) && holds(w, 1, 256, 4) &&
         holds(w, 2, w->p[0], 4);
}

static int run_table_float(const work_t *w) {
  const float *entries = (const float *)w->data[1] + 128;
  for (ptrdiff_t i = 0; i < w->p[0]; ++i) ((float *)w->data[2])[i] = entries[((const int8_t *)w->data[0])[i]];
  return 0;
}

// --- quantize: elements, 1 where the scale is a power of two; f: scale, a factor by it. Buffers: data, target. ---

static int check_quantize(const work_t *w) {
  return w->count == 2 && product_of(1, w->p) >= 0 && holds(w, 0, w->p[0], 4) && holds(w, 1, w->p[0], 1) &&
         w->f[0] > 0;
}

// Rounds half to even by adding 1.5 * 2^23, whose low byte is 0: the value was clipped before. Of NaN 0.
static inline int8_t rounded(float value) {
  float clipped = value > 127.0f ? 127.0f : value;
  clipped = clipped < -128.0f ? -128.0f : clipped;
  float sum = clipped + 12582912.0f;
  int32_t bits;
  memcpy(&bits, &sum, 4);
  return (int8_t)(value == value ? bits : 0);
}

#ifdef __ARM_NEON
// Four multiples of a scale rounded half to even, clipped to int8 with the next narrowing at the latest; of NaN 0. The
// scale is a power of two from 2^-100 to 2^100: clipped and rounded to its multiples, a value needs no product but that
// with a factor that is not 1.
static inline int16x4_t rounded4(float32x4_t value, float scale, float inverse) {
#ifdef __aarch64__
  (void)scale;
  return vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(value, inverse)));
#else  // a NaN passes as the default one, whose low byte is 0
  if (scale * inverse != 1.0f) value = vmulq_n_f32(value, scale * inverse);
  float32x4_t clipped = vmaxq_f32(vminq_f32(value, vdupq_n_f32(127.0f * scale)), vdupq_n_f32(-128.0f * scale));
  return vmovn_s32(vreinterpretq_s32_f32(vaddq_f32(clipped, vdupq_n_f32(12582912.0f * scale))));
#endif
}

static inline int8x8_t narrowed8(int16x4_t low, int16x4_t high) {
#ifdef __aarch64__
  return vqmovn_s16(vcombine_s16(low, high));
#else
  return vmovn_s16(vcombine_s16(low, high));
#endif
}
#endif

#ifdef __ARM_NEON
static inline void quantize_16(const float *x, int8_t *y, float scale, float inverse) {
  int16x4_t parts[4];
  UNROLLED for (int k = 0; k < 4; ++k) parts[k] = rounded4(vld1q_f32(x + 4 * k), scale, inverse);
  vst1q_s8(y, vcombine_s8(narrowed8(parts[0], parts[1]), narrowed8(parts[2], parts[3])));
}
#endif

void quantize_line(const float *x, int8_t *y, ptrdiff_t count, float scale, float inverse, int exact) {
  ptrdiff_t i = 0;
  if (!exact) {
    for (; i < count; ++i) y[i] = rounded(x[i] / scale);
    return;
  }
#ifdef __ARM_NEON
  for (; i + 16 <= count; i += 16) quantize_16(x + i, y + i, scale, inverse);
  if (i < count && count >= 16) {  // once more, over some that are done
    quantize_16(x + count - 16, y + count - 16, scale, inverse);
    i = count;
  }
#endif
  for (; i < count; ++i) y[i] = rounded(x[i] * inverse);
}

static int run_quantize(const work_t *w) {
  quantize_line((const float *)w->data[0], (int8_t *)w->data[1], w->p[0], (float)w->f[0], (float)w->f[1], w->p[1] != 0);
  return 0;
}

// --- dequantize: elements; f: scale. Buffers: data, target. ---

static int check_dequantize(const work_t *w) {
  return w->count == 2 && product_of(1, w->p) >= 0 && holds(w, 0, w->p[0], 1) && holds(w, 1, w->p[0], 4);
}

static int run_dequantize(const work_t *w) {
  const int8_t *x = (const int8_t *)w->data[0];
  float *y = (float *)w->data[1];
  float scale = (float)w->f[0];
  ptrdiff_t i = 0;
#ifdef NEON_32
  if (scale >= 1e-30f)
    for (; i + 8 <= w->p[0]; i += 8) {
      int16x8_t v = vmovl_s8(vld1_s8(x + i));
      vst1q_f32(y + i, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), scale));
      vst1q_f32(y + i + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(v))), scale));
    }
#endif
  for (; i < w->p[0]; ++i) y[i] = (float)x[i] * scale;
  return 0;
}

const kernel_t border_kernels[] = {
    {check_table_float, run_table_float}, {check_quantize, run_quantize}, {check_dequantize, run_dequantize}};
const int border_kernel_count = sizeof border_kernels / sizeof border_kernels[0];
