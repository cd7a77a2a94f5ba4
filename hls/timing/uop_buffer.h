// SPDX-License-Identifier: Apache-2.0
//
// The micro-op buffer: fields of micro-ops, and what GEMM and ALU timing asks of a range of them.
#ifndef HILT_TIMING_UOP_BUFFER_H
#define HILT_TIMING_UOP_BUFFER_H

#include <cstdint>
#include <vector>

#include "instruction.h"

namespace vta {

// Of the micro-ops [begin, end).
struct UopRange {
  uint32_t max_dst, max_src, max_wgt;
  bool near;  // two with the same destination are next to each other, or have one between them
};

class UopBuffer {
 public:
  UopBuffer() : dst_(kUopDepth), src_(kUopDepth), wgt_(kUopDepth) {}

  // As at power-on: zeros.
  void clear();
  // Micro-ops that lie at `words`, to `sram_base` on.
  void load(const UopWord *words, uint32_t count, uint32_t sram_base);
  void load_zeros(uint32_t count, uint32_t sram_base);

  // Changes with every load: ranges with the same version have the same contents.
  uint64_t version() const { return version_; }
  UopRange range(uint32_t begin, uint32_t end) const;
  const uint32_t *dst() const { return dst_.data(); }
  const uint32_t *src() const { return src_.data(); }
  const uint32_t *wgt() const { return wgt_.data(); }

 private:
  std::vector<uint32_t> dst_, src_, wgt_;
  uint32_t loaded_ = 0;  // past it, all is zero
  uint64_t version_ = 0;
};

}  // namespace vta

#endif
