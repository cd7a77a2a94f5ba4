// The C API of vta_sim.h over the golden model: its registers (HARDWARE.md section 4, docs/architecture.md) and memory.
// It has no time: `cycles`, here and in the register, count instructions and micro-ops (golden/accelerator.h), so that
// a caller's limit on cycles bounds the work, and busy, starved and stalled are 0. Memory timing is ignored.
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "accelerator.h"
#include "physical_memory.h"
#include "parameters.h"
#include "vta_sim.h"

namespace {

enum Page : uint32_t { kFetch = 0x0000, kLoadPage = 0x1000, kComputePage = 0x2000, kStorePage = 0x3000, kEnd = 0x4000 };

constexpr uint32_t kControlStart = 1u << 0, kControlDone = 1u << 1, kControlIdle = 1u << 2, kControlReady = 1u << 3,
                   kControlAutoRestart = 1u << 7;

constexpr uint32_t kIdentity = 0x48494C54, kMapVersion = 1;

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

uint32_t control(bool running, bool auto_restart, uint64_t completed) {
  const uint32_t done = completed != 0 ? kControlDone | kControlReady : 0;
  return (running ? kControlStart : kControlIdle | done) | (auto_restart ? kControlAutoRestart : 0);
}

uint32_t control(const vta::Stage &stage) {
  return control(stage.started, stage.auto_restart, stage.counters.instructions);
}

uint32_t read_stage_counters(uint32_t offset, const vta::StageCounters &counters) {
  switch (offset) {
    case 0x98: return low(counters.bytes);
    case 0x9C: return high(counters.bytes);
    case 0xA0: return low(counters.instructions);
    case 0xA4: return high(counters.instructions);
    default: return 0;
  }
}

uint64_t macs(const vta::Counters &counters) {
  return counters.gemm_micro_ops * vta::kBatch * vta::kBlock * vta::kBlock;
}

vta_stage_counters public_counters(const vta::StageCounters &counters) {
  return {0, 0, 0, counters.bytes, counters.instructions};
}

}  // namespace

struct vta_device {
  explicit vta_device(const vta_memory_model &model)
      : memory(model.memory_base, model.memory_bytes), accelerator(memory) {}

  uint32_t read(uint32_t offset) const;
  void write(uint32_t offset, uint32_t value);

  vta::PhysicalMemory memory;
  vta::Accelerator accelerator;

 private:
  uint32_t read_fetch(uint32_t offset) const;
  void write_control(uint32_t page, uint32_t value);
  uint32_t done_written = 0;
};

uint32_t vta_device::read_fetch(uint32_t offset) const {
  const vta::Counters counters = accelerator.counters();
  switch (offset) {
    case 0x00: return control(accelerator.fetching(), false, counters.fetch.instructions);
    case 0x10: return accelerator.addresses.insn_count;
    case 0x18: return accelerator.addresses.insn_addr;
    case 0x40: return kIdentity;
    case 0x44: return kMapVersion;
    case 0x48:
      return VTA_LOG_BATCH | VTA_LOG_BLOCK << 4 | VTA_LOG_INP_WIDTH << 8 | VTA_LOG_WGT_WIDTH << 12 |
             VTA_LOG_ACC_WIDTH << 16;
    case 0x4C:
      return VTA_LOG_UOP_BUFF_SIZE | VTA_LOG_INP_BUFF_SIZE << 8 | VTA_LOG_WGT_BUFF_SIZE << 16 |
             VTA_LOG_ACC_BUFF_SIZE << 24;
    case 0x50: return VTA_ISA_REVISION | vta::log2_of(VTA_BUS_WIDTH) << 8 | VTA_HAZARD_INTERLOCK << 12;
    case 0x54: return accelerator.fault().code;
    case 0x58: return low(accelerator.fault().address);
    case 0x5C: return high(accelerator.fault().address);
    case 0x60: return low(counters.work);
    case 0x64: return high(counters.work);
    case 0x70: return low(counters.gemm_micro_ops);
    case 0x74: return high(counters.gemm_micro_ops);
    default: return read_stage_counters(offset, counters.fetch);
  }
}

uint32_t vta_device::read(uint32_t offset) const {
  const vta::Addresses &addresses = accelerator.addresses;
  const uint32_t page = offset & 0xF000;
  if (page == kFetch) return read_fetch(offset);
  switch (offset) {
    case kLoadPage: return control(accelerator.load_stage());
    case kLoadPage + 0x10: return addresses.inp_addr;
    case kLoadPage + 0x18: return addresses.wgt_addr;
    case kComputePage: return control(accelerator.compute_stage());
    case kComputePage + 0x10: return done_written;
    case kComputePage + 0x18: return accelerator.state() == vta::RunState::kDone;
    case kComputePage + 0x20: return addresses.uop_addr;
    case kComputePage + 0x28: return addresses.bias_addr;
    case kStorePage: return control(accelerator.store_stage());
    case kStorePage + 0x10: return addresses.out_addr;
    default: break;
  }
  const vta::Counters counters = accelerator.counters();
  return read_stage_counters(offset & 0xFFF, page == kLoadPage      ? counters.load
                                             : page == kComputePage ? counters.compute
                                                                    : counters.store);
}

void vta_device::write_control(uint32_t page, uint32_t value) {
  if ((value & kControlStart) == 0) return;
  const bool auto_restart = value & kControlAutoRestart;
  switch (page) {
    case kFetch: accelerator.start_fetch(); break;
    case kLoadPage: accelerator.start_load(auto_restart); break;
    case kComputePage: accelerator.start_compute(auto_restart); break;
    default: accelerator.start_store(auto_restart); break;
  }
}

