// SPDX-License-Identifier: Apache-2.0

#include "machine.h"
#include "vta_registers.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace vta {
namespace {

// No port wants a beat on behalf of an instruction sooner than this after the instruction's last beat was granted to
// fetch: assembled 2 cycles later, routed, at the head of its queue, launched, and write data on the bus; or a read
// address, and its latency.
constexpr Cycle kFetchToWrite = 10, kFetchToReadAddress = 9;

// From the launch of a LOAD or STORE to its beginning: the address is worked out; a LOAD of ACC waits for GEMM's writes.
constexpr Cycle kSetUp = 1, kSetUpAcc = 4;

// From the end of a part of a LOAD over several ports to that of the LOAD.
constexpr Cycle kPartEnds = 1;

// From the beginning of a LOAD of INP over several ports to its fault, and to the end of one of nothing.
constexpr Cycle kPastInputs = 2, kNoInputs = 4;

// From the beginning of a STORE to the first cycle in which a beat of it is at hand: for the memory, for the table.
constexpr Cycle kFirstBeat = 2, kFirstBeatOfTable = 3;

// The table is written a word a cycle.
constexpr uint32_t kTableWordBytes = 8;

// The fault codes of docs/registers.md.
constexpr uint32_t kFaultUop = VTA_FAULT_UOP_INDEX,
                   kFaultInp = VTA_FAULT_INP_INDEX,
                   kFaultWgt = VTA_FAULT_WGT_INDEX,
                   kFaultAcc = VTA_FAULT_ACC_INDEX,
                   kFaultOut = VTA_FAULT_OUT_INDEX,
                   kFaultIllegal = VTA_FAULT_ILLEGAL_INSTRUCTION;

constexpr LoadedBuffer kInpBuffer{kInpBytes, kInpDepth, true, kFaultInp, kInpBytes};
constexpr LoadedBuffer kWgtBuffer{kWgtBytes, kWgtDepth, false, kFaultWgt, kWgtPartBytes};
constexpr LoadedBuffer kAccBuffer{kAccBytes, kAccDepth, true, kFaultAcc, kAccBytes};
constexpr LoadedBuffer kAcc8Buffer{kAcc8Bytes, kAccDepth, true, kFaultAcc, kAcc8Bytes};

enum StageNumber : uint32_t { kLoadStage = 1, kComputeStage = 2, kStoreStage = 3 };

uint32_t opcode_of(uint64_t word) { return word & 7; }

TokenBits token_bits_of(uint64_t word) {
  return {(word >> 3 & 1) != 0, (word >> 4 & 1) != 0, (word >> 5 & 1) != 0, (word >> 6 & 1) != 0};
}

uint32_t memory_type_of(uint64_t word) {
  if constexpr (kIsa == IsaRevision::kWide) return word >> 8 & 7;
  return word >> 7 & (kIsa == IsaRevision::kA ? 3 : 7);
}

StageNumber stage_of(uint64_t word) {
  if (opcode_of(word) == kStore) return kStoreStage;
  const bool load = opcode_of(word) == kLoad && (memory_type_of(word) == kInp || memory_type_of(word) == kWgt);
  return load ? kLoadStage : kComputeStage;
}

}  // namespace

// The masters' ports as the arbiter numbers them.
struct Machine::Ports {
  Ports(const Image &image, const vta_memory_model &model)
      : fetch(latency(model, 0), image.insn_address, image.instruction_count),
        load(latency(model, kLoadMaster)),
        compute(latency(model, kComputeMaster)),
        weights(others(model, std::make_index_sequence<kReadPorts - 1>{})),
        store(model.write_latency) {
    all = {&fetch, &load, &compute};
    for (uint32_t n = 0; n < weights.size(); ++n) all[kWeightsMaster + n] = &weights[n];
    all[kStoreMaster] = &store;
  }

