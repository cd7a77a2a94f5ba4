// SPDX-License-Identifier: Apache-2.0
//
// The bursts of a block of memory, as vta_burst_splitter cuts them: by row, and at the multiples of the most beats that
// a burst may have.
#ifndef HILT_TIMING_BURSTS_H
#define HILT_TIMING_BURSTS_H

#include <algorithm>
#include <cstdint>

#include "parameters.h"

namespace vta {

constexpr uint32_t kBusBytes = VTA_BUS_WIDTH / 8;
constexpr uint32_t kMostBurstBeats = 256;
constexpr uint32_t kMostBursts = 32;  // outstanding, of one port

// `rows` rows of `row_beats` beats, their starts `stride` bytes apart; so many such planes, their starts `plane_stride`
// bytes apart. Addresses are aligned to the bus.
struct Block {
  uint64_t address;
  uint64_t row_beats;
  uint32_t rows;
  uint64_t stride;
  uint32_t planes = 1;
  uint64_t plane_stride = 0;
};

class Bursts {
 public:
  Bursts() = default;
  Bursts(const Block &block, uint32_t most)
      : row_beat_(block.address / kBusBytes),
        beat_(row_beat_),
        row_beats_(block.row_beats),
        left_(block.row_beats),
        stride_(block.stride / kBusBytes),
        plane_beat_(row_beat_),
        plane_stride_(block.plane_stride / kBusBytes),
        rows_(block.rows),
        plane_rows_(block.rows),
        planes_(block.planes),
        most_(most) {}

  bool empty() const { return rows_ == 0; }

  // Beats of the next burst, which is then behind.
  uint32_t next() {
    const uint32_t beats = peek();
    if (beats < left_) {
      beat_ += beats;
      left_ -= beats;
    } else {
      end_row();
    }
    return beats;
  }

  uint32_t peek() const {
    return static_cast<uint32_t>(std::min<uint64_t>(left_, most_ - beat_ % most_));
  }

 private:
  void end_row() {
    row_beat_ += stride_;
    --rows_;
    if (rows_ == 0 && planes_ > 1) {
      --planes_;
      row_beat_ = plane_beat_ += plane_stride_;
      rows_ = plane_rows_;
    }
    beat_ = row_beat_;
    left_ = row_beats_;
  }

  uint64_t row_beat_ = 0, beat_ = 0;  // addresses in beats: of the row, of the next burst
  uint64_t row_beats_ = 0, left_ = 0, stride_ = 0;
  uint64_t plane_beat_ = 0, plane_stride_ = 0;
  uint32_t rows_ = 0;  // of the plane, that are not behind
  uint32_t plane_rows_ = 0, planes_ = 0, most_ = 0;
};

}  // namespace vta

#endif
