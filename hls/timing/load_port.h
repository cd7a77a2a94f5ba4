// SPDX-License-Identifier: Apache-2.0
//
// The load stage's masters (vta_load): of a LOAD of WGT each has its part of every element, of one of INP
// every N-th row.
#ifndef HILT_TIMING_LOAD_PORT_H
#define HILT_TIMING_LOAD_PORT_H

#include <algorithm>
#include <array>

#include "read_port.h"

namespace vta {

class LoadPort {
 public:
  using Others = std::array<ReadPort, kReadPorts - 1>;

  LoadPort(ReadPort &first, Others &others) : first_(first), others_(others) {}

  // A LOAD of WGT, or of INP over one port; `block`: that of the first part.
  void start(Cycle launch, Block block, const Fill &fill) {
    launch_ = launch;
    past_ = fill.past;
    parts_ = block.rows == 0 ? 0 : kReadPorts;
    shares_ = false;
    for (uint32_t part = 0; part < parts_; ++part) {
      port(part).start(launch, block, fill);
      block.address += kWgtPartBytes;
    }
  }

  // A LOAD of INP whose rows the ports take in turn, after its pads.
  void share(Cycle launch, const Block &block, Fill fill) {
    launch_ = launch;
    past_ = false;
    parts_ = std::min(kInpPorts, block.rows);
    shares_ = true;
    pads_end_ = launch + kPads + fill.lead;
    fill.lead += kPads - 1;
    for (uint32_t part = 0; part < parts_; ++part) {
      const uint32_t rows = (block.rows + kInpPorts - 1 - part) / kInpPorts;
      fill.elements = rows * block.row_beats >> fill.log_element_beats;
      fill.row_elements = static_cast<uint32_t>(fill.elements);
      const uint64_t address = block.address + part * block.stride;
      port(part).start(launch, {address, block.row_beats, rows, kInpPorts * block.stride}, fill);
    }
  }

  // The cycle of the LOAD's end, or of its first fault, once it is known.
  Cycle done() const {
    Cycle done = past_ ? kNever : shares_ ? pads_end_ : 0;
    for (uint32_t part = 0; part < parts_; ++part)
      done = past_ ? std::min(done, port(part).done()) : std::max(done, end_of(part));
    return done;
  }

  uint64_t beats() const {
    uint64_t beats = first_.beats();
    for (const ReadPort &other : others_) beats += other.beats();
    return beats;
  }
  // Those of the first part.
  uint64_t stalled(Cycle end) const { return first_.stalled(end); }

 private:
  static constexpr Cycle kPads = 3;  // from the launch to the first pad

  ReadPort &port(uint32_t part) const { return part == 0 ? first_ : others_[part - 1]; }

  // Where several masters read, a part's end counts a cycle later; inputs are held until their turn to be written.
  Cycle end_of(uint32_t part) const {
    const Cycle written = port(part).done();
    if (written == kNever || kReadPorts == 1) return written;
    if (!shares_) return written + 1;
    const Cycle turn = (part - (written + 1 - launch_)) & (kInpPorts - 1);
    return written + 2 + turn;
  }

  ReadPort &first_;
  Others &others_;
  Cycle launch_ = 0, pads_end_ = 0;
  uint32_t parts_ = 0;
  bool past_ = false, shares_ = false;
};

}  // namespace vta

#endif