  Cycle wants(uint32_t port) const { return all[port]->wants; }
  uint32_t run(uint32_t port) const { return all[port]->run; }
  template <typename Visit>
  void visit(uint32_t port, Visit visit) {
    if (port == kFetchMaster) return visit(fetch);
    if (port == kLoadMaster) return visit(load);
    if (port == kComputeMaster) return visit(compute);
    if (port == kStoreMaster) return visit(store);
    if constexpr (kReadPorts > 1) visit(weights[port - kWeightsMaster]);
  }
  void granted(uint32_t port, const Grants &grants) {
    visit(port, [&](auto &one) { granted(one, grants); });
  }
  template <typename OnePort>
  void granted(OnePort &port, const Grants &grants) {
    port.granted(grants);
    settled_ |= port.settled();
  }
  // Whether an instruction may have come or gone, so that there is something to advance.
  bool settled() const { return settled_; }
  void unsettle() { settled_ = false; }
  Cycle first_wish() const {
    Cycle first = kNever;
    for (const Port *port : all) first = std::min(first, port->wants);
    return first;
  }

  FetchPort fetch;
  ReadPort load, compute;
  LoadPort::Others weights;
  LoadPort load_stage{load, weights};
  WritePort store;
  std::array<const Port *, kMasters> all;

 private:
  static ReadLatency latency(const vta_memory_model &model, uint32_t port) {
    return {model.read_latency, model.jitter, model.seed, port};
  }
  template <size_t... N>
  static LoadPort::Others others(const vta_memory_model &model, std::index_sequence<N...>) {
    return {ReadPort(latency(model, kWeightsMaster + N))...};
  }

  bool settled_ = false;
};

vta_timing_result Machine::run(const Image &image, const vta_memory_model &model, vta_timing_span *timeline) {
  begin(image, timeline);
  Ports ports(image, model);
  Arbiter arbiter(model);
  while (true) {
    const Cycle now = std::max(ports.first_wish(), arbiter.now());
    if (now > end_ || now >= kNever) break;
    Cycle end = end_ + 1;
    if (ports.fetch.wants <= now) end = std::min(end, now + fetch_to_wish(ports.fetch, model));
    arbiter.grant(ports, now, end);
    if (ports.settled()) {
      ports.unsettle();
      advance(ports);
    }
  }
  return result(ports);
}

// Cycles from now on in which no instruction that fetch is about to receive can make a port want a beat.
Cycle Machine::fetch_to_wish(const FetchPort &fetch, const vta_memory_model &model) const {
  const uint32_t end = std::min(fetch.end_awaited(), image_.instruction_count);
  for (uint32_t number = fetch.first_awaited(); number < end; ++number)
    if (opcode_of(first_word(number)) == kStore) return kFetchToWrite;
  return kFetchToReadAddress + std::max(1u, model.read_latency);
}

void Machine::begin(const Image &image, vta_timing_span *timeline) {
  image_ = image;
  timeline_ = timeline;
  for (auto *tokens : {&load_to_compute_, &compute_to_load_, &compute_to_store_, &store_to_compute_}) tokens->clear();
  for (auto *stage : {&load_, &compute_, &store_}) stage->clear();
  uops_.clear();
  chain_.close();
  fold_.clear();
  routed_ = 0;
  end_ = kNever;
  fault_ = 0;
  gemms_ = unwanted_bytes_ = 0;
}

// Computes all that follows from what is known.
void Machine::advance(Ports &ports) {
  bool more = true;
  while (more) {
    route(ports.fetch);
    more = advance(load_, ports.load_stage, [&](uint32_t next) { launch_load(ports.load_stage, next); });
    more |= advance(compute_, ports.compute, [&](uint32_t next) { launch_compute(ports.compute, next); });
    more |= advance(store_, ports.store, [&](uint32_t next) { launch_store(ports.store, next); });
  }
}

// Puts what is assembled into the stages' queues, as far as it is known when there is room.
void Machine::route(FetchPort &fetch) {
  while (fetch.offers()) {
    const StageNumber number = stage_of(first_word(routed_));
    Stage &stage = number == kLoadStage ? load_ : number == kComputeStage ? compute_ : store_;
    const Cycle at = std::max(fetch.offered(), stage.can_enqueue());
    if (at >= kNever) break;
    timeline_[routed_] = {0, 0, number, 0};
    stage.enqueue(routed_++, at);
    fetch.route(at);
  }
}

