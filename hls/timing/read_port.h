// SPDX-License-Identifier: Apache-2.0
//
// The read port of the load or the compute stage, with what its LOADs do with their beats: vta_dma_read with
// vta_block_loader or vta_uop_buffer behind it.
//
// Times of one LOAD that is launched in cycle t (its first busy cycle), as the RTL has them:
//   burst k is asked for in t+1+k, or when fewer than 32 bursts and no more than 768 beats are asked for and not taken
//   (room for a whole burst among 1024), a cycle after the beat that makes the room; its address is on the bus a cycle later, and its first beat
//   can be presented `latency` cycles after that;
//   a beat is presented when the arbiter grants it, and taken in that cycle unless the loader has a whole element that
//   waits behind pads; the next one can be presented in the cycle after;
//   a whole element is written in the cycle after its last beat or when the pads before it are written, one a cycle.
#ifndef HILT_TIMING_READ_PORT_H
#define HILT_TIMING_READ_PORT_H

#include <algorithm>
#include <array>

#include "bursts.h"
#include "fill.h"
#include "port.h"
#include "ring.h"

namespace vta {

class ReadPort : public Port {
 public:
  explicit ReadPort(const ReadLatency &latency) : latency_(latency) {}

  void start(Cycle launch, const Block &block, const Fill &fill) {
    fill_ = fill;
    bursts_ = Bursts(block, kMostBurstBeats);
    asked_.clear();
    last_ask_ = launch;
    bursts_asked_ = 0;
    beats_asked_ = beats_taken_ = 0;
    find_room();
    ask(Grants::each_cycle(launch, 1), launch - 1);
    beats_left_ = fill.elements << fill.log_element_beats;
    row_left_ = fill.row_elements;
    in_element_ = 0;
    first_element_ = true;
    position_ = wait_from_ = launch + 1 + fill.lead;
    written_ = 0;
    done_ = kNever;
    await(launch);
  }

  // Beats were granted, no more than `run`.
  void granted(const Grants &grants) {
    const uint32_t count = grants.count;
    if (count > 1 && grants.numerator > grants.denominator && first_element_ && position_ > grants.first) {
      for (uint32_t n = 0; n < count; ++n) granted(grants.only(n));
      return;
    }
    const Cycle taken = count == 1 ? std::max(grants.first, written_) : grants.last();
    count_stalls(grants);
    beats_ += count;
    beats_taken_ += count;
    beats_left_ -= count;
    in_element_ += count;
    const uint32_t whole = in_element_ >> fill_.log_element_beats;
    in_element_ &= (1u << fill_.log_element_beats) - 1;
    if (whole == 0) {
      wait_from_ = first_element_ ? std::max(taken + 1, position_) : taken + 1;
    } else {
      write(whole, in_element_ == 0 ? taken : grants.at(count - 1 - in_element_));
      if (in_element_ != 0) wait_from_ = taken + 1;
    }
    uint32_t &burst_left = asked_.front().beats;
    burst_left -= count;
    if (burst_left == 0) asked_.pop();
    ask(grants, taken);
    if (done_ == kNever) {
      await(taken);
    } else {
      wants = kNever;
    }
  }

  bool settled() const { return done_ != kNever; }
  // The cycle of the last write, pads included, or of the fault, once it is known.
  Cycle done() const { return done_; }
  // Beats that have come.
  uint64_t beats() const { return beats_; }
  // Cycles in which only a missing beat held the LOADs up, to be completed with those of the one under way at `end`.
  uint64_t stalled(Cycle end) const {
    const bool waiting = done_ == kNever && wait_from_ <= end;
    return stalled_ + (waiting ? static_cast<uint64_t>(end + 1 - wait_from_) : 0);
  }

 private:
  static constexpr uint64_t kMostBeats = 1024;
  static constexpr Cycle kRoom = 2;  // from a beat's taking to the burst for which there is room then
  struct Asked {
    Cycle ready;
    uint32_t beats;
  };

