// SPDX-License-Identifier: Apache-2.0
//
// Sixteen bytes at a time: NEON, SSE2, or plain C.
#ifndef HILT_VECTOR_H
#define HILT_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

// NEON of 32-bit ARM takes the smallest floats for zeros: clang must not use it for what they decide.
#if defined(__clang__) && defined(__arm__)
#define SCALAR _Pragma("clang loop vectorize(disable) interleave(disable)")
#else
#define SCALAR
#endif

#if defined(__ARM_NEON) || defined(__ARM_NEON__)
#include <arm_neon.h>
typedef uint8x16_t bytes16;
static inline bytes16 load16(const uint8_t *from) { return vld1q_u8(from); }
static inline void store16(uint8_t *to, bytes16 value) { vst1q_u8(to, value); }
static inline bytes16 and16(bytes16 a, bytes16 b) { return vandq_u8(a, b); }
static inline void zip16(bytes16 a, bytes16 b, bytes16 *low, bytes16 *high) {
  uint8x16x2_t zipped = vzipq_u8(a, b);
  *low = zipped.val[0];
  *high = zipped.val[1];
}
// Sixteen sums of 16 bits, to which sixteen int8 are added.
typedef struct {
  int16x8_t low, high;
} sums16;
static inline void add16(sums16 *sums, const int8_t *x) {
  const int8x16_t bytes = vld1q_s8(x);
  sums->low = vaddw_s8(sums->low, vget_low_s8(bytes));
  sums->high = vaddw_s8(sums->high, vget_high_s8(bytes));
}
static inline void join16(sums16 *sums, const int16_t *x) {
  sums->low = vaddq_s16(sums->low, vld1q_s16(x));
  sums->high = vaddq_s16(sums->high, vld1q_s16(x + 8));
}
#elif defined(__SSE2__)
#include <emmintrin.h>
typedef __m128i bytes16;
static inline bytes16 load16(const uint8_t *from) { return _mm_loadu_si128((const __m128i *)from); }
static inline void store16(uint8_t *to, bytes16 value) { _mm_storeu_si128((__m128i *)to, value); }
static inline bytes16 and16(bytes16 a, bytes16 b) { return _mm_and_si128(a, b); }
static inline void zip16(bytes16 a, bytes16 b, bytes16 *low, bytes16 *high) {
  *low = _mm_unpacklo_epi8(a, b);
  *high = _mm_unpackhi_epi8(a, b);
}
typedef struct {
  __m128i low, high;
} sums16;
static inline void add16(sums16 *sums, const int8_t *x) {
  const __m128i bytes = _mm_loadu_si128((const __m128i *)x);
  sums->low = _mm_add_epi16(sums->low, _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8));
  sums->high = _mm_add_epi16(sums->high, _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8));
}
static inline void join16(sums16 *sums, const int16_t *x) {
  sums->low = _mm_add_epi16(sums->low, _mm_loadu_si128((const __m128i *)x));
  sums->high = _mm_add_epi16(sums->high, _mm_loadu_si128((const __m128i *)(x + 8)));
}
#else
typedef struct {
  uint8_t byte[16];
} bytes16;
static inline bytes16 load16(const uint8_t *from) {
  bytes16 value;
  memcpy(&value, from, 16);
  return value;
}
static inline void store16(uint8_t *to, bytes16 value) { memcpy(to, &value, 16); }
static inline bytes16 and16(bytes16 a, bytes16 b) {
  for (int i = 0; i < 16; ++i) a.byte[i] &= b.byte[i];
  return a;
}
static inline void zip16(bytes16 a, bytes16 b, bytes16 *low, bytes16 *high) {
  for (int i = 0; i < 8; ++i) {
    low->byte[2 * i] = a.byte[i];
    low->byte[2 * i + 1] = b.byte[i];
    high->byte[2 * i] = a.byte[8 + i];
    high->byte[2 * i + 1] = b.byte[8 + i];
  }
}
typedef struct {
  int16_t lane[16];
} sums16;
static inline void add16(sums16 *sums, const int8_t *x) {
  for (int i = 0; i < 16; ++i) sums->lane[i] = (int16_t)(sums->lane[i] + x[i]);
}
static inline void join16(sums16 *sums, const int16_t *x) {
  for (int i = 0; i < 16; ++i) sums->lane[i] = (int16_t)(sums->lane[i] + x[i]);
}
#endif

// Transposes 16 x 16 bytes in registers: four rounds of zips of the rows i and i + 8.
static inline void transpose16(bytes16 rows[16]) {
  bytes16 other[16];
  UNROLLED for (int i = 0; i < 8; ++i) zip16(rows[i], rows[i + 8], &other[2 * i], &other[2 * i + 1]);
  UNROLLED for (int i = 0; i < 8; ++i) zip16(other[i], other[i + 8], &rows[2 * i], &rows[2 * i + 1]);
  UNROLLED for (int i = 0; i < 8; ++i) zip16(rows[i], rows[i + 8], &other[2 * i], &other[2 * i + 1]);
  UNROLLED for (int i = 0; i < 8; ++i) zip16(other[i], other[i + 8], &rows[2 * i], &rows[2 * i + 1]);
}

#endif
