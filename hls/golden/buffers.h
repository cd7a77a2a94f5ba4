// SPDX-License-Identifier: Apache-2.0
//
// The on-chip buffers, and the effects of LOAD and STORE on them.
//
// As the public HLS design has it (TVM_FACTS.md section 3): WGT loads take no padding; a UOP load is one row of x_size
// whatever y_size says; pads are written even where x_size is 0; `out` is written by GEMM and ALU alone, so that a
// STORE after an ACC load sends the previous contents.
//
// An instruction's indices are checked before it moves anything: a block that would pass the end of its buffer faults
// with the first index past the end. A block of no elements faults never. Rows then move in order, and the first one
// that is not all memory ends the run with DECERR and the first byte outside.
#ifndef HILT_GOLDEN_BUFFERS_H
#define HILT_GOLDEN_BUFFERS_H

#include <cstdint>
#include <memory>

#include "fault.h"
#include "instruction.h"
#include "physical_memory.h"
#include "parameters.h"

namespace vta {

struct InpElement {
  int8_t value[kBatch][kBlock];
};

// Two input channels side by side for every output channel, widened: a multiply of pairs is one vector instruction.
struct WgtElement {
  int16_t value[kBlock / 2][kBlock][2];
};

struct AccElement {
  int32_t value[kBatch][kBlock];
};

struct OutElement {
  int8_t value[kBatch][kBlock];
};

struct Buffers {
  UopWord uop[kUopDepth];
  alignas(64) InpElement inp[kInpDepth];
  alignas(64) WgtElement wgt[kWgtDepth];
  alignas(64) AccElement acc[kAccDepth];
  alignas(64) OutElement out[kOutDepth];
  uint8_t table[kTableBytes];  // kept through a soft reset, as the buffers are
};

// Moves one block from or to memory, or to the table; `address` is the address register of its memory type. Adds the bytes to `moved`.
Fault load(Buffers &buffers, const PhysicalMemory &memory, uint64_t address, const Transfer &transfer, uint64_t &moved);
Fault store(Buffers &buffers, const PhysicalMemory &memory, uint64_t address, const Transfer &transfer,
            uint64_t &moved);

}  // namespace vta

#endif