// Executes the stage's instructions as far as they are known to go; whether any went.
template <typename StagePort, typename Launch>
bool Machine::advance(Stage &stage, StagePort &port, Launch launch) {
  bool any = false;
  while (!stage.halted()) {
    if (stage.executing()) {
      if (&stage == &compute_ && chain_.is_open()) {
        any |= join();
        if (chain_.is_open()) break;
      }
      if (&stage == &compute_ && fold_.looks()) {
        if (!fold()) break;
        any = true;
      }
      if (!stage.finished()) {
        if constexpr (std::is_same_v<StagePort, WritePort>) {
          if (port.fault() != kNever) end_by(stage, port.fault(),
                   kFaultOut);
        }
        if (port.done() == kNever || stage.halted()) break;
        if (stage.transfer_fault() != 0) {
          end_by(stage, port.done(), stage.transfer_fault());
          break;
        }
        stage.finish(port.done());
      }
      if (!stage.retire()) break;
      vta_timing_span &span = timeline_[stage.last_number()];
      span.end = static_cast<uint64_t>(stage.done()) + 1;
      any = true;
    }
    if (!stage.has_instruction() || stage.free() > end_) break;
    const uint32_t number = stage.next_number();
    if (!stage.take(token_bits_of(first_word(number)))) break;
    timeline_[number].start = static_cast<uint64_t>(stage.launched());
    launch(number);
    any = true;
  }
  return any;
}

const uint8_t *Machine::instruction(uint32_t number) const {
  return image_.instructions + uint64_t{number} * kInstructionBytes;
}

uint64_t Machine::first_word(uint32_t number) const {
  uint64_t word;
  std::memcpy(&word, instruction(number), sizeof word);
  return word;
}

// The stage's instruction ends the program in this cycle: with a fault, or as FINISH.
void Machine::end_by(Stage &stage, Cycle at, uint32_t fault) {
  if (fault != 0) {
    stage.halt();
    ++at;  // it is registered first
  }
  if (at > end_ || (at == end_ && fault_ != 0)) return;
  end_ = at;
  fault_ = fault;
}

void Machine::launch_load(LoadPort &port, uint32_t number) {
  const Transfer transfer = decode(instruction(number), number).transfer;
  if (kReadPorts > 1 && transfer.memory_type == kInp) return share_inputs(port, transfer);
  load_block(load_, port, transfer, transfer.memory_type == kWgt ? kWgtBuffer : kInpBuffer);
}

// Whether the block ends past the buffer is known before anything is written.
void Machine::share_inputs(LoadPort &port, const Transfer &transfer) {
  const Fill fill = shared_fill_of(transfer, kInpBuffer);
  const Cycle launch = load_.launched() + kSetUp;
  load_.set_transfer_fault(0);
  if (fill.past) {
    end_by(load_, launch + kPastInputs, kFaultInp);
  } else if (fill.elements == 0) {
    load_.finish(launch + std::max(kNoInputs, kPastInputs + 1 + fill.lead));
  } else {
    port.share(launch, block_of(transfer, kInpBuffer), fill);
  }
}

void Machine::launch_compute(ReadPort &port, uint32_t number) {
  const uint32_t opcode = opcode_of(first_word(number));
  if (opcode == kGemm || opcode == kAlu) {
    execute(number);
  } else if (opcode == kFinish) {
    compute_.finish(compute_.launched());
    end_by(compute_, compute_.launched() + 1, 0);
  } else if (opcode == kLoad) {
    const Transfer transfer = decode(instruction(number), number).transfer;
    if (transfer.memory_type == kUop) return load_uops(port, transfer);
    if (transfer.memory_type == kAcc) return load_block(compute_, port, transfer, kAccBuffer);
    if (transfer.memory_type == kAcc8Bit) return load_block(compute_, port, transfer, kAcc8Buffer);
    end_by(compute_, compute_.launched(),
                   kFaultIllegal);
  } else {
    end_by(compute_, compute_.launched(),
                   kFaultIllegal);
  }
}

void Machine::execute(uint32_t number) {
  const NestTime time = nests_.of(instruction(number), uops_);
  const TokenBits tokens = token_bits_of(first_word(number));
  Cycle end = compute_.launched() + time.cycles;
  const bool folded = fold_.folded();
  if (folded) end = end_of_folded(time, number, end);
  fold_.clear();
  gemms_ += time.gemms;
  if (time.fault != 0) {
    end_by(compute_, end, time.fault);
  } else if (time.opens_chain && !tokens.push_prev && !tokens.push_next) {
    chain_.open(decode(instruction(number), number), compute_.launched() + kFirstLook, compute_.launched() + kFirstIssue,
                time.cycles - kFirstIssue);
  } else if (time.opens_fold && !tokens.push_prev && !tokens.push_next) {
    fold_.open(decode(instruction(number), number), uops_, compute_.launched(), time.cycles);
  } else {
    const bool waits = opcode_of(first_word(number)) == kGemm && tokens.push_next && !time.empty && !folded;
    compute_.finish(waits ? end + kGemmWrites : end);
  }
}

