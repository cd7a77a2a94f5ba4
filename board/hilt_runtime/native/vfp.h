// SPDX-License-Identifier: Apache-2.0
//
// VFP of 32-bit ARM on eight float32 at once, s0 to s7: its NEON takes the smallest floats for zeros.
#ifndef HILT_VFP_H
#define HILT_VFP_H

#define EIGHT(op, left, right)                                                                      \
  op " s0, " left(0) ", " right(0) "\n" op " s1, " left(1) ", " right(1) "\n"                       \
  op " s2, " left(2) ", " right(2) "\n" op " s3, " left(3) ", " right(3) "\n"                       \
  op " s4, " left(4) ", " right(4) "\n" op " s5, " left(5) ", " right(5) "\n"                       \
  op " s6, " left(6) ", " right(6) "\n" op " s7, " left(7) ", " right(7) "\n"
#define LOW(i) "s" #i
#define HIGH_0 "s8"
#define HIGH_1 "s9"
#define HIGH_2 "s10"
#define HIGH_3 "s11"
#define HIGH_4 "s12"
#define HIGH_5 "s13"
#define HIGH_6 "s14"
#define HIGH_7 "s15"
#define HIGH(i) HIGH_##i
#define FIRST_HIGH(i) "s8"

#endif
