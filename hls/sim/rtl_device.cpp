// SPDX-License-Identifier: Apache-2.0
//
// The C API of vta_sim.h over the Verilated RTL.
//
// Inputs are set before a rising edge from outputs that are a function of registers alone, so one evaluation per edge
// settles everything. Registers are accessed through the AXI4-Lite port, which takes cycles.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "Vvta_top.h"
#include "Vvta_top___024root.h"
#include "memory_ports.h"
#include "verilated.h"
#include "vta_registers.h"
#include "vta_sim.h"
#if VM_COVERAGE
#include <unistd.h>

#include "verilated_cov.h"
#endif
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

// Verilator's own, which its Vvta_top calls.
void Vvta_top___024root___eval(Vvta_top___024root *);
void Vvta_top___024root___eval_nba(Vvta_top___024root *);

namespace {

constexpr uint32_t kRegisterBytes = VTA_PAGE_END;
constexpr int kResetCycles = 4;
constexpr int kAccessCycles = 1000;  // an AXI4-Lite access that takes longer never ends

// The RTL does nothing at a falling edge. Verilator finds a rising one by the clock at its last evaluation: to set that is
// to save the evaluation, half of all. Where this Verilator calls it otherwise, the edge is evaluated.
template <typename Root>
auto lower_clock(Vvta_top &, Root *root, int) -> decltype(root->__Vtrigprevexpr___TOP__clk__0, void()) {
  root->__Vtrigprevexpr___TOP__clk__0 = 0;
}
template <typename Root>
void lower_clock(Vvta_top &top, Root *, long) {
  top.clk = 0;
  top.eval();
}

// The steps after the edge if no input changed since the last evaluation, which has settled the inputs' effects.
// Of triggers this design has one, the rising clock. False where this Verilator calls it otherwise, or there are more.
// Assertions sample their values in the evaluation that this saves: a build with --assert does without it, as traces do.
template <typename Root>
auto only_edge(Root *root, int)
    -> decltype(root->__VnbaTriggered[0] = 1, root->__Vtrigprevexpr___TOP__clk__0, bool()) {
  static_assert(sizeof root->__VnbaTriggered == sizeof(QData));
  root->__VnbaTriggered[0] = 1;
  Vvta_top___024root___eval_nba(root);
  root->__VnbaTriggered[0] = 0;
  return true;
}
template <typename Root>
bool only_edge(Root *, long) {
  return false;
}

}  // namespace

struct vta_device {
  explicit vta_device(const vta_memory_model &model)
      : model_(model), memory(model.memory_base, model.memory_bytes) {}

  ~vta_device() { write_coverage(); }

  void reset();
  void tick();
  bool read_register(uint32_t offset, uint32_t &value);
  bool write_register(uint32_t offset, uint32_t value);
  int status() const;
  int trace(const char *path);

 private:
  void write_coverage();
  void rising_edge();

  vta_memory_model model_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vvta_top> top_;
  std::unique_ptr<vta::MemoryPorts> ports_;
  bool inputs_changed_ = true;  // since the last evaluation
#if VM_TRACE
  std::unique_ptr<VerilatedFstC> trace_;
  std::string trace_path_;
#endif

 public:
  vta::PhysicalMemory memory;
};

// The lines that this model covered, in a file of its own; only in profile coverage, in the folder VTA_COVERAGE_FOLDER.
void vta_device::write_coverage() {
#if VM_COVERAGE
  const char *folder = std::getenv("VTA_COVERAGE_FOLDER");
  if (folder == nullptr || !context_) return;
  static int number = 0;
  const std::string file = std::to_string(getpid()) + "-" + std::to_string(number++) + ".dat";
  context_->coveragep()->write((std::string(folder) + "/" + file).c_str());
#endif
}

// A new model, because block RAM has no reset: power-on is the one time that buffers are cleared.
void vta_device::reset() {
#if VM_TRACE
  if (trace_) trace_->close();
  trace_.reset();
#endif
  write_coverage();
  top_.reset();
  context_ = std::make_unique<VerilatedContext>();
  context_->randReset(2);  // for values that the profile leaves to chance
  context_->randSeed(static_cast<int>(model_.seed) + 1);
#if VM_TRACE
  context_->traceEverOn(true);
#endif
  top_ = std::make_unique<Vvta_top>(context_.get(), "");
  ports_ = std::make_unique<vta::MemoryPorts>(model_, memory);
#if VM_TRACE
  if (!trace_path_.empty()) trace(trace_path_.c_str());
#endif
  Vvta_top &top = *top_;
  top.clk = 0;
  top.rst_n = 0;
  top.s_axi_awvalid = top.s_axi_wvalid = top.s_axi_arvalid = 0;
  top.s_axi_bready = top.s_axi_rready = 1;
  top.m_axi_fetch_rvalid = top.m_axi_load_rvalid = top.m_axi_compute_rvalid = 0;
  top.m_axi_fetch_arready = top.m_axi_load_arready = top.m_axi_compute_arready = 1;
  top.m_axi_weights1_rvalid = top.m_axi_weights2_rvalid = top.m_axi_weights3_rvalid = 0;
  top.m_axi_weights1_arready = top.m_axi_weights2_arready = top.m_axi_weights3_arready = 1;
  top.m_axi_store_bvalid = 0;
  top.m_axi_store_awready = 1;
  for (int cycle = 0; cycle < kResetCycles; ++cycle) {
    context_->assertOn(cycle >= 2);  // a register that resets others has a random value until it is reset itself
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
  }
  top.rst_n = 1;
  inputs_changed_ = true;
}