void vta_device::write(uint32_t offset, uint32_t value) {
  vta::Addresses &addresses = accelerator.addresses;
  switch (offset) {
    case kFetch:
    case kLoadPage:
    case kComputePage:
    case kStorePage: write_control(offset, value); break;
    case kFetch + 0x10: addresses.insn_count = value; break;
    case kFetch + 0x18: addresses.insn_addr = value; break;
    case kFetch + 0x68:
      if (value & 1) accelerator.soft_reset();
      break;
    case kLoadPage + 0x10: addresses.inp_addr = value; break;
    case kLoadPage + 0x18: addresses.wgt_addr = value; break;
    case kComputePage + 0x10: done_written = value; break;
    case kComputePage + 0x20: addresses.uop_addr = value; break;
    case kComputePage + 0x28: addresses.bias_addr = value; break;
    case kStorePage + 0x10: addresses.out_addr = value; break;
    default: break;
  }
}

extern "C" {

uint32_t vta_api_version(void) { return VTA_SIM_API_VERSION; }

const char *vta_describe(void) {
  static const std::string text = [] {
    const char *isa = VTA_ISA_REVISION == 0 ? "A" : VTA_ISA_REVISION == 1 ? "B" : "wide";
    char line[256];
    std::snprintf(line, sizeof line,
                  "{\"form\": \"golden\", \"parameters\": \"%ux%u_i%dw%da%d_%d_%d_%d_%d\", \"isa\": \"%s\", "
                  "\"bus_bits\": %d, \"hazards\": \"%s\"}",
                  vta::kBatch, vta::kBlock, 1 << VTA_LOG_INP_WIDTH, 1 << VTA_LOG_WGT_WIDTH, 1 << VTA_LOG_ACC_WIDTH,
                  VTA_LOG_UOP_BUFF_SIZE, VTA_LOG_INP_BUFF_SIZE, VTA_LOG_WGT_BUFF_SIZE, VTA_LOG_ACC_BUFF_SIZE, isa,
                  VTA_BUS_WIDTH, VTA_HAZARD_INTERLOCK ? "interlock" : "none");
    return std::string(line);
  }();
  return text.c_str();
}

vta_device *vta_create(const vta_memory_model *memory, char *error, size_t error_bytes) {
  const auto refuse = [&](const char *reason) -> vta_device * {
    if (error != nullptr && error_bytes != 0) std::snprintf(error, error_bytes, "%s", reason);
    return nullptr;
  };
  if (memory == nullptr) return refuse("no memory model");
  if (memory->memory_base % 4096 != 0) return refuse("memory_base is not a multiple of 4096");
  if (memory->memory_bytes == 0) return refuse("memory_bytes is 0");
  if (memory->memory_base + memory->memory_bytes < memory->memory_base) return refuse("the memory passes 2^64");
  if (memory->bandwidth_numerator != 0 && memory->bandwidth_denominator == 0)
    return refuse("bandwidth_denominator is 0");
  try {
    auto device = std::make_unique<vta_device>(*memory);
    if (device->memory.bytes() == nullptr) return refuse("the system has no memory of that size");
    return device.release();
  } catch (const std::bad_alloc &) {
    return refuse("the system has no memory for the model");
  }
}

void vta_destroy(vta_device *device) { delete device; }

void vta_reset(vta_device *device) { device->accelerator.reset(); }

uint8_t *vta_memory(vta_device *device) { return device->memory.bytes(); }

int vta_read_memory(vta_device *device, uint64_t address, void *bytes, uint64_t count) {
  const uint8_t *from = device->memory.at(address, count);
  if (from == nullptr) return VTA_BAD_ADDRESS;
  std::memcpy(bytes, from, count);
  return 0;
}

int vta_write_memory(vta_device *device, uint64_t address, const void *bytes, uint64_t count) {
  uint8_t *to = device->memory.at(address, count);
  if (to == nullptr) return VTA_BAD_ADDRESS;
  std::memcpy(to, bytes, count);
  return 0;
}

int vta_read_register(vta_device *device, uint32_t offset, uint32_t *value) {
  if (offset % 4 != 0 || offset >= kEnd) return VTA_BAD_ADDRESS;
  *value = device->read(offset);
  return 0;
}

int vta_write_register(vta_device *device, uint32_t offset, uint32_t value) {
  if (offset % 4 != 0 || offset >= kEnd) return VTA_BAD_ADDRESS;
  device->write(offset, value);
  return 0;
}

int vta_step(vta_device *device, uint64_t max_cycles, uint64_t *ran) {
  uint64_t spent = 0;
  int status = VTA_RUNNING;
  try {
    spent = device->accelerator.run(max_cycles);
  } catch (const std::bad_alloc &) {  // an instruction queue could not grow
    status = VTA_BAD_ARGUMENT;
  }
  if (ran != nullptr) *ran = spent;
  if (status < 0) return status;
  switch (device->accelerator.state()) {
    case vta::RunState::kIdle: return VTA_IDLE;
    case vta::RunState::kRunning: return VTA_RUNNING;
    case vta::RunState::kDone: return VTA_DONE;
    default: return VTA_FAULT;
  }
}

void vta_read_counters(vta_device *device, vta_counters *counters) {
  const vta::Counters now = device->accelerator.counters();
  *counters = {now.work, macs(now), public_counters(now.fetch), public_counters(now.load), public_counters(now.compute),
               public_counters(now.store)};
}

}  // extern "C"
