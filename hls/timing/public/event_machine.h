// One program on a machine model: three stages that execute one instruction at a time, with token queues between them.
//
// Each instruction's duration follows from its own fields and from what the cache holds, so stages need no common
// clock: an instruction starts when its stage is free, fetch has delivered it and its tokens are there.
#ifndef HILT_TIMING_PUBLIC_EVENT_MACHINE_H
#define HILT_TIMING_PUBLIC_EVENT_MACHINE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "instruction.h"
#include "vta_machine.h"

namespace vta {

class EventMachine {
 public:
  // Takes the program of the runs that follow.
  void load(const uint8_t *instructions, uint32_t count);

  // `timeline`: null, or a place for every instruction.
  vta_machine_result run(const vta_machine_parameters &costs, vta_machine_span *timeline);

 private:
  enum StageNumber : uint32_t { kLoadStage = 0, kComputeStage = 1, kStoreStage = 2, kStages = 3 };
  struct Step {
    double duration;
    uint32_t number;
    bool pop_prev, pop_next, push_prev, push_next, finish;
  };
  struct Tokens {
    std::vector<double> pushed;
    size_t popped = 0;
    bool empty() const { return popped == pushed.size(); }
  };
  struct Stage {
    std::vector<Step> steps;
    std::vector<double> started;
    double free = 0, busy = 0;
    Tokens *from_prev = nullptr, *from_next = nullptr, *to_prev = nullptr, *to_next = nullptr;
    bool idle() const { return started.size() == steps.size(); }
  };

  void follow_cache();
  void measure(vta_machine_result &result);
  bool caches(const Instruction &instruction) const;
  double transfer_cycles(const Instruction &instruction, double missed, vta_machine_result &result) const;
  double nest_cycles(const Instruction &instruction, vta_machine_result &result) const;
  void execute(vta_machine_result &result, vta_machine_span *timeline);
  bool route();
  bool advance(StageNumber number, vta_machine_span *timeline);

  vta_machine_parameters costs_{};
  std::vector<Instruction> program_;
  std::vector<StageNumber> stage_of_;
  std::vector<double> missed_;  // bytes of each instruction, with the cache below
  bool followed_ = false;
  double cache_bytes_ = 0, store_allocates_ = 0;
  std::vector<double> duration_;
  std::vector<double> delivered_;  // by fetch, of those routed so far
  Stage stages_[kStages];
  Tokens load_to_compute_, compute_to_load_, compute_to_store_, store_to_compute_;
  double end_ = 0;
  bool done_ = false;
};

}  // namespace vta

#endif
