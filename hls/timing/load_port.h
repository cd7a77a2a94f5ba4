// SPDX-License-Identifier: Apache-2.0
//
// The load stage's masters (vta_load): the first alone has LOADs of INP; of a LOAD of WGT each has its part of every
// element.
#ifndef HILT_TIMING_LOAD_PORT_H
#define HILT_TIMING_LOAD_PORT_H

#include <algorithm>

#include "read_port.h"

namespace vta {

class LoadPort {
 public:
  LoadPort(ReadPort &first, ReadPort &second) : first_(first), second_(second) {}

  // Whether the next LOAD is one of WGT.
  void read_weights(bool weights) { parted_ = weights && kReadPorts > 1; }

  // `block`: that of the first part.
  void start(Cycle launch, Block block, const Fill &fill) {
    past_ = fill.past;
    first_.start(launch, block, fill);
    if (!parted_) return;
    block.address += kWgtPartBytes;
    second_.start(launch, block, fill);
  }

  // The cycle of the last write, or of the first fault, once it is known.
  Cycle done() const {
    if (!parted_) return first_.done();
    return past_ ? std::min(first_.done(), second_.done()) : std::max(first_.done(), second_.done());
  }

  uint64_t beats() const { return first_.beats() + second_.beats(); }
  // Of a LOAD of WGT, those of its first part.
  uint64_t stalled(Cycle end) const { return first_.stalled(end); }

 private:
  ReadPort &first_, &second_;
  bool parted_ = false, past_ = false;
};

}  // namespace vta

#endif
