// SPDX-License-Identifier: Apache-2.0
//
// Sums, differences, products and quotients of float32 along a line. 32-bit ARM has NEON that takes the smallest floats
// for zeros, so VFP computes there, which does not: eight floats are loaded and stored by one instruction.
#ifndef HILT_LINES_H
#define HILT_LINES_H

#include "vfp.h"

#include <stddef.h>

#define LINE_OF_PAIRS(name, operator)                                                                   \
  static inline void name##_plain(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, \
                                  ptrdiff_t n) {                                                        \
    for (ptrdiff_t i = 0; i < n; ++i) y[i] = a[i * sa] operator b[i * sb];                              \
  }

LINE_OF_PAIRS(add, +)
LINE_OF_PAIRS(subtract, -)
LINE_OF_PAIRS(multiply, *)
LINE_OF_PAIRS(divide, /)

#if defined(__arm__) && defined(__ARM_FP)
#define USED "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "memory"

// Both lines are dense, or one is one value for all.
#define LINE(name, op)                                                                                           \
  static void name##_line(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, ptrdiff_t n) {   \
    if (sa == 1 && sb == 1)                                                                                      \
      for (; n >= 8; n -= 8)                                                                                     \
        __asm__ volatile("vldmia %0!, {s0-s7}\nvldmia %1!, {s8-s15}\n" EIGHT(op, LOW, HIGH) "vstmia %2!, {s0-s7}" \
                         : "+r"(a), "+r"(b), "+r"(y)::USED);                                                     \
    else if (sa == 1 && sb == 0)                                                                                 \
      for (; n >= 8; n -= 8)                                                                                     \
        __asm__ volatile("vldmia %0!, {s0-s7}\nvldr s8, [%1]\n" EIGHT(op, LOW, FIRST_HIGH) "vstmia %2!, {s0-s7}"  \
                         : "+r"(a), "+r"(b), "+r"(y)::USED);                                                     \
    else if (sa == 0 && sb == 1)                                                                                 \
      for (; n >= 8; n -= 8)                                                                                     \
        __asm__ volatile("vldmia %1!, {s0-s7}\nvldr s8, [%0]\n" EIGHT(op, FIRST_HIGH, LOW) "vstmia %2!, {s0-s7}"  \
                         : "+r"(a), "+r"(b), "+r"(y)::USED);                                                     \
    name##_plain(a, sa, b, sb, y, n);                                                                            \
  }
LINE(add, "vadd.f32")
LINE(subtract, "vsub.f32")
LINE(multiply, "vmul.f32")
LINE(divide, "vdiv.f32")
#else
// The compiler makes vectors of the three common cases.
#define LINE(name)                                                                                             \
  static void name##_line(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, ptrdiff_t n) { \
    if (sa == 1 && sb == 1)                                                                                    \
      name##_plain(a, 1, b, 1, y, n);                                                                          \
    else if (sa == 1 && sb == 0)                                                                               \
      name##_plain(a, 1, b, 0, y, n);                                                                          \
    else if (sa == 0 && sb == 1)                                                                               \
      name##_plain(a, 0, b, 1, y, n);                                                                          \
    else                                                                                                       \
      name##_plain(a, sa, b, sb, y, n);                                                                        \
  }
LINE(add)
LINE(subtract)
LINE(multiply)
LINE(divide)
#endif

#endif
