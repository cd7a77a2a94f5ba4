// SPDX-License-Identifier: Apache-2.0
//
// The accelerator's AXI4 masters, and the ports of the memory that they share.
//
// With one read port, masters share the memory's bandwidth and nothing else. With two, the first port has the load
// stage's first master, and the second all others; a port moves at most one beat a cycle, read or written.
#ifndef HILT_SIM_MEMORY_CHANNELS_H
#define HILT_SIM_MEMORY_CHANNELS_H

#include <cstdint>

namespace vta {

constexpr uint32_t kReadPorts = VTA_READ_PORTS;
static_assert(kReadPorts == 1 || kReadPorts == 2);

// In the order in which they take turns: fetch, load, compute, the load stage's second, store.
constexpr uint32_t kFetchMaster = 0, kLoadMaster = 1, kComputeMaster = 2, kWeightsMaster = 3;
constexpr uint32_t kReadMasters = 2 + kReadPorts;
constexpr uint32_t kStoreMaster = kReadMasters;
constexpr uint32_t kMasters = kStoreMaster + 1;

// A channel moves at most one beat a cycle: with one read port each master is one.
constexpr uint32_t kChannels = kReadPorts == 1 ? kMasters : kReadPorts;
constexpr uint32_t channel_of(uint32_t master) {
  return kReadPorts == 1 ? master : master == kLoadMaster ? 0 : 1;
}

// Whose turn it is: channels take turns at the memory's bandwidth, masters at their channel; each begins after the one
// that moved a beat last.
class Turns {
 public:
  // Calls visit(master) for all masters in the order in which they are asked.
  template <typename Visit>
  void in_order(Visit visit) const {
    for (uint32_t n = 0, channel = channel_; n < kChannels; ++n, channel = (channel + 1) % kChannels) {
      if constexpr (kReadPorts == 1) {
        visit(channel);
      } else {
        for (uint32_t m = 0, master = master_[channel]; m < kMasters; ++m, master = (master + 1) % kMasters)
          if (channel_of(master) == channel) visit(master);
      }
    }
  }
  void moved(uint32_t master) {
    channel_ = (channel_of(master) + 1) % kChannels;
    master_[channel_of(master)] = (master + 1) % kMasters;
  }

 private:
  uint32_t channel_ = 0, master_[kChannels]{};
};

}  // namespace vta

#endif
