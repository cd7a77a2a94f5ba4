// SPDX-License-Identifier: Apache-2.0

#include "memory_ports.h"

#include <algorithm>
#include <cstring>

namespace vta {
namespace {

uint64_t splitmix64(uint64_t &state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

MemoryPorts::MemoryPorts(const vta_memory_model &model, const PhysicalMemory &memory)
    : memory_(memory),
      read_latency_(std::max(1u, model.read_latency)),
      write_latency_(std::max(1u, model.write_latency)),
      jitter_(model.jitter) {
  const bool bus = model.bandwidth_numerator == 0;
  income_ = bus ? kReadPorts * kBusBytes : model.bandwidth_numerator;
  beat_cost_ = uint64_t{kBusBytes} * (bus ? 1 : model.bandwidth_denominator);
  for (uint32_t port = 0; port < kReadMasters; ++port) generators_[port] = uint64_t{model.seed} << 8 | port;
}

uint64_t MemoryPorts::latency(uint32_t port) {
  return read_latency_ + (jitter_ == 0 ? 0 : splitmix64(generators_[port]) % (jitter_ + 1));
}

bool MemoryPorts::wants_beat(uint32_t port) {
  if (port == kStoreMaster) return write.data_valid && !write_bursts_.empty();
  auto &bursts = read_bursts_[port];
  return !reads[port].data_valid && !bursts.empty() && bursts.front().ready <= cycle_;
}

void MemoryPorts::present_read(uint32_t port) {
  auto &bursts = read_bursts_[port];
  ReadBurst &burst = bursts.front();
  ReadPort &to = reads[port];
  const uint8_t *from = memory_.at(burst.address, kBusBytes);
  if (from != nullptr) {
    std::memcpy(to.data.data(), from, kBusBytes);
  } else {
    to.data.fill(0);
  }
  to.response = from != nullptr ? kOkay : kDecodeError;
  to.last = burst.beats == 1;
  to.data_valid = true;
  burst.address += kBusBytes;
  if (--burst.beats == 0) bursts.pop();
}

// Moves a beat of the port, for which there is bandwidth; true where it is read.
bool MemoryPorts::move(uint32_t port) {
  credit_ -= beat_cost_;
  turns_.moved(port);
  if (port != kStoreMaster) {
    present_read(port);
    return true;
  }
  write.data_ready = true;
  return false;
}

bool MemoryPorts::present() {
  credit_ = std::min(credit_ + income_, income_ + beat_cost_);
  write.data_ready = false;
  bool wanting[kMasters], any = false;
  for (uint32_t port = 0; port < kMasters; ++port) any |= wanting[port] = wants_beat(port);
  bool presented = false;
  if (any) {
    bool used[kChannels]{};
    const Turns turns = turns_;
    turns.in_order([&](uint32_t port) {
      if (!wanting[port] || used[channel_of(port)] || credit_ < beat_cost_) return;
      used[channel_of(port)] = true;
      presented |= move(port);
    });
  }
  write.response_valid = !responses_.empty() && responses_.front().ready <= cycle_;
  if (write.response_valid) write.response = responses_.front().response;
  return presented;
}

void MemoryPorts::transfer() {
  for (uint32_t port = 0; port < kReadMasters; ++port) {
    ReadPort &from = reads[port];
    if (from.data_valid && from.data_ready) from.data_valid = false;
    if (from.address_valid) {
      const uint64_t ready = std::max(last_ready_[port], cycle_ + latency(port));
      last_ready_[port] = ready;
      read_bursts_[port].push({from.address, ready, from.length + 1});
    }
  }
  if (write.response_valid) responses_.pop();
  if (write.data_valid && write.data_ready) {
    WriteBurst &burst = write_bursts_.front();
    uint8_t *to = memory_.at(burst.address, kBusBytes);
    if (to == nullptr) {
      burst.response = kDecodeError;
    } else if (write.strobe) {
      std::memcpy(to, write.data, kBusBytes);
    }
    burst.address += kBusBytes;
    if (--burst.beats == 0) {
      responses_.push({cycle_ + write_latency_, burst.response});
      write_bursts_.pop();
    }
  }
  if (write.address_valid) write_bursts_.push({write.address, write.length + 1, kOkay});
  ++cycle_;
}

}  // namespace vta
