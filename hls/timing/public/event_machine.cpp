#include "event_machine.h"

#include <algorithm>

#include "level2_cache.h"

namespace vta {
namespace {

uint64_t element_bytes(uint32_t memory_type) {
  switch (memory_type) {
    case kUop: return kUopBytes;
    case kWgt: return kWgtBytes;
    case kInp: return kInpBytes;
    case kAcc: return kAccBytes;
    case kAcc8Bit: return kAcc8Bytes;
    default: return kOutBytes;
  }
}

bool moves(const Instruction &instruction) {
  const Transfer &transfer = instruction.transfer;
  return (instruction.opcode == kLoad || instruction.opcode == kStore) && transfer.x_size != 0 && transfer.y_size != 0;
}

uint32_t region_of(const Instruction &instruction) {
  return instruction.opcode == kStore ? uint32_t{kOut} : instruction.transfer.memory_type;
}

uint64_t first_byte(const Instruction &instruction, uint64_t row) {
  const Transfer &transfer = instruction.transfer;
  return (transfer.dram_base + row * transfer.x_stride) * element_bytes(region_of(instruction));
}

uint64_t row_bytes(const Instruction &instruction) {
  return uint64_t{instruction.transfer.x_size} * element_bytes(region_of(instruction));
}

// A micro-op LOAD has one row, whatever y_size says.
uint64_t rows_of(const Instruction &instruction) {
  const bool uops = instruction.opcode == kLoad && instruction.transfer.memory_type == kUop;
  return uops ? 1 : instruction.transfer.y_size;
}

void cover(Level2Cache &cache, const std::vector<Instruction> &program) {
  uint64_t first[Level2Cache::kRegions], end[Level2Cache::kRegions] = {};
  std::fill(first, first + Level2Cache::kRegions, UINT64_MAX);
  for (const Instruction &instruction : program) {
    if (!moves(instruction)) continue;
    const uint32_t region = region_of(instruction);
    const uint64_t last = rows_of(instruction) - 1;
    first[region] = std::min(first[region], first_byte(instruction, 0));
    end[region] = std::max(end[region], first_byte(instruction, last) + row_bytes(instruction));
  }
  for (uint32_t region = 0; region < Level2Cache::kRegions; ++region)
    if (end[region] != 0) cache.cover(region, first[region], end[region]);
}

double touch(Level2Cache &cache, const Instruction &instruction) {
  double missed = 0;
  for (uint64_t row = 0; row < rows_of(instruction); ++row)
    missed += cache.touch(region_of(instruction), first_byte(instruction, row), row_bytes(instruction));
  return missed;
}

}  // namespace

vta_machine_result EventMachine::run(const vta_machine_parameters &costs, vta_machine_span *timeline) {
  vta_machine_result result{};
  costs_ = costs;
  follow_cache();
  measure(result);
  execute(result, timeline);
  return result;
}

void EventMachine::load(const uint8_t *instructions, uint32_t count) {
  followed_ = false;
  program_.resize(count);
  stage_of_.resize(count);
  for (uint32_t n = 0; n < count; ++n) {
    const Instruction instruction = decode(instructions + uint64_t{n} * kInstructionBytes, n);
    const uint32_t type = instruction.transfer.memory_type;
    program_[n] = instruction;
    const bool load = instruction.opcode == kLoad && (type == kInp || type == kWgt);
    stage_of_[n] = instruction.opcode == kStore ? kStoreStage : load ? kLoadStage : kComputeStage;
  }
}

// The bytes that miss: by the order of the program, whatever the other costs are. A program is measured many times over,
// so the cache holds what the run before left.
void EventMachine::follow_cache() {
  if (followed_ && cache_bytes_ == costs_.cache_bytes && store_allocates_ == costs_.store_allocates) return;
  followed_ = true;
  cache_bytes_ = costs_.cache_bytes;
  store_allocates_ = costs_.store_allocates;
  Level2Cache cache(cache_bytes_);
  cover(cache, program_);
  missed_.assign(program_.size(), 0);
  for (int turn = cache_bytes_ > 0 ? 0 : 1; turn < 2; ++turn)
    for (size_t n = 0; n < program_.size(); ++n)
      if (caches(program_[n])) missed_[n] = touch(cache, program_[n]);
}

// Each instruction's duration.
void EventMachine::measure(vta_machine_result &result) {
  duration_.resize(program_.size());
  for (size_t n = 0; n < program_.size(); ++n) {
    const Instruction &instruction = program_[n];
    double cycles = costs_.instruction;
    if (instruction.opcode == kLoad || instruction.opcode == kStore) {
      cycles += transfer_cycles(instruction, missed_[n], result);
    } else if (instruction.opcode == kGemm || instruction.opcode == kAlu) {
      cycles += nest_cycles(instruction, result);
    }
    duration_[n] = cycles;
  }
}

bool EventMachine::caches(const Instruction &instruction) const {
  return moves(instruction) && (instruction.opcode == kLoad || costs_.store_allocates != 0);
}

double EventMachine::transfer_cycles(const Instruction &instruction, double missed, vta_machine_result &result) const {
  const Transfer &transfer = instruction.transfer;
  const bool load = instruction.opcode == kLoad;
  double cycles = 0;
  if (load && (transfer.memory_type == kInp || transfer.memory_type == kAcc)) {
    const double width = double(transfer.x_pad_0) + transfer.x_size + transfer.x_pad_1;
    const double whole = (double(transfer.y_pad_0) + transfer.y_size + transfer.y_pad_1) * width;
    cycles += costs_.pad_element * (whole - double(transfer.y_size) * transfer.x_size);
  }
  if (!moves(instruction)) return cycles;
  const auto rows = static_cast<double>(rows_of(instruction));
  const double bytes = rows * static_cast<double>(row_bytes(instruction));
  const double read = (bytes - missed) / costs_.hit_bytes + missed / costs_.miss_bytes;
  const double beats = load ? read : bytes / costs_.store_bytes;
  const double row = rows * (load ? costs_.load_row : costs_.store_row);
  cycles += load ? costs_.load_start : costs_.store_start;
  cycles += costs_.rows_overlap != 0 ? std::max(row, beats) : row + beats;
  if (load) {
    result.rows += rows;
    result.read_bytes += bytes;
    result.missed_bytes += missed;
  }
  return cycles;
}

double EventMachine::nest_cycles(const Instruction &instruction, vta_machine_result &result) const {
  const Nest &nest = instruction.nest;
  const double iterations = double(nest.iter_out) * nest.iter_in;
  const double uops = nest.uop_end > nest.uop_bgn ? nest.uop_end - nest.uop_bgn : 0;
  if (instruction.opcode == kAlu) {
    const double cycles = iterations * (costs_.alu_iteration + uops * costs_.alu_micro_op);
    result.alu_cycles += cycles;
    return cycles;
  }
  const double iteration = nest.reset ? costs_.reset_iteration : costs_.gemm_iteration;
  const double cycles = iterations * (iteration + uops * costs_.gemm_micro_op);
  result.gemm_cycles += cycles;
  return cycles;
}

void EventMachine::execute(vta_machine_result &result, vta_machine_span *timeline) {
  for (Tokens *tokens : {&load_to_compute_, &compute_to_load_, &compute_to_store_, &store_to_compute_}) *tokens = {};
  for (Stage &stage : stages_) stage = {};
  stages_[kLoadStage].from_next = &compute_to_load_;
  stages_[kLoadStage].to_next = &load_to_compute_;
  stages_[kComputeStage].from_prev = &load_to_compute_;
  stages_[kComputeStage].from_next = &store_to_compute_;
  stages_[kComputeStage].to_prev = &compute_to_load_;
  stages_[kComputeStage].to_next = &compute_to_store_;
  stages_[kStoreStage].from_prev = &compute_to_store_;
  stages_[kStoreStage].to_prev = &store_to_compute_;
  delivered_.clear();
  end_ = 0;
  done_ = false;

  bool more = true;
  while (more) {
    more = route();
    for (StageNumber stage : {kLoadStage, kComputeStage, kStoreStage}) more |= advance(stage, timeline);
  }
  result.status = done_ ? VTA_MACHINE_DONE : VTA_MACHINE_NEVER;
  result.instructions = static_cast<uint32_t>(program_.size());
  result.cycles = end_;
  result.load_busy = stages_[kLoadStage].busy;
  result.compute_busy = stages_[kComputeStage].busy;
  result.store_busy = stages_[kStoreStage].busy;
}

// Delivers instructions in order, each to a queue of VTA_INSN_QUEUE_DEPTH.
bool EventMachine::route() {
  bool any = false;
  while (delivered_.size() < program_.size()) {
    const size_t number = delivered_.size();
    Stage &stage = stages_[stage_of_[number]];
    double at = number == 0 ? 0 : delivered_.back() + costs_.fetch;
    if (stage.steps.size() >= VTA_INSN_QUEUE_DEPTH) {
      const size_t room = stage.steps.size() - VTA_INSN_QUEUE_DEPTH;
      if (room >= stage.started.size()) break;
      at = std::max(at, stage.started[room]);
    }
    const Instruction &instruction = program_[number];
    delivered_.push_back(at);
    stage.steps.push_back({duration_[number], static_cast<uint32_t>(number), instruction.pop_prev,
                           instruction.pop_next, instruction.push_prev, instruction.push_next,
                           instruction.opcode == kFinish});
    any = true;
  }
  return any;
}

// Executes the stage's instructions as far as their tokens are known.
bool EventMachine::advance(StageNumber number, vta_machine_span *timeline) {
  Stage &stage = stages_[number];
  bool any = false;
  while (!stage.idle()) {
    const Step &step = stage.steps[stage.started.size()];
    Tokens *prev = step.pop_prev ? stage.from_prev : nullptr, *next = step.pop_next ? stage.from_next : nullptr;
    if ((prev != nullptr && prev->empty()) || (next != nullptr && next->empty())) break;
    double at = std::max(stage.free, delivered_[step.number]);
    if (prev != nullptr) at = std::max(at, prev->pushed[prev->popped++]);
    if (next != nullptr) at = std::max(at, next->pushed[next->popped++]);
    stage.started.push_back(at);
    stage.free = at + step.duration;
    stage.busy += step.duration;
    if (step.push_prev && stage.to_prev != nullptr) stage.to_prev->pushed.push_back(stage.free);
    if (step.push_next && stage.to_next != nullptr) stage.to_next->pushed.push_back(stage.free);
    if (timeline != nullptr) timeline[step.number] = {at, stage.free, number + 1u, 0};
    if (step.finish) {
      done_ = true;
      end_ = stage.free;
    } else if (!done_) {
      end_ = std::max(end_, stage.free);
    }
    any = true;
  }
  return any;
}

}  // namespace vta