  // Asks for the bursts for which there is room, after these beats, of which the last was taken in cycle `taken`.
  void ask(const Grants &grants, Cycle taken) {
    while (room_at_ <= beats_taken_) {
      const uint64_t since = beats_taken_ - room_at_;
      Cycle room = taken;
      if (since != 0) room = since < grants.count ? grants.at(grants.count - 1 - static_cast<uint32_t>(since)) : 0;
      last_ask_ = std::max(last_ask_ + 1, room + kRoom);
      last_ready_ = std::max(last_ready_, last_ask_ + 1 + latency_.draw());
      const uint32_t beats = bursts_.next();
      asked_.push({last_ready_, beats});
      beats_asked_ += beats;
      ends_[bursts_asked_++ % kMostBursts] = beats_asked_;
      find_room();
    }
  }

  // How many beats must have been taken before the next burst is asked for.
  void find_room() {
    room_at_ = ~uint64_t{0};
    if (bursts_.empty()) return;
    const uint64_t end = beats_asked_ + kMostBurstBeats;
    room_at_ = end > kMostBeats ? end - kMostBeats : 0;
    if (bursts_asked_ >= kMostBursts) room_at_ = std::max(room_at_, ends_[bursts_asked_ % kMostBursts]);
  }

  // `last`: the cycle in which the last beat was taken. The next one is held back on the bus until written_.
  void await(Cycle last) {
    const Asked &burst = asked_.front();
    wants = std::max(burst.ready, last + 1);
    const uint32_t to_whole = (1u << fill_.log_element_beats) - in_element_;
    uint64_t most = beats_left_;
    if (written_ > wants) {
      most = 1;
    } else if (first_element_ && position_ > wants + to_whole) {
      most = to_whole;  // the element may have to wait for pads, and with it what follows
    }
    run = static_cast<uint32_t>(std::min<uint64_t>(burst.beats, most));
  }

  // `whole` elements have come, the last beat of the last one in cycle `last`.
  void write(uint32_t whole, Cycle last) {
    written_ = last + fill_.write_delay;
    if (first_element_ && whole == 1) written_ = std::max(written_, position_);
    first_element_ = false;
    row_left_ -= whole;
    wait_from_ = written_ + 1;
    if (beats_left_ == 0) {
      done_ = written_ + fill_.trail + fill_.past;
    } else if (row_left_ == 0) {
      row_left_ = fill_.row_elements;
      first_element_ = true;
      position_ = wait_from_ = written_ + 1 + fill_.gap;
    }
  }

  // The cycle in which an element is written is no stall, though no beat may come in it.
  void count_stalls(const Grants &grants) {
    stalled_ += std::max<Cycle>(0, grants.first - wait_from_);
    if (grants.count == 1 || grants.numerator == grants.denominator) return;
    stalled_ += static_cast<uint64_t>(grants.last() - grants.first) - (grants.count - 1);
    if (fill_.write_delay != 0) stalled_ -= writes_between(grants);
  }

  // Beats, but for the last, that end an element and are not followed by a beat in the next cycle.
  uint64_t writes_between(const Grants &grants) const {
    if (grants.numerator >= 2 * grants.denominator) return (in_element_ + grants.count - 1) >> fill_.log_element_beats;
    const uint32_t element_beats = 1u << fill_.log_element_beats;
    uint64_t writes = 0;
    for (uint32_t n = element_beats - in_element_ - 1; n + 1 < grants.count; n += element_beats)
      writes += grants.at(n + 1) - grants.at(n) > 1;
    return writes;
  }

  ReadLatency latency_;
  Fill fill_{};
  Bursts bursts_;                   // not yet asked for
  Ring<Asked, kMostBursts> asked_;  // not yet all taken
  Cycle last_ask_ = 0, last_ready_ = 0;
  uint32_t bursts_asked_ = 0;  // of this LOAD, as the counts of beats below
  uint64_t beats_asked_ = 0, beats_taken_ = 0, room_at_ = 0;
  std::array<uint64_t, kMostBursts> ends_{};  // beats up to the end of each of the last bursts asked for

  uint64_t beats_left_ = 0;
  uint32_t row_left_ = 0;      // elements
  uint32_t in_element_ = 0;    // beats of the next element that have come
  bool first_element_ = true;  // of its row
  Cycle position_ = 0;         // when the pads before the row's first element are written
  Cycle written_ = 0;          // when the last whole element is
  Cycle wait_from_ = 0;        // the first cycle from which on a missing beat is a stall
  Cycle done_ = 0;
  uint64_t stalled_ = 0, beats_ = 0;
};

}  // namespace vta

#endif
