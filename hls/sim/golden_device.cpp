// SPDX-License-Identifier: Apache-2.0
//
// The C API of vta_sim.h over the golden model: its registers (docs/registers.md) and memory.
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
#include "vta_registers.h"
#include "vta_sim.h"

namespace {

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

uint32_t control(bool running, bool auto_restart, uint64_t completed) {
  const uint32_t done = completed != 0 ? VTA_CONTROL_DONE | VTA_CONTROL_READY : 0;
  return (running ? VTA_CONTROL_START : VTA_CONTROL_IDLE | done) | (auto_restart ? VTA_CONTROL_AUTO_RESTART : 0);
}

uint32_t control(const vta::Stage &stage) {
  return control(stage.started, stage.auto_restart, stage.counters.instructions);
}

uint32_t read_stage_counters(uint32_t offset, const vta::StageCounters &counters) {
  switch (offset) {
    case VTA_REG_FETCH_BYTES_LOW: return low(counters.bytes);
    case VTA_REG_FETCH_BYTES_HIGH: return high(counters.bytes);
    case VTA_REG_FETCH_INSTRUCTIONS_LOW: return low(counters.instructions);
    case VTA_REG_FETCH_INSTRUCTIONS_HIGH: return high(counters.instructions);
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
    case VTA_REG_FETCH_CONTROL: return control(accelerator.fetching(), false, counters.fetch.instructions);
    case VTA_REG_INSN_COUNT: return accelerator.addresses.insn_count;
    case VTA_REG_INSN_ADDR: return accelerator.addresses.insn_addr;
    case VTA_REG_IDENTITY: return VTA_IDENTITY_VALUE;
    case VTA_REG_MAP_VERSION: return VTA_MAP_VERSION_VALUE;
    case VTA_REG_GEOMETRY:
      return VTA_LOG_BATCH | VTA_LOG_BLOCK << 4 | VTA_LOG_INP_WIDTH << 8 | VTA_LOG_WGT_WIDTH << 12 |
             VTA_LOG_ACC_WIDTH << 16;
    case VTA_REG_BUFFER_SIZES:
      return VTA_LOG_UOP_BUFF_SIZE | VTA_LOG_INP_BUFF_SIZE << 8 | VTA_LOG_WGT_BUFF_SIZE << 16 |
             VTA_LOG_ACC_BUFF_SIZE << 24;
    case VTA_REG_BUILD: return VTA_ISA_REVISION | vta::log2_of(VTA_BUS_WIDTH) << 8 | VTA_HAZARD_INTERLOCK << 12 |
             VTA_TABLE << 13 | vta::log2_of(VTA_READ_PORTS) << 14 | uint32_t{vta::kHasWindow} << 16 |
             VTA_BANDS << 17;
    case VTA_REG_FAULT_CODE: return accelerator.fault().code;
    case VTA_REG_FAULT_ADDRESS_LOW: return low(accelerator.fault().address);
    case VTA_REG_FAULT_ADDRESS_HIGH: return high(accelerator.fault().address);
    case VTA_REG_CYCLES_LOW: return low(counters.work);
    case VTA_REG_CYCLES_HIGH: return high(counters.work);
    case VTA_REG_GEMM_MICRO_OPS_LOW: return low(counters.gemm_micro_ops);
    case VTA_REG_GEMM_MICRO_OPS_HIGH: return high(counters.gemm_micro_ops);
    default: return read_stage_counters(offset, counters.fetch);
  }
}

uint32_t vta_device::read(uint32_t offset) const {
  const vta::Addresses &addresses = accelerator.addresses;
  const uint32_t page = offset & 0xF000;
  if (page == VTA_PAGE_FETCH) return read_fetch(offset);
  switch (offset) {
    case VTA_REG_LOAD_CONTROL: return control(accelerator.load_stage());
    case VTA_REG_INP_ADDR: return addresses.inp_addr;
    case VTA_REG_WGT_ADDR: return addresses.wgt_addr;
    case VTA_REG_COMPUTE_CONTROL: return control(accelerator.compute_stage());
    case VTA_REG_DONE_WRITE: return done_written;
    case VTA_REG_DONE_READ: return accelerator.state() == vta::RunState::kDone;
    case VTA_REG_UOP_ADDR: return addresses.uop_addr;
    case VTA_REG_BIAS_ADDR: return addresses.bias_addr;
    case VTA_REG_STORE_CONTROL: return control(accelerator.store_stage());
    case VTA_REG_OUT_ADDR: return addresses.out_addr;
    default: break;
  }
  const vta::Counters counters = accelerator.counters();
  return read_stage_counters(offset & 0xFFF, page == VTA_PAGE_LOAD      ? counters.load
                                             : page == VTA_PAGE_COMPUTE ? counters.compute
                                                                    : counters.store);
}

void vta_device::write_control(uint32_t page, uint32_t value) {
  if ((value & VTA_CONTROL_START) == 0) return;
  const bool auto_restart = value & VTA_CONTROL_AUTO_RESTART;
  switch (page) {
    case VTA_REG_FETCH_CONTROL: accelerator.start_fetch(); break;
    case VTA_REG_LOAD_CONTROL: accelerator.start_load(auto_restart); break;
    case VTA_REG_COMPUTE_CONTROL: accelerator.start_compute(auto_restart); break;
    default: accelerator.start_store(auto_restart); break;
  }
}

void vta_device::write(uint32_t offset, uint32_t value) {
  vta::Addresses &addresses = accelerator.addresses;
  switch (offset) {
    case VTA_REG_FETCH_CONTROL:
    case VTA_REG_LOAD_CONTROL:
    case VTA_REG_COMPUTE_CONTROL:
    case VTA_REG_STORE_CONTROL: write_control(offset, value); break;
    case VTA_REG_INSN_COUNT: addresses.insn_count = value; break;
    case VTA_REG_INSN_ADDR: addresses.insn_addr = value; break;
    case VTA_REG_SOFT_RESET:
      if (value & 1) accelerator.soft_reset();
      break;
    case VTA_REG_INP_ADDR: addresses.inp_addr = value; break;
    case VTA_REG_WGT_ADDR: addresses.wgt_addr = value; break;
    case VTA_REG_DONE_WRITE: done_written = value; break;
    case VTA_REG_UOP_ADDR: addresses.uop_addr = value; break;
    case VTA_REG_BIAS_ADDR: addresses.bias_addr = value; break;
    case VTA_REG_OUT_ADDR: addresses.out_addr = value; break;
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
  if (offset % 4 != 0 || offset >= VTA_PAGE_END) return VTA_BAD_ADDRESS;
  *value = device->read(offset);
  return 0;
}

int vta_write_register(vta_device *device, uint32_t offset, uint32_t value) {
  if (offset % 4 != 0 || offset >= VTA_PAGE_END) return VTA_BAD_ADDRESS;
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
