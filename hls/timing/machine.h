// SPDX-License-Identifier: Apache-2.0
//
// The accelerator and its memory as times: one program from the start of fetch to FINISH.
//
// Nothing is stepped. What follows from known times is computed at once, even where it lies in the future: an
// instruction's launch from its queue, its tokens and the one before; its end from its micro-ops or its last beat. Only
// the ports compete, so only beats are granted in the order of time: the arbiter grants those that the earliest wishes
// settle, then what follows from them is computed, and so on until FINISH, a fault, or no port wants anything.
#ifndef HILT_TIMING_MACHINE_H
#define HILT_TIMING_MACHINE_H

#include "arbiter.h"
#include "chain.h"
#include "fetch_port.h"
#include "fill.h"
#include "fold.h"
#include "instruction.h"
#include "nest_timing.h"
#include "load_port.h"
#include "read_port.h"
#include "stage.h"
#include "uop_buffer.h"
#include "vta_timing.h"
#include "write_port.h"

namespace vta {

// Where a program lies. `uops` is the memory from `uop_address` on; micro-ops outside are zeros.
struct Image {
  const uint8_t *instructions;
  uint32_t instruction_count;
  uint64_t insn_address;
  const uint8_t *uops;
  uint64_t uop_bytes;
  uint64_t uop_address;
};

// Kept from program to program for its memory and for what NestTiming remembers.
class Machine {
 public:
  // `timeline`: a place for every instruction.
  vta_timing_result run(const Image &image, const vta_memory_model &model, vta_timing_span *timeline);

 private:
  struct Ports;

  Cycle fetch_to_wish(const FetchPort &fetch, const vta_memory_model &model) const;
  void begin(const Image &image, vta_timing_span *timeline);
  void advance(Ports &ports);
  void route(FetchPort &fetch);
  template <typename StagePort, typename Launch>
  bool advance(Stage &stage, StagePort &port, Launch launch);
  void launch_load(LoadPort &port, uint32_t number);
  void share_inputs(LoadPort &port, const Transfer &transfer);
  void launch_compute(ReadPort &port, uint32_t number);
  void launch_store(WritePort &port, uint32_t number);
  template <typename StagePort>
  void load_block(Stage &stage, StagePort &port, const Transfer &transfer, const LoadedBuffer &buffer);
  void load_uops(ReadPort &port, const Transfer &transfer);
  void execute(uint32_t number);
  bool join();
  bool fold();
  Cycle end_of_folded(const NestTime &time, uint32_t number, Cycle end);
  void copy_uops(const Transfer &transfer);
  void end_by(Stage &stage, Cycle at, uint32_t fault);
  const uint8_t *instruction(uint32_t number) const;
  uint64_t first_word(uint32_t number) const;
  vta_timing_result result(const Ports &ports) const;

  TokenQueue load_to_compute_, compute_to_load_, compute_to_store_, store_to_compute_;
  Stage load_{nullptr, &compute_to_load_, nullptr, &load_to_compute_};
  Stage compute_{&load_to_compute_, &store_to_compute_, &compute_to_load_, &compute_to_store_};
  Stage store_{&compute_to_store_, nullptr, &store_to_compute_, nullptr};
  UopBuffer uops_;
  NestTiming nests_;
  Chain chain_;  // of compute's instruction in execution
  Fold fold_;    // of compute's reset in execution, or of the one before

  Image image_{};
  vta_timing_span *timeline_ = nullptr;
  uint32_t routed_ = 0;
  Cycle end_ = kNever;  // the last cycle of the program, as far as it is known
  uint32_t fault_ = 0;  // what ends it
  uint64_t gemms_ = 0;
  uint64_t unwanted_bytes_ = 0;  // of beats that begin or end amid the micro-ops that were asked for
};

}  // namespace vta

#endif
