// SPDX-License-Identifier: Apache-2.0
//
// The accelerator's AXI4 masters, and the ports of the memory that they share.
//
// With one read port, masters share the memory's bandwidth and nothing else. With more, each has a master of the load
// stage, the first that of the inputs; the others share them: with two, all are at the second port; with four, fetch is
// at the second, compute at the third, store at the fourth, whose master has no rows of LOADs of three rows or fewer. A
// port moves at most one beat a cycle, read or written.
#ifndef HILT_SIM_MEMORY_CHANNELS_H
#define HILT_SIM_MEMORY_CHANNELS_H

#include <cstdint>

namespace vta {

constexpr uint32_t kReadPorts = VTA_READ_PORTS;
static_assert(kReadPorts == 1 || kReadPorts == 2 || kReadPorts == 4);

// In the order in which they take turns: fetch, load, compute, the load stage's others, store.
constexpr uint32_t kFetchMaster = 0, kLoadMaster = 1, kComputeMaster = 2, kWeightsMaster = 3;
constexpr uint32_t kReadMasters = 2 + kReadPorts;
constexpr uint32_t kStoreMaster = kReadMasters;
constexpr uint32_t kMasters = kStoreMaster + 1;

// A channel moves at most one beat a cycle: with one read port each master is one.
constexpr uint32_t kChannels = kReadPorts == 1 ? kMasters : kReadPorts;
constexpr uint32_t channel_of(uint32_t master) {
  if (kReadPorts == 1) return master;
  if (master == kLoadMaster) return 0;
  if (kWeightsMaster <= master && master < kStoreMaster) return 1 + master - kWeightsMaster;
  if (kReadPorts == 2) return 1;
  return master == kStoreMaster ? 3 : master == kComputeMaster ? 2 : 1;
}
constexpr uint32_t most_masters_of_a_channel() {
  uint32_t count[kChannels]{}, most = 0;
  for (uint32_t master = 0; master < kMasters; ++master) {
    const uint32_t with_it = ++count[channel_of(master)];
    most = with_it > most ? with_it : most;
  }
  return most;
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
