/* SPDX-License-Identifier: Apache-2.0 */
/* One C API for the executable forms of the accelerator: the Verilated RTL (rtl) and the bit-exact untimed reference
 * (golden). Each is its own shared library that exports these names. (The twin, which moves no data, has its own:
 * ../timing/vta_timing.h.)
 *
 * A device is the accelerator with its AXI4-Lite registers and a flat physical memory behind its AXI4 ports.
 * Addresses are physical byte addresses; the memory is [memory_base, memory_base + memory_bytes).
 * Register offsets are HARDWARE.md section 4: fetch 0x0000, load 0x1000, compute 0x2000, store 0x3000, with hilt's own
 * registers from 0x40 of a page (docs/registers.md). No function throws, exits or prints. One device, one thread.
 */
#ifndef HILT_VTA_SIM_H
#define HILT_VTA_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VTA_SIM_API_VERSION 1u

/* What a call returns. A negative value is the caller's mistake and has changed nothing. */
enum vta_status {
  VTA_DONE = 0,        /* FINISH was executed */
  VTA_RUNNING = 1,     /* the cycle limit of the step was reached first */
  VTA_FAULT = 2,       /* the accelerator stopped itself: see the fault registers */
  VTA_IDLE = 3,        /* nothing was started */
  VTA_BAD_ADDRESS = -1,
  VTA_BAD_ARGUMENT = -2,
};

/* The memory behind the AXI ports. Cycles are accelerator cycles. */
typedef struct vta_memory_model {
  uint64_t memory_base;            /* physical address of the first byte, 4096-aligned */
  uint64_t memory_bytes;
  uint32_t read_latency;           /* cycles from accepted read address to its first beat */
  uint32_t write_latency;          /* cycles from last write beat to the response */
  uint32_t bandwidth_numerator;    /* bytes = cycles * numerator / denominator, shared by all ports; 0: bus width of each read port a cycle */
  uint32_t bandwidth_denominator;
  uint32_t jitter;                 /* largest extra read latency, drawn uniformly from a seeded generator */
  uint32_t seed;
} vta_memory_model;

/* A stage's cycles and bytes since the last start of fetch; all of the program once it is done. */
typedef struct vta_stage_counters {
  uint64_t busy;      /* cycles with an instruction in execution */
  uint64_t starved;   /* cycles waiting for a dependence token or an instruction, while the program runs */
  uint64_t stalled;   /* cycles of `busy` in which only the memory held it up */
  uint64_t bytes;     /* moved over its AXI port */
  uint64_t instructions;
} vta_stage_counters;

typedef struct vta_counters {
  uint64_t cycles;    /* from the start of fetch to FINISH */
  uint64_t macs;      /* multiply-accumulates done: micro-ops x batch x block x block */
  vta_stage_counters fetch, load, compute, store;
} vta_counters;

typedef struct vta_device vta_device;

uint32_t vta_api_version(void);

/* JSON text: {"form": "rtl"|"golden", "parameters": NAME, "isa": "A"|"B"|"wide", "bus_bits": N, "hazards": "interlock"|"none"} */
const char *vta_describe(void);

/* Returns NULL, with a reason in `error`, when the memory cannot be had or the model is impossible. */
vta_device *vta_create(const vta_memory_model *memory, char *error, size_t error_bytes);
void vta_destroy(vta_device *device);

/* Power-on state of the accelerator; memory keeps its contents. */
void vta_reset(vta_device *device);

/* The memory itself, for callers that map it (a pynq buffer); valid until vta_destroy. */
uint8_t *vta_memory(vta_device *device);
int vta_read_memory(vta_device *device, uint64_t address, void *bytes, uint64_t count);
int vta_write_memory(vta_device *device, uint64_t address, const void *bytes, uint64_t count);

int vta_read_register(vta_device *device, uint32_t offset, uint32_t *value);
int vta_write_register(vta_device *device, uint32_t offset, uint32_t value);

/* Runs until FINISH, a fault, or `max_cycles` more cycles; `ran` (may be NULL) receives the cycles run by this call. */
int vta_step(vta_device *device, uint64_t max_cycles, uint64_t *ran);

void vta_read_counters(vta_device *device, vta_counters *counters);

/* Only in libraries of the Verilated RTL. From now on (and from the next vta_reset on) writes a waveform to `path` (FST),
 * or with NULL no more. VTA_BAD_ARGUMENT where the library was built without traces (each profile but trace) or the file
 * cannot be had. */
int vta_trace(vta_device *device, const char *path);

#ifdef __cplusplus
}
#endif
#endif
