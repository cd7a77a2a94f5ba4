// SPDX-License-Identifier: Apache-2.0
//
// A queue in a fixed array; Size is a power of two that its user never exceeds.
#ifndef HILT_TIMING_RING_H
#define HILT_TIMING_RING_H

#include <array>
#include <cstdint>

namespace vta {

template <typename Entry, uint32_t Size>
class Ring {
  static_assert((Size & (Size - 1)) == 0);

 public:
  bool empty() const { return begin_ == end_; }
  void clear() { begin_ = end_ = 0; }
  void push(const Entry &entry) { entries_[end_++ % Size] = entry; }
  void pop() { ++begin_; }
  Entry &front() { return entries_[begin_ % Size]; }

 private:
  std::array<Entry, Size> entries_;
  uint32_t begin_ = 0, end_ = 0;
};

}  // namespace vta

#endif
