// SPDX-License-Identifier: Apache-2.0
//
// The load stage's masters (vta_load): the first alone has LOADs of INP; of a LOAD of WGT each has its part of every
// element.
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

  // Whether the next LOAD is one of WGT.
  void read_weights(bool weights) { parted_ = weights && kReadPorts > 1; }

  // `block`: that of the first part.
  void start(Cycle launch, Block block, const Fill &fill) {
    past_ = fill.past;
    first_.start(launch, block, fill);
    if (!parted_) return;
    for (ReadPort &other : others_) {
      block.address += kWgtPartBytes;
      other.start(launch, block, fill);
    }
  }

  // The cycle of the last write, or of the first fault, once it is known.
  Cycle done() const {
    Cycle done = first_.done();
    if (!parted_) return done;
    for (const ReadPort &other : others_) done = past_ ? std::min(done, other.done()) : std::max(done, other.done());
    return done;
  }

  uint64_t beats() const {
    uint64_t beats = first_.beats();
    for (const ReadPort &other : others_) beats += other.beats();
    return beats;
  }
  // Of a LOAD of WGT, those of its first part.
  uint64_t stalled(Cycle end) const { return first_.stalled(end); }

 private:
  ReadPort &first_;
  Others &others_;
  bool parted_ = false, past_ = false;
};

}  // namespace vta

#endif