// Of a GEMM that clears for the reset before it, which alone would end, or have its fault, in `end`.
Cycle Machine::end_of_folded(const NestTime &time, uint32_t number, Cycle end) {
  if (time.gemms != 0) end += kGemmWrites;
  const Nest gemm = decode(instruction(number), number).nest;
  const bool covered =
      time.fault != 0 || time.empty ? fold_.covered(gemm, time.gemms, uops_) : fold_.covered(gemm, uops_);
  return covered ? end : end + kReplay + fold_.cycles() + kGemmWrites;
}

// Looks at the instruction after compute's reset; whether there was any.
bool Machine::fold() {
  if (!compute_.has_instruction()) return false;
  const uint32_t number = compute_.next_number();
  const Cycle look = std::max(fold_.look(), compute_.at_head());
  if (fold_.fold(decode(instruction(number), number))) {
    compute_.finish(look + 1);
  } else {
    compute_.finish(std::max(look + 1, fold_.launch() + kFirstIssue) + fold_.cycles() - kFirstIssue);
  }
  return true;
}

// Looks at compute's next instructions while they join the one in execution; whether there was any.
bool Machine::join() {
  bool any = false;
  while (chain_.is_open() && compute_.has_instruction()) {
    any = true;
    const uint32_t number = compute_.next_number();
    const Cycle at = std::max(chain_.look(), compute_.at_head());
    if (chain_.join(decode(instruction(number), number), at)) {
      timeline_[compute_.last_number()].end = static_cast<uint64_t>(at) + 1;
      timeline_[number].start = static_cast<uint64_t>(at) + 1;
      compute_.join(token_bits_of(first_word(number)), at);
    }
    if (!chain_.is_open()) compute_.finish(chain_.done(at + 1));
  }
  return any;
}

template <typename StagePort>
void Machine::load_block(Stage &stage, StagePort &port, const Transfer &transfer, const LoadedBuffer &buffer) {
  const Fill fill = fill_of(transfer, buffer);
  const Cycle launch = stage.launched() + (&stage == &compute_ ? kSetUpAcc : kSetUp);
  stage.set_transfer_fault(fill.past ? buffer.fault : 0);
  if (fill.elements != 0) {
    port.start(launch, block_of(transfer, buffer), fill);
  } else if (fill.past) {
    end_by(stage, launch + 1 + fill.lead, buffer.fault);
  } else {
    stage.finish(launch + std::max<Cycle>(fill.lead, 1) + (&stage == &load_ && kReadPorts > 1 ? kPartEnds : 0));
  }
}

// Beats may begin and end amid micro-ops. A LOAD that would pass the end of the buffer does nothing.
void Machine::load_uops(ReadPort &port, const Transfer &transfer) {
  const Cycle launch = compute_.launched() + kSetUp;
  compute_.set_transfer_fault(0);
  if (transfer.x_size == 0) {
    compute_.finish(launch + 1);
    return;
  }
  if (transfer.sram_base + transfer.x_size > kUopDepth) {
    end_by(compute_, launch + 1,
                   kFaultUop);
    return;
  }
  const uint64_t begin = uint64_t{transfer.dram_base} * kUopBytes;
  const uint64_t end = begin + uint64_t{transfer.x_size} * kUopBytes;
  const uint64_t beats = (end + kBusBytes - 1) / kBusBytes - begin / kBusBytes;
  const Block block{begin / kBusBytes * kBusBytes, beats, 1, 0};
  Fill fill{};
  fill.row_elements = static_cast<uint32_t>(beats);
  fill.elements = beats;
  unwanted_bytes_ += beats * kBusBytes - (end - begin);
  port.start(launch, block, fill);
  copy_uops(transfer);
}

