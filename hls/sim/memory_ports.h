// SPDX-License-Identifier: Apache-2.0
//
// The timing of the memory behind the accelerator's AXI4 masters, which share its bandwidth and its ports
// (memory_channels.h). Deterministic in the memory model and the sequence of requests.
//
// An address is always accepted. The first beat of a read burst is on the bus `read_latency` cycles after its address
// was accepted, plus a draw of the master's own generator, and never before the bursts that it asked for earlier.
// A cycle brings bandwidth for `numerator / denominator` bytes, and may save one beat's worth of it for the next
// cycle; a beat, read or written, takes the bus width from it, and a channel moves at most one beat a cycle. They take
// turns, beginning after the one that moved a beat last. A write burst is answered `write_latency` cycles after its last
// beat. An address outside the memory is answered with DECERR and reads as zeros.
#ifndef HILT_SIM_MEMORY_PORTS_H
#define HILT_SIM_MEMORY_PORTS_H

#include <array>
#include <cstdint>

#include "memory_channels.h"
#include "physical_memory.h"
#include "vta_sim.h"

namespace vta {

constexpr uint32_t kBusBytes = VTA_BUS_WIDTH / 8;
constexpr uint8_t kOkay = 0, kDecodeError = 3;

// The values on a read port's buses before a clock edge.
struct ReadPort {
  // From the accelerator.
  bool address_valid = false;
  uint64_t address = 0;
  uint32_t length = 0;  // beats - 1
  bool data_ready = false;
  // To it.
  bool data_valid = false;
  alignas(16) std::array<uint8_t, kBusBytes> data{};
  uint8_t response = kOkay;
  bool last = false;
};

struct WritePort {
  bool address_valid = false;
  uint64_t address = 0;
  uint32_t length = 0;
  bool data_valid = false;
  const uint8_t *data = nullptr;
  bool strobe = false;  // all bytes of the beat, or none

  bool data_ready = false;
  bool response_valid = false;
  uint8_t response = kOkay;
};

// Bursts in the order in which they were asked for. The accelerator has at most 32 outstanding.
template <typename Burst>
class BurstQueue {
 public:
  bool empty() const { return begin_ == end_; }
  Burst &front() { return bursts_[begin_ % kSize]; }
  void push(const Burst &burst) { bursts_[end_++ % kSize] = burst; }
  void pop() { ++begin_; }

 private:
  static constexpr uint32_t kSize = 64;
  std::array<Burst, kSize> bursts_{};
  uint32_t begin_ = 0, end_ = 0;
};

class MemoryPorts {
 public:
  MemoryPorts(const vta_memory_model &model, const PhysicalMemory &memory);

  std::array<ReadPort, kReadMasters> reads;
  WritePort write;

  // Before a clock edge, the accelerator's side of the ports set: sets the memory's side. True where a beat of a read
  // port is new; other changes show.
  bool present();
  // After it: takes note of the transfers at it.
  void transfer();

 private:
  struct ReadBurst {
    uint64_t address, ready;  // `ready`: the first cycle whose edge may take the first beat
    uint32_t beats;
  };
  struct WriteBurst {
    uint64_t address;
    uint32_t beats;
    uint8_t response;
  };
  struct Response {
    uint64_t ready;
    uint8_t response;
  };

  void present_read(uint32_t port);
  bool wants_beat(uint32_t port);
  bool move(uint32_t port);
  uint64_t latency(uint32_t port);

  const PhysicalMemory &memory_;
  uint64_t read_latency_, write_latency_, jitter_;
  uint64_t income_, beat_cost_, credit_ = 0;  // bandwidth, in bytes x denominator
  uint64_t cycle_ = 0;
  Turns turns_;
  std::array<uint64_t, kReadMasters> generators_{}, last_ready_{};
  std::array<BurstQueue<ReadBurst>, kReadMasters> read_bursts_;
  BurstQueue<WriteBurst> write_bursts_;
  BurstQueue<Response> responses_;
};

}  // namespace vta

#endif
