// Why the accelerator stopped itself: the codes of docs/architecture.md, register 0x54.
#ifndef HILT_GOLDEN_FAULT_H
#define HILT_GOLDEN_FAULT_H

#include <cstdint>

namespace vta {

enum FaultCode : uint32_t {
  kNoFault = 0,
  kDecodeError = 2,  // AXI DECERR: an address outside the memory
  kUopIndex = 3,
  kInpIndex = 4,
  kWgtIndex = 5,
  kAccIndex = 6,
  kOutIndex = 7,
  kIllegalInstruction = 8,
};

struct Fault {
  FaultCode code = kNoFault;
  uint64_t address = 0;  // byte address, element index or instruction number

  explicit operator bool() const { return code != kNoFault; }
};

}  // namespace vta

#endif
