// SPDX-License-Identifier: Apache-2.0
//
// The memory behind the AXI ports: [base, base + size) of zeroed bytes, taken from the system page by page.
#ifndef HILT_SIM_PHYSICAL_MEMORY_H
#define HILT_SIM_PHYSICAL_MEMORY_H

#include <sys/mman.h>

#include <cstdint>

namespace vta {

class PhysicalMemory {
 public:
  PhysicalMemory(uint64_t base, uint64_t size) : base_(base), size_(size) {
    void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bytes_ = mapped == MAP_FAILED ? nullptr : static_cast<uint8_t *>(mapped);
  }
  ~PhysicalMemory() {
    if (bytes_ != nullptr) munmap(bytes_, size_);
  }
  PhysicalMemory(const PhysicalMemory &) = delete;
  PhysicalMemory &operator=(const PhysicalMemory &) = delete;

  // Null when the system gave none.
  uint8_t *bytes() const { return bytes_; }

  // The bytes [address, address + count), or null where they are not all memory.
  uint8_t *at(uint64_t address, uint64_t count) const {
    const bool inside = address >= base_ && count <= size_ && address - base_ <= size_ - count;
    return inside ? bytes_ + (address - base_) : nullptr;
  }

  // The first of the bytes [address, address + count) that is not memory; only for a range that `at` refused.
  uint64_t first_outside(uint64_t address) const {
    return address < base_ || address - base_ >= size_ ? address : base_ + size_;
  }

 private:
  uint64_t base_, size_;
  uint8_t *bytes_;
};

}  // namespace vta

#endif
