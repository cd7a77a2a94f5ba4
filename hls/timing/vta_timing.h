/* SPDX-License-Identifier: Apache-2.0 */
/* The twin: an event model of the accelerator of hls/rtl and the memory of hls/sim. Programs in, cycles out, no data.
 *
 * It says what the RTL behind hls/sim/memory_ports counts for a program that runs alone after power-on: the same cycles
 * from the start of fetch to FINISH, and the same counters. Address registers are taken to be 0. What it does not know:
 * bus errors (every address is taken to be memory) and micro-ops that the program itself writes. After a fault, bytes
 * and stalls of the instruction at fault may be those of an element less or more.
 *
 * One shared library for each parameter set (hilt.simulator.build, form "timing"). No function throws, exits or prints;
 * calls may run on several threads at once.
 */
#ifndef HILT_VTA_TIMING_H
#define HILT_VTA_TIMING_H

#include <stddef.h>
#include <stdint.h>

#include "vta_sim.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VTA_TIMING_API_VERSION 1u

enum vta_timing_status {
  VTA_TIMING_DONE = 0,  /* FINISH is executed */
  VTA_TIMING_NEVER = 1, /* it is not: a token or FINISH is missing; the counters end with the last thing that happens */
  VTA_TIMING_FAULT = 2, /* the accelerator stops itself */
};

/* `count` programs, one after another in shared arrays: program n has the instructions [instruction_offset[n],
 * instruction_offset[n + 1]) and, from byte address uop_address[n] on, the micro-ops [uop_offset[n],
 * uop_offset[n + 1]).
 *
 * dram_base counts elements from physical address 0. Only a byte address modulo 4096 matters, and where micro-ops lie:
 * a program whose buffers are all page-aligned may be given as it is before relocation, with uop_address 0. */
typedef struct vta_timing_programs {
  uint64_t count;
  const uint8_t *instructions;
  const uint64_t *instruction_offset; /* count + 1, in instructions */
  const uint64_t *insn_address;       /* count, bytes */
  const uint8_t *uops;
  const uint64_t *uop_offset;         /* count + 1, in micro-ops */
  const uint64_t *uop_address;        /* count, bytes */
} vta_timing_programs;

typedef struct vta_timing_result {
  int32_t status;     /* enum vta_timing_status */
  uint32_t fault;     /* fault code of docs/architecture.md, or 0 */
  vta_counters counters;
} vta_timing_result;

/* One instruction in its stage: busy in the cycles [start, end), counted from the first cycle of the program. */
typedef struct vta_timing_span {
  uint64_t start, end; /* both 0 where the program ends before it begins */
  uint32_t stage;      /* 1 load, 2 compute, 3 store */
  uint32_t reserved;
} vta_timing_span;

uint32_t vta_timing_api_version(void);

/* Of `memory` only the timing counts. `timeline` is null or has a place for every instruction of every program.
 * Returns 0, or VTA_BAD_ARGUMENT for a null array, offsets that decrease, a bandwidth over 0, or too little memory. */
int vta_timing_predict(const vta_timing_programs *programs, const vta_memory_model *memory, vta_timing_result *results,
                       vta_timing_span *timeline);

#ifdef __cplusplus
}
#endif
#endif
