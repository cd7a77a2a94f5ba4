// SPDX-License-Identifier: Apache-2.0

#include "fill.h"

#include <algorithm>

namespace vta {
namespace {

uint32_t log2_floor(uint32_t value) { return value <= 1 ? 0 : 1 + log2_floor(value / 2); }

}  // namespace

Fill fill_of(const Transfer &transfer, const LoadedBuffer &buffer) {
  const uint64_t left = buffer.pads ? transfer.x_pad_0 : 0, right = buffer.pads ? transfer.x_pad_1 : 0;
  const uint64_t top = buffer.pads ? transfer.y_pad_0 : 0, bottom = buffer.pads ? transfer.y_pad_1 : 0;
  const uint64_t columns = transfer.x_size, rows = transfer.y_size;
  const uint64_t width = left + columns + right;
  const uint64_t positions = width * (top + rows + bottom);
  const uint64_t room = buffer.depth - std::min(transfer.sram_base, buffer.depth);

  Fill fill{};
  fill.log_element_beats = log2_floor(buffer.part_bytes / kBusBytes);
  fill.write_delay = 1;
  fill.row_elements = transfer.x_size;
  fill.elements = rows * columns;
  fill.gap = static_cast<Cycle>(left + right);
  fill.past = positions > room;
  const uint64_t end = std::min(positions, room);  // the first position that is not written
  if (fill.past) {
    // Elements with data before `end`.
    const uint64_t row = end / width, column = end % width;
    const bool within = row >= top && row < top + rows;
    fill.elements = std::min(row - std::min(row, top), rows) * columns +
                    (within ? std::min(column - std::min(column, left), columns) : 0);
  }
  if (fill.elements == 0) {
    fill.lead = static_cast<Cycle>(end);
    return fill;
  }
  fill.lead = static_cast<Cycle>(top * width + left);
  if (fill.past) {
    const uint64_t last = fill.elements - 1;
    fill.trail = static_cast<Cycle>(end - ((top + last / columns) * width + left + last % columns) - 1);
  } else {
    fill.trail = static_cast<Cycle>(right + bottom * width);
  }
  return fill;
}

Fill shared_fill_of(const Transfer &transfer, const LoadedBuffer &buffer) {
  const uint64_t width = uint64_t{transfer.x_pad_0} + transfer.x_size + transfer.x_pad_1;
  const uint64_t positions = width * (uint64_t{transfer.y_pad_0} + transfer.y_size + transfer.y_pad_1);
  Fill fill{};
  fill.log_element_beats = log2_floor(buffer.part_bytes / kBusBytes);
  fill.write_delay = 1;
  fill.row_elements = transfer.x_size;
  fill.elements = uint64_t{transfer.x_size} * transfer.y_size;
  fill.lead = static_cast<Cycle>(positions - fill.elements);
  fill.past = positions > 0 && transfer.sram_base + positions > buffer.depth;
  return fill;
}

Block block_of(const Transfer &transfer, uint32_t element_bytes) {
  return {uint64_t{transfer.dram_base} * element_bytes, uint64_t{transfer.x_size} * element_bytes / kBusBytes,
          transfer.y_size, uint64_t{transfer.x_stride} * element_bytes};
}

Block block_of(const Transfer &transfer, const LoadedBuffer &buffer) {
  if (buffer.part_bytes == buffer.element_bytes) return block_of(transfer, buffer.element_bytes);
  const uint64_t bytes = buffer.element_bytes;
  return {transfer.dram_base * bytes, buffer.part_bytes / kBusBytes, transfer.x_size, bytes,
          transfer.y_size, transfer.x_stride * bytes};
}

}  // namespace vta
