// SPDX-License-Identifier: Apache-2.0

#include "uop_buffer.h"

#include <algorithm>

namespace vta {

void UopBuffer::clear() {
  for (auto *fields : {&dst_, &src_, &wgt_}) std::fill_n(fields->begin(), loaded_, 0);
  loaded_ = 0;
  ++version_;
}

void UopBuffer::load(const UopWord *words, uint32_t count, uint32_t sram_base) {
  uint32_t *dst = dst_.data() + sram_base, *src = src_.data() + sram_base, *wgt = wgt_.data() + sram_base;
  for (uint32_t n = 0; n < count; ++n) {
    const MicroOp uop = decode_uop(words[n]);
    dst[n] = uop.dst;
    src[n] = uop.src;
    wgt[n] = uop.wgt;
  }
  loaded_ = std::max(loaded_, sram_base + count);
  ++version_;
}

void UopBuffer::load_zeros(uint32_t count, uint32_t sram_base) {
  for (auto *fields : {&dst_, &src_, &wgt_}) std::fill_n(fields->begin() + sram_base, count, 0);
  ++version_;
}

UopRange UopBuffer::range(uint32_t begin, uint32_t end) const {
  UopRange range{0, 0, 0, false};
  for (uint32_t n = begin; n < end; ++n) {
    range.max_dst = std::max(range.max_dst, dst_[n]);
    range.max_src = std::max(range.max_src, src_[n]);
    range.max_wgt = std::max(range.max_wgt, wgt_[n]);
  }
  uint32_t near = 0;
  for (uint32_t n = begin + 1; n < end; ++n) near |= dst_[n] == dst_[n - 1];
  for (uint32_t n = begin + 2; n < end; ++n) near |= dst_[n] == dst_[n - 2];
  range.near = near != 0;
  return range;
}

}  // namespace vta