void Machine::copy_uops(const Transfer &transfer) {
  const uint64_t from = uint64_t{transfer.dram_base} * kUopBytes;
  const uint64_t offset = from - image_.uop_address;
  const uint64_t bytes = uint64_t{transfer.x_size} * kUopBytes;
  if (from >= image_.uop_address && offset <= image_.uop_bytes && bytes <= image_.uop_bytes - offset) {
    uops_.load(reinterpret_cast<const UopWord *>(image_.uops + offset), transfer.x_size, transfer.sram_base);
  } else {
    uops_.load_zeros(transfer.x_size, transfer.sram_base);
  }
}

void Machine::launch_store(WritePort &port, uint32_t number) {
  const Transfer transfer = decode(instruction(number), number).transfer;
  const Cycle launch = store_.launched() + kSetUp;
  store_.set_transfer_fault(0);
  if (illegal_store(transfer)) {
    end_by(store_, store_.launched(), kFaultIllegal);
    return;
  }
  const uint64_t elements = uint64_t{transfer.x_size} * transfer.y_size;
  if (elements == 0) {
    store_.finish(launch + 1);
    return;
  }
  const uint64_t room = kOutDepth - std::min(transfer.sram_base, kOutDepth);
  const uint64_t beats = std::min(elements, room) * (kOutBytes / kBusBytes);
  const uint32_t type = store_type(transfer);
  const Cycle at_hand = launch + (type == kOut ? kFirstBeat : kFirstBeatOfTable);
  if (type == kTable && elements > room) {
    end_by(store_, at_hand + static_cast<Cycle>(beats * (kBusBytes / kTableWordBytes)), kFaultOut);
  } else if (type == kTable) {
    store_.finish(at_hand + kTableBytes / kTableWordBytes - 1);
  } else {
    port.start(launch, at_hand, block_of(transfer, kOutBytes), beats, elements > room);
  }
}

vta_timing_result Machine::result(const Ports &ports) const {
  vta_timing_result result{};
  const bool never = end_ >= kNever;
  result.status = never ? VTA_TIMING_NEVER : fault_ != 0 ? VTA_TIMING_FAULT : VTA_TIMING_DONE;
  result.fault = fault_;
  vta_counters &counters = result.counters;
  std::array<vta_stage_counters *, 4> stages{&counters.fetch, &counters.load, &counters.compute, &counters.store};

  Cycle end = end_;
  if (never) {
    end = ports.fetch.last_route();
    for (uint32_t n = 0; n < routed_; ++n) end = std::max(end, static_cast<Cycle>(timeline_[n].end) - 1);
  }
  const auto cycles = static_cast<uint64_t>(end) + 1;
  for (uint32_t n = 0; n < image_.instruction_count; ++n) {
    vta_timing_span &span = timeline_[n];
    if (n >= routed_ || span.start == 0 || span.start >= cycles) {
      span.start = span.end = 0;
      continue;
    }
    vta_stage_counters &stage = *stages[span.stage];
    span.end = span.end == 0 ? cycles : std::min(span.end, cycles);
    stage.busy += span.end - span.start;
  }
  counters.cycles = cycles;
  counters.macs = gemms_ * kBatch * kBlock * kBlock;
  const auto fetched = static_cast<uint64_t>(ports.fetch.last_route()) + 1;
  counters.fetch.busy = image_.instruction_count == 0 ? 2 : std::min(cycles, fetched);
  counters.fetch.instructions = routed_;
  counters.fetch.starved = ports.fetch.blocked();
  counters.fetch.stalled = counters.fetch.busy - counters.fetch.starved - routed_;
  counters.fetch.bytes = ports.fetch.beats() * kBusBytes;
  counters.load.instructions = load_.retired(end);
  counters.compute.instructions = compute_.retired(end);
  counters.store.instructions = store_.retired(end);
  counters.load.stalled = ports.load_stage.stalled(end);
  counters.compute.stalled = ports.compute.stalled(end);
  counters.store.stalled = ports.store.stalled(end);
  counters.load.bytes = ports.load_stage.beats() * kBusBytes;
  counters.compute.bytes = ports.compute.beats() * kBusBytes - unwanted_bytes_;
  counters.store.bytes = ports.store.beats(end) * kBusBytes;
  for (auto *stage : {&counters.load, &counters.compute, &counters.store}) stage->starved = cycles - stage->busy;
  return result;
}

}  // namespace vta
