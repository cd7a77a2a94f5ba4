// SPDX-License-Identifier: Apache-2.0

#include "accelerator.h"

#include <cstring>

namespace vta {

Accelerator::Accelerator(const PhysicalMemory &memory) : memory_(memory), buffers_(std::make_unique<Buffers>()) {
  reset();
}

void Accelerator::reset() {
  soft_reset();
  addresses = {};
  std::memset(static_cast<void *>(buffers_.get()), 0, sizeof(Buffers));
}

void Accelerator::soft_reset() {
  load_to_compute_ = compute_to_load_ = compute_to_store_ = store_to_compute_ = {};
  load_ = compute_ = store_ = {};
  load_.next = {&compute_to_load_, &load_to_compute_};
  compute_.previous = {&load_to_compute_, &compute_to_load_};
  compute_.next = {&store_to_compute_, &compute_to_store_};
  store_.previous = {&compute_to_store_, &store_to_compute_};
  nest_ = {};
  ever_started_ = fetching_ = done_ = false;
  fetched_ = 0;
  fetch_counters_ = {};
  work_ = gemm_micro_ops_ = 0;
  fault_ = {};
}

void Accelerator::start_fetch() {
  ever_started_ = fetching_ = true;
  done_ = false;
  fetched_ = 0;
  work_ = gemm_micro_ops_ = 0;
  fetch_counters_ = load_.counters = compute_.counters = store_.counters = {};
}

void Accelerator::start(Stage &stage, bool auto_restart) {
  stage.started = true;
  stage.auto_restart = auto_restart;
}

RunState Accelerator::state() const {
  if (fault_) return RunState::kFault;
  if (done_) return RunState::kDone;
  return ever_started_ ? RunState::kRunning : RunState::kIdle;
}

Counters Accelerator::counters() const {
  return {work_, gemm_micro_ops_, fetch_counters_, load_.counters, compute_.counters, store_.counters};
}

uint64_t Accelerator::run(uint64_t limit) {
  if (state() != RunState::kRunning) return 0;
  uint64_t budget = limit;
  while (budget != 0 && !stopped()) {
    bool moved = run_fetch(budget);
    moved |= run_stage(load_, budget, [this](uint64_t &left) { return execute_load(left); });
    moved |= run_stage(compute_, budget, [this](uint64_t &left) { return execute_compute(left); });
    moved |= run_stage(store_, budget, [this](uint64_t &left) { return execute_store(left); });
    if (!moved) budget = 0;
  }
  work_ += limit - budget;
  return limit - budget;
}

// Each stage below returns whether it got anywhere.

bool Accelerator::run_fetch(uint64_t &budget) {
  bool moved = false;
  while (fetching_ && budget != 0 && !stopped()) {
    if (fetched_ == addresses.insn_count) {
      fetching_ = false;
      return true;
    }
    const uint64_t from = addresses.insn_addr + fetched_ * kInstructionBytes;
    const uint8_t *bytes = memory_.at(from, kInstructionBytes);
    if (bytes == nullptr) {
      fault_ = {kDecodeError, memory_.first_outside(from)};
      return true;
    }
    const Instruction instruction = decode(bytes, fetched_);
    const uint32_t type = instruction.transfer.memory_type;
    const bool loads = instruction.opcode == kLoad && (type == kInp || type == kWgt);
    Stage &to = instruction.opcode == kStore ? store_ : loads ? load_ : compute_;
    if (to.queue.size() == VTA_INSN_QUEUE_DEPTH) return moved;
    to.queue.push_back(instruction);
    ++fetched_;
    ++fetch_counters_.instructions;
    fetch_counters_.bytes += kInstructionBytes;
    --budget;
    moved = true;
  }
  return moved;
}

template <typename Execute>
bool Accelerator::run_stage(Stage &stage, uint64_t &budget, Execute execute) {
  const Instruction &current = stage.current;
  const auto lacks = [](bool wants, const TokenQueue *queue) { return wants && queue != nullptr && queue->empty(); };
  const auto crowds = [](bool wants, const TokenQueue *queue) { return wants && queue != nullptr && queue->full(); };
  const auto add = [](bool wants, TokenQueue *queue, int count) {
    if (wants && queue != nullptr) queue->tokens += count;
  };
  bool moved = false;
  // FINISH stops the accelerator, but its own tokens are still pushed.
  while (stage.started && (!stopped() || stage.phase == Stage::Phase::kPush)) {
    switch (stage.phase) {
      case Stage::Phase::kTake:
        if (stage.queue.empty()) return moved;
        stage.current = stage.queue.front();
        stage.queue.pop_front();
        stage.phase = Stage::Phase::kPop;
        break;
      case Stage::Phase::kPop:
        if (lacks(current.pop_prev, stage.previous.from) || lacks(current.pop_next, stage.next.from)) return moved;
        add(current.pop_prev, stage.previous.from, -1);
        add(current.pop_next, stage.next.from, -1);
        stage.phase = Stage::Phase::kExecute;
        break;
      case Stage::Phase::kExecute:
        if (budget == 0) return moved;
        if (execute(budget)) stage.phase = Stage::Phase::kPush;
        break;
      case Stage::Phase::kPush:
        if (crowds(current.push_prev, stage.previous.to) || crowds(current.push_next, stage.next.to)) return moved;
        add(current.push_prev, stage.previous.to, 1);
        add(current.push_next, stage.next.to, 1);
        ++stage.counters.instructions;
        stage.phase = Stage::Phase::kTake;
        stage.started = stage.auto_restart;
        break;
    }
    moved = true;
  }
  return moved;
}

// Each of these spends from the budget and returns whether the instruction is complete.

bool Accelerator::execute_load(uint64_t &budget) {
  const Transfer &transfer = load_.current.transfer;
  const uint32_t address = transfer.memory_type == kInp ? addresses.inp_addr : addresses.wgt_addr;
  fault_ = load(*buffers_, memory_, address, transfer, load_.counters.bytes);
  --budget;
  return !fault_;
}

bool Accelerator::execute_compute(uint64_t &budget) {
  const Instruction &instruction = compute_.current;
  switch (instruction.opcode) {
    case kLoad:
      --budget;
      return execute_compute_load();
    case kGemm:
      if (!illegal_window(instruction.nest)) return execute_nest(budget);
      break;
    case kAlu:
      if (instruction.nest.alu_opcode <= kMul) return execute_nest(budget);
      break;
    case kFinish:
      --budget;
      done_ = true;
      return true;
    default:
      break;
  }
  fault_ = {kIllegalInstruction, instruction.number};
  return false;
}

bool Accelerator::execute_compute_load() {
  const Transfer &transfer = compute_.current.transfer;
  const uint32_t type = transfer.memory_type;
  if (type != kUop && type != kAcc && type != kAcc8Bit) {
    fault_ = {kIllegalInstruction, compute_.current.number};
    return false;
  }
  const uint32_t address = type == kUop ? addresses.uop_addr : addresses.bias_addr;
  fault_ = load(*buffers_, memory_, address, transfer, compute_.counters.bytes);
  return !fault_;
}

bool Accelerator::execute_nest(uint64_t &budget) {
  const Instruction &instruction = compute_.current;
  const bool gemm = instruction.opcode == kGemm;
  const uint64_t done = gemm ? run_gemm(*buffers_, instruction.nest, nest_, budget, fault_)
                             : run_alu(*buffers_, instruction.nest, nest_, budget, fault_);
  budget -= done;
  if (gemm) gemm_micro_ops_ += done;
  if (fault_ || !nest_.finished || budget == 0) return false;
  --budget;  // the instruction itself
  nest_ = {};
  return true;
}

bool Accelerator::execute_store(uint64_t &budget) {
  const Transfer &transfer = store_.current.transfer;
  --budget;
  if (illegal_store(transfer)) {
    fault_ = {kIllegalInstruction, store_.current.number};
    return false;
  }
  fault_ = store(*buffers_, memory_, addresses.out_addr, transfer, store_.counters.bytes);
  return !fault_;
}

}  // namespace vta
