// SPDX-License-Identifier: Apache-2.0
//
// The golden VTA: four stages joined by finite instruction queues and token queues, run to completion without time.
//
// Every stage runs until it is blocked (no instruction, no token, no room for a token), then the next one: fetch, load,
// compute, store, round and round. A program whose tokens order all dependent steps gives the same memory in any such
// order. When no stage can move, it waits for ever: the run stays RUNNING, as on the board.
//
// The unit of work that stands where the hardware has a cycle is one instruction or one micro-op.
//
// Where the public models differ it does as the public HLS design (TVM_FACTS.md section 3), except that an index past
// a buffer, an address that is no memory and an illegal instruction end the run with a fault. Illegal are opcodes 5 to
// 7; LOAD of OUT and of memory types 6 and 7; ALU opcodes 5 to 7: found when the compute stage has the instruction's
// tokens. A STORE to the table that is not one row of 256 bytes is illegal too, found by the store stage; of other
// STOREs the memory type says only whether they go by way of the table.
#ifndef HILT_GOLDEN_ACCELERATOR_H
#define HILT_GOLDEN_ACCELERATOR_H

#include <cstdint>
#include <deque>
#include <memory>

#include "buffers.h"
#include "fault.h"
#include "instruction.h"
#include "physical_memory.h"
#include "nest.h"
#include "parameters.h"

namespace vta {

// The values that the driver writes before it starts the stages.
struct Addresses {
  uint32_t insn_count = 0, insn_addr = 0;
  uint32_t inp_addr = 0, wgt_addr = 0;
  uint32_t uop_addr = 0, bias_addr = 0;
  uint32_t out_addr = 0;
};

struct StageCounters {
  uint64_t bytes = 0, instructions = 0;
};

struct Counters {
  uint64_t work = 0;  // instructions and micro-ops, and the wait for a token that never comes
  uint64_t gemm_micro_ops = 0;
  StageCounters fetch, load, compute, store;
};

// Tokens that one stage has pushed and its neighbour has not yet popped.
struct TokenQueue {
  uint32_t tokens = 0;

  bool empty() const { return tokens == 0; }
  bool full() const { return tokens == kTokenQueueDepth; }
};

// The link between a stage and one neighbour, null where the chain ends.
struct Neighbour {
  TokenQueue *from = nullptr, *to = nullptr;
};

// A stage that takes instructions from a queue: its current step, and whether the driver has started it.
struct Stage {
  Neighbour previous, next;
  std::deque<Instruction> queue;
  bool started = false, auto_restart = false;
  enum class Phase { kTake, kPop, kExecute, kPush } phase = Phase::kTake;
  Instruction current{};
  StageCounters counters;
};

enum class RunState { kIdle, kRunning, kDone, kFault };

class Accelerator {
 public:
  explicit Accelerator(const PhysicalMemory &memory);

  // Power-on state.
  void reset();
  // Queues, tokens, stages and the fault; the buffers and the addresses keep their contents.
  void soft_reset();

  // Begins to fetch insn_count instructions; clears counters and `done`. Nothing moves before `run`.
  void start_fetch();
  void start_load(bool auto_restart) { start(load_, auto_restart); }
  void start_compute(bool auto_restart) { start(compute_, auto_restart); }
  void start_store(bool auto_restart) { start(store_, auto_restart); }

  // Runs until FINISH, a fault, or `limit` units of work; returns the units spent.
  uint64_t run(uint64_t limit);

  RunState state() const;
  bool fetching() const { return fetching_; }
  const Stage &load_stage() const { return load_; }
  const Stage &compute_stage() const { return compute_; }
  const Stage &store_stage() const { return store_; }
  const Fault &fault() const { return fault_; }
  Counters counters() const;

  Addresses addresses;

 private:
  static void start(Stage &stage, bool auto_restart);

  bool run_fetch(uint64_t &budget);
  template <typename Execute>
  bool run_stage(Stage &stage, uint64_t &budget, Execute execute);
  bool execute_load(uint64_t &budget);
  bool execute_compute(uint64_t &budget);
  bool execute_compute_load();
  bool execute_nest(uint64_t &budget);
  bool execute_store(uint64_t &budget);
  bool stopped() const { return done_ || fault_; }

  const PhysicalMemory &memory_;
  std::unique_ptr<Buffers> buffers_;
  TokenQueue load_to_compute_, compute_to_load_, compute_to_store_, store_to_compute_;
  Stage load_, compute_, store_;
  NestPosition nest_;  // of the compute stage's current GEMM or ALU

  bool ever_started_ = false, fetching_ = false, done_ = false;
  uint64_t fetched_ = 0;
  StageCounters fetch_counters_;
  uint64_t work_ = 0, gemm_micro_ops_ = 0;
  Fault fault_;
};

}  // namespace vta

#endif
