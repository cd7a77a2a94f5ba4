// SPDX-License-Identifier: Apache-2.0
//
// The reason why the accelerator stopped itself: the fault codes of docs/registers.md.
#ifndef HILT_GOLDEN_FAULT_H
#define HILT_GOLDEN_FAULT_H

#include <cstdint>

#include "vta_registers.h"

namespace vta {

enum FaultCode : uint32_t {
  kNoFault = VTA_FAULT_NONE,
  kDecodeError = VTA_FAULT_DECERR,  // AXI DECERR: an address outside the memory
  kUopIndex = VTA_FAULT_UOP_INDEX,
  kInpIndex = VTA_FAULT_INP_INDEX,
  kWgtIndex = VTA_FAULT_WGT_INDEX,
  kAccIndex = VTA_FAULT_ACC_INDEX,
  kOutIndex = VTA_FAULT_OUT_INDEX,
  kIllegalInstruction = VTA_FAULT_ILLEGAL_INSTRUCTION,
};

struct Fault {
  FaultCode code = kNoFault;
  uint64_t address = 0;  // byte address, element index or instruction number

  explicit operator bool() const { return code != kNoFault; }
};

}  // namespace vta

#endif
