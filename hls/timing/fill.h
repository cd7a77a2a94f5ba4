// SPDX-License-Identifier: Apache-2.0
//
// A LOAD of a two-dimensional block into a buffer: the order of its data and pads, for vta_block_loader's timing.
#ifndef HILT_TIMING_FILL_H
#define HILT_TIMING_FILL_H

#include <algorithm>

#include "bursts.h"
#include "cycle.h"
#include "instruction.h"
#include "memory_channels.h"

namespace vta {

struct LoadedBuffer {
  uint32_t element_bytes, depth;
  bool pads;            // or they are ignored
  uint32_t fault;       // the fault code of an index past it
  uint32_t part_bytes;  // of an element, over one port
};

// Of a weight.
constexpr uint32_t kWgtPartBytes = kWgtBytes / kReadPorts;

// The masters that share the rows of a LOAD of INP: no more than an element has beats, so that one element a cycle, the
// most that is written, is the most that comes.
constexpr uint32_t kInpPorts = std::min(kReadPorts, kInpBytes / kBusBytes);

// Where beats go. Pads are counted in elements, which are written one a cycle.
struct Fill {
  uint32_t log_element_beats;
  uint32_t write_delay;    // cycles from an element's last beat to its write: 1; micro-ops: 0
  uint32_t row_elements;   // with data
  uint64_t elements;       // with data: of the block, or those before the element that is past the buffer
  Cycle lead, gap, trail;  // pads before the first row, between rows, after the last element
  bool past;               // the block ends past the buffer, `trail` + 1 cycles after the last element's write
};

// `fill.elements` may be 0: then `fill.lead` elements are written, all pads, and a fault follows if `past`.
Fill fill_of(const Transfer &transfer, const LoadedBuffer &buffer);
// The pads of a LOAD of INP over several ports, which are written before its data, and its data.
Fill shared_fill_of(const Transfer &transfer, const LoadedBuffer &buffer);
Block block_of(const Transfer &transfer, uint32_t element_bytes);
// Of the elements' first parts.
Block block_of(const Transfer &transfer, const LoadedBuffer &buffer);

}  // namespace vta

#endif
