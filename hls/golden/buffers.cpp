// SPDX-License-Identifier: Apache-2.0

#include "buffers.h"

#include <algorithm>
#include <cstring>

namespace vta {
namespace {

Fault past_the_end(FaultCode code, uint64_t base, uint64_t count, uint32_t depth) {
  if (count == 0 || base + count <= depth) return {};
  return {code, std::max<uint64_t>(base, depth)};
}

// The elements of row y in memory, `dram_base` counting modulo 2^32.
uint64_t row_address(uint64_t address, const Transfer &transfer, uint32_t y, uint32_t element_bytes) {
  return address + uint64_t{uint32_t(transfer.dram_base + y * transfer.x_stride)} * element_bytes;
}

void copy_inp(const uint8_t *bytes, InpElement &element) { std::memcpy(&element, bytes, kInpBytes); }

// The lanes of an element that a LOAD writes: each from a lane at a distance in memory, zero where there is none.
void copy_lanes(const uint8_t *bytes, InpElement &element, const Transfer &transfer) {
  for (uint32_t lane = 0; lane < kBatch; ++lane) {
    if (transfer.lanes_kept >> lane & 1) continue;
    const uint32_t source = lane + static_cast<uint32_t>(lane_distance(transfer));
    if (bytes != nullptr && source < kBatch) {
      std::memcpy(element.value[lane], bytes + source * kBlock, kBlock);
    } else {
      std::memset(element.value[lane], 0, kBlock);
    }
  }
}

void copy_acc(const uint8_t *bytes, AccElement &element) { std::memcpy(&element, bytes, kAccBytes); }

void copy_acc_8bit(const uint8_t *bytes, AccElement &element) {
  for (uint32_t b = 0; b < kBatch; ++b)
    for (uint32_t o = 0; o < kBlock; ++o) element.value[b][o] = static_cast<int8_t>(bytes[b * kBlock + o]);
}

void copy_wgt(const uint8_t *bytes, WgtElement &element) {
  for (uint32_t o = 0; o < kBlock; ++o)
    for (uint32_t i = 0; i < kBlock; ++i) element.value[i / 2][o][i % 2] = static_cast<int8_t>(bytes[o * kBlock + i]);
}

// A block with pads into consecutive elements of `buffer`.
template <typename Element>
void clear(Element *first, uint64_t count) {
  if (count != 0) std::memset(static_cast<void *>(first), 0, count * sizeof(Element));
}

template <typename Element, typename Copy, typename Clear>
Fault load_block(Element *buffer, uint32_t depth, FaultCode past, uint32_t element_bytes, Copy copy, Clear clear,
                 const PhysicalMemory &memory, uint64_t address, const Transfer &transfer, uint64_t &moved) {
  const uint64_t width = uint64_t{transfer.x_pad_0} + transfer.x_size + transfer.x_pad_1;
  const uint64_t height = uint64_t{transfer.y_pad_0} + transfer.y_size + transfer.y_pad_1;
  if (const Fault fault = past_the_end(past, transfer.sram_base, width * height, depth)) return fault;

  Element *next = buffer + transfer.sram_base;
  const auto zeros = [&next, &clear](uint64_t count) {
    clear(next, count);
    next += count;
  };
  zeros(transfer.y_pad_0 * width);
  for (uint32_t y = 0; y < transfer.y_size; ++y) {
    zeros(transfer.x_pad_0);
    if (transfer.x_size != 0) {
      const uint64_t from = row_address(address, transfer, y, element_bytes);
      const uint64_t count = uint64_t{transfer.x_size} * element_bytes;
      const uint8_t *bytes = memory.at(from, count);
      if (bytes == nullptr) return {kDecodeError, memory.first_outside(from)};
      for (uint32_t x = 0; x < transfer.x_size; ++x) copy(bytes + x * element_bytes, *next++);
      moved += count;
    }
    zeros(transfer.x_pad_1);
  }
  zeros(transfer.y_pad_1 * width);
  return {};
}

Transfer without_pads(Transfer transfer) {
  transfer.y_pad_0 = transfer.y_pad_1 = transfer.x_pad_0 = transfer.x_pad_1 = 0;
  return transfer;
}

Transfer one_row(Transfer transfer) {
  transfer = without_pads(transfer);
  transfer.y_size = 1;
  return transfer;
}

Fault load_inp(Buffers &buffers, const PhysicalMemory &memory, uint64_t address, const Transfer &transfer,
               uint64_t &moved) {
  if (!kBands || (transfer.lane_shift | transfer.lanes_kept) == 0)
    return load_block(buffers.inp, kInpDepth, kInpIndex, kInpBytes, copy_inp, clear<InpElement>, memory, address,
                      transfer, moved);
  return load_block(
      buffers.inp, kInpDepth, kInpIndex, kInpBytes,
      [&transfer](const uint8_t *bytes, InpElement &element) { copy_lanes(bytes, element, transfer); },
      [&transfer](InpElement *first, uint64_t count) {
        for (uint64_t n = 0; n < count; ++n) copy_lanes(nullptr, first[n], transfer);
      },
      memory, address, transfer, moved);
}

}  // namespace

Fault load(Buffers &buffers, const PhysicalMemory &memory, uint64_t address, const Transfer &transfer, uint64_t &moved) {
  switch (transfer.memory_type) {
    case kUop:
      return load_block(
          buffers.uop, kUopDepth, kUopIndex, kUopBytes,
          [](const uint8_t *bytes, UopWord &word) { std::memcpy(&word, bytes, kUopBytes); },
          clear<UopWord>, memory, address, one_row(transfer), moved);
    case kWgt:
      return load_block(buffers.wgt, kWgtDepth, kWgtIndex, kWgtBytes, copy_wgt, clear<WgtElement>, memory, address,
                        without_pads(transfer), moved);
    case kInp:
      return load_inp(buffers, memory, address, transfer, moved);
    case kAcc:
      return load_block(buffers.acc, kAccDepth, kAccIndex, kAccBytes, copy_acc, clear<AccElement>, memory, address, transfer,
                        moved);
    default:  // ACC_8BIT: the compute stage lets nothing else through
      return load_block(buffers.acc, kAccDepth, kAccIndex, kAcc8Bytes, copy_acc_8bit, clear<AccElement>, memory, address,
                        transfer, moved);
  }
}

Fault store(Buffers &buffers, const PhysicalMemory &memory, uint64_t address, const Transfer &transfer,
            uint64_t &moved) {
  const uint64_t count = uint64_t{transfer.y_size} * transfer.x_size;
  if (const Fault fault = past_the_end(kOutIndex, transfer.sram_base, count, kOutDepth)) return fault;
  const OutElement *next = buffers.out + transfer.sram_base;
  const uint32_t type = store_type(transfer);
  if (type == kTable) {
    std::memcpy(buffers.table, next, kTableBytes);
    return {};
  }
  for (uint32_t y = 0; y < transfer.y_size && transfer.x_size != 0; ++y) {
    const uint64_t to = row_address(address, transfer, y, kOutBytes);
    const uint64_t row_bytes = uint64_t{transfer.x_size} * kOutBytes;
    uint8_t *bytes = memory.at(to, row_bytes);
    if (bytes == nullptr) return {kDecodeError, memory.first_outside(to)};
    std::memcpy(bytes, next, row_bytes);
    if (type == kThrough) std::transform(bytes, bytes + row_bytes, bytes, [&](uint8_t byte) { return buffers.table[byte]; });
    next += transfer.x_size;
    moved += row_bytes;
  }
  return {};
}

}  // namespace vta
