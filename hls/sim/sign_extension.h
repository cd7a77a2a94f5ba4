// SPDX-License-Identifier: Apache-2.0
//
// Verilator's sign extension as the compiler knows it, and its code: one instruction, and a vector's where a loop
// is vectorised. Verilator's own takes three, and compares in 64 bits. Included before the generated code.
#ifndef HILT_SIM_SIGN_EXTENSION_H
#define HILT_SIM_SIGN_EXTENSION_H

#include "verilated.h"

namespace vta {

inline IData extend_sign(int bits, IData value) {
  if (bits == 8) return static_cast<IData>(static_cast<int8_t>(value));  // shifts are not vectorised as well
  return static_cast<IData>(static_cast<int32_t>(value << (32 - bits)) >> (32 - bits));
}

inline int32_t as_signed(int bits, IData value) { return static_cast<int32_t>(extend_sign(bits, value)); }

inline IData shift_right_signed(int to_bits, int bits, IData value, IData by) {
  const auto shifted = static_cast<IData>(as_signed(bits, value) >> (by < 32 ? by : 31));
  return to_bits < 32 ? shifted & ((1u << to_bits) - 1) : shifted;
}

inline QData extend_sign_long(int bits, QData value) {
  return static_cast<QData>(static_cast<int64_t>(value << (64 - bits)) >> (64 - bits));
}

}  // namespace vta

#define VL_EXTENDS_II(to_bits, bits, value) vta::extend_sign(bits, value)
#define VL_EXTENDS_QI(to_bits, bits, value) vta::extend_sign_long(bits, value)
#define VL_EXTENDS_QQ(to_bits, bits, value) vta::extend_sign_long(bits, value)
#define VL_MULS_III(bits, left, right) (vta::extend_sign(bits, left) * vta::extend_sign(bits, right))
#define VL_SHIFTRS_III(to_bits, bits, by_bits, value, by) vta::shift_right_signed(to_bits, bits, value, by)
#define VL_LTS_III(bits, left, right) (vta::as_signed(bits, left) < vta::as_signed(bits, right))
#define VL_LTES_III(bits, left, right) (vta::as_signed(bits, left) <= vta::as_signed(bits, right))
#define VL_GTS_III(bits, left, right) (vta::as_signed(bits, left) > vta::as_signed(bits, right))
#define VL_GTES_III(bits, left, right) (vta::as_signed(bits, left) >= vta::as_signed(bits, right))

#endif
