// Verilator's sign extension as the compiler knows it: one instruction, and a vector's where a loop is vectorised.
// Verilator's own takes three: a seventh of all instructions of a cycle. Included before the generated code.
#ifndef HILT_SIM_SIGN_EXTENSION_H
#define HILT_SIM_SIGN_EXTENSION_H

#include "verilated.h"

namespace vta {

inline IData extend_sign(int bits, IData value) {
  if (bits == 8) return static_cast<IData>(static_cast<int8_t>(value));  // shifts are not vectorised as well
  return static_cast<IData>(static_cast<int32_t>(value << (32 - bits)) >> (32 - bits));
}

inline QData extend_sign_long(int bits, QData value) {
  return static_cast<QData>(static_cast<int64_t>(value << (64 - bits)) >> (64 - bits));
}

}  // namespace vta

#define VL_EXTENDS_II(to_bits, bits, value) vta::extend_sign(bits, value)
#define VL_EXTENDS_QI(to_bits, bits, value) vta::extend_sign_long(bits, value)
#define VL_EXTENDS_QQ(to_bits, bits, value) vta::extend_sign_long(bits, value)

#endif