void vta_device::tick() {
  Vvta_top &top = *top_;
  vta::MemoryPorts &ports = *ports_;

#define READ_PORT(number, name)                               \
  {                                                           \
    vta::ReadPort &port = ports.reads[number];                \
    port.address_valid = top.m_axi_##name##_arvalid;          \
    if (port.address_valid) {                                 \
      port.address = top.m_axi_##name##_araddr;               \
      port.length = top.m_axi_##name##_arlen;                 \
    }                                                         \
    port.data_ready = top.m_axi_##name##_rready;              \
  }
  READ_PORT(0, fetch)
  READ_PORT(1, load)
  READ_PORT(2, compute)
#if VTA_READ_PORTS > 1
  READ_PORT(3, weights1)
#endif
#if VTA_READ_PORTS > 2
  READ_PORT(4, weights2)
  READ_PORT(5, weights3)
#endif
#undef READ_PORT
  ports.write.address_valid = top.m_axi_store_awvalid;
  ports.write.address = top.m_axi_store_awaddr;
  ports.write.length = top.m_axi_store_awlen;
  ports.write.data_valid = top.m_axi_store_wvalid;
  ports.write.data = reinterpret_cast<const uint8_t *>(&top.m_axi_store_wdata);
  ports.write.strobe = (top.m_axi_store_wstrb & 1) != 0;

  bool changed = ports.present();

#define READ_PORT(number, name)                                                      \
  {                                                                                  \
    const vta::ReadPort &port = ports.reads[number];                                 \
    changed |= top.m_axi_##name##_rvalid != port.data_valid;                         \
    top.m_axi_##name##_rvalid = port.data_valid;                                     \
    if (port.data_valid) {                                                           \
      std::memcpy(&top.m_axi_##name##_rdata, port.data.data(), vta::kBusBytes);      \
      top.m_axi_##name##_rresp = port.response;                                      \
      top.m_axi_##name##_rlast = port.last;                                          \
    }                                                                                \
  }
  READ_PORT(0, fetch)
  READ_PORT(1, load)
  READ_PORT(2, compute)
#if VTA_READ_PORTS > 1
  READ_PORT(3, weights1)
#endif
#if VTA_READ_PORTS > 2
  READ_PORT(4, weights2)
  READ_PORT(5, weights3)
#endif
#undef READ_PORT
  changed |= top.m_axi_store_wready != ports.write.data_ready;
  changed |= top.m_axi_store_bvalid != ports.write.response_valid;
  changed |= top.m_axi_store_bresp != ports.write.response;
  top.m_axi_store_wready = ports.write.data_ready;
  top.m_axi_store_bvalid = ports.write.response_valid;
  top.m_axi_store_bresp = ports.write.response;
  inputs_changed_ |= changed;

  // The write port's data is the accelerator's own: take it before the edge changes it.
  ports.transfer();
  rising_edge();
}

void vta_device::rising_edge() {
  Vvta_top &top = *top_;
#if VM_TRACE || VTA_ASSERTIONS
  for (const int level : {0, 1}) {
    top.clk = level;
    top.eval();
#if VM_TRACE
    if (trace_) trace_->dump(context_->time());
#endif
    context_->timeInc(1);
  }
#else
  if (!inputs_changed_ && only_edge(top.rootp, 0)) return;
  lower_clock(top, top.rootp, 0);
  top.clk = 1;
  Vvta_top___024root___eval(top.rootp);  // top.eval() without its work for threads and objects: there are none
  inputs_changed_ = false;
#endif
}

bool vta_device::write_register(uint32_t offset, uint32_t value) {
  Vvta_top &top = *top_;
  top.s_axi_awaddr = static_cast<uint16_t>(offset);
  top.s_axi_wdata = value;
  top.s_axi_wstrb = 0xF;
  top.s_axi_awvalid = top.s_axi_wvalid = 1;
  bool answered = false;
  for (int cycle = 0; cycle < kAccessCycles && !answered; ++cycle) {
    const bool address_taken = top.s_axi_awready, data_taken = top.s_axi_wready;
    answered = top.s_axi_bvalid;
    inputs_changed_ = true;
    tick();
    if (address_taken) top.s_axi_awvalid = 0;
    if (data_taken) top.s_axi_wvalid = 0;
    inputs_changed_ = true;
  }
  return answered;
}

bool vta_device::read_register(uint32_t offset, uint32_t &value) {
  Vvta_top &top = *top_;
  top.s_axi_araddr = static_cast<uint16_t>(offset);
  top.s_axi_arvalid = 1;
  bool answered = false;
  for (int cycle = 0; cycle < kAccessCycles && !answered; ++cycle) {
    const bool address_taken = top.s_axi_arready;
    answered = top.s_axi_rvalid;
    value = top.s_axi_rdata;
    inputs_changed_ = true;
    tick();
    if (address_taken) top.s_axi_arvalid = 0;
    inputs_changed_ = true;
  }
  return answered;
}

int vta_device::status() const {
  if (top_->fault) return VTA_FAULT;
  if (top_->finished) return VTA_DONE;
  return top_->running ? VTA_RUNNING : VTA_IDLE;
}

#if VM_TRACE
int vta_device::trace(const char *path) {
  if (trace_) trace_->close();
  trace_.reset();
  trace_path_ = path == nullptr ? "" : path;
  if (path == nullptr) return 0;
  trace_ = std::make_unique<VerilatedFstC>();
  top_->trace(trace_.get(), 99);
  trace_->open(path);
  return trace_->isOpen() ? 0 : VTA_BAD_ARGUMENT;
}
#else
int vta_device::trace(const char *) { return VTA_BAD_ARGUMENT; }
#endif

namespace {

bool read_long(vta_device *device, uint32_t offset, uint64_t &value) {
  uint32_t low = 0, high = 0;
  const bool answered = device->read_register(offset, low) && device->read_register(offset + 4, high);
  value = uint64_t{high} << 32 | low;
  return answered;
}

void read_stage(vta_device *device, uint32_t page, vta_stage_counters &stage) {
  read_long(device, page + VTA_REG_FETCH_BUSY_LOW, stage.busy);
  read_long(device, page + VTA_REG_FETCH_STARVED_LOW, stage.starved);
  read_long(device, page + VTA_REG_FETCH_STALLED_LOW, stage.stalled);
  read_long(device, page + VTA_REG_FETCH_BYTES_LOW, stage.bytes);
  read_long(device, page + VTA_REG_FETCH_INSTRUCTIONS_LOW, stage.instructions);
}

}  // namespace

extern "C" {

uint32_t vta_api_version(void) { return VTA_SIM_API_VERSION; }

const char *vta_describe(void) {
  static const std::string text = [] {
    const char *isa = VTA_ISA_REVISION == 0 ? "A" : VTA_ISA_REVISION == 1 ? "B" : "wide";
    char line[256];
    std::snprintf(line, sizeof line,
                  "{\"form\": \"rtl\", \"parameters\": \"%dx%d_i%dw%da%d_%d_%d_%d_%d\", \"isa\": \"%s\", "
                  "\"bus_bits\": %d, \"hazards\": \"%s\"}",
                  1 << VTA_LOG_BATCH, 1 << VTA_LOG_BLOCK, 1 << VTA_LOG_INP_WIDTH, 1 << VTA_LOG_WGT_WIDTH,
                  1 << VTA_LOG_ACC_WIDTH, VTA_LOG_UOP_BUFF_SIZE, VTA_LOG_INP_BUFF_SIZE, VTA_LOG_WGT_BUFF_SIZE,
                  VTA_LOG_ACC_BUFF_SIZE, isa, VTA_BUS_WIDTH, VTA_HAZARD_INTERLOCK ? "interlock" : "none");
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
    device->reset();
    return device.release();
  } catch (const std::bad_alloc &) {
    return refuse("the system has no memory for the model");
  }
}

void vta_destroy(vta_device *device) { delete device; }

void vta_reset(vta_device *device) { device->reset(); }

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
  if (offset % 4 != 0 || offset >= kRegisterBytes) return VTA_BAD_ADDRESS;
  return device->read_register(offset, *value) ? 0 : VTA_BAD_ADDRESS;
}

int vta_write_register(vta_device *device, uint32_t offset, uint32_t value) {
  if (offset % 4 != 0 || offset >= kRegisterBytes) return VTA_BAD_ADDRESS;
  return device->write_register(offset, value) ? 0 : VTA_BAD_ADDRESS;
}

int vta_step(vta_device *device, uint64_t max_cycles, uint64_t *ran) {
  uint64_t cycles = 0;
  int status = device->status();
  while (status == VTA_RUNNING && cycles < max_cycles) {
    device->tick();
    ++cycles;
    status = device->status();
  }
  if (ran != nullptr) *ran = cycles;
  return status;
}

void vta_read_counters(vta_device *device, vta_counters *counters) {
  read_long(device, VTA_REG_CYCLES_LOW, counters->cycles);
  read_long(device, VTA_REG_GEMM_MICRO_OPS_LOW, counters->macs);
  counters->macs <<= VTA_LOG_BATCH + 2 * VTA_LOG_BLOCK;
  read_stage(device, VTA_PAGE_FETCH, counters->fetch);
  read_stage(device, VTA_PAGE_LOAD, counters->load);
  read_stage(device, VTA_PAGE_COMPUTE, counters->compute);
  read_stage(device, VTA_PAGE_STORE, counters->store);
}

int vta_trace(vta_device *device, const char *path) { return device->trace(path); }

}  // extern "C"
