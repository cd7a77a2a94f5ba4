// SPDX-License-Identifier: Apache-2.0
//
// Starts VTA through its mapped registers and waits a little, as register_protocol.py does, in microseconds. A program
// that takes longer, and every fault, is left to it.
#include "engine.h"

#include <time.h>

#define EXPORT __attribute__((visibility("default")))

// The places of registers in words, in the order of PLACES in native/start.py.
enum {
  SOFT_RESET, INSN_COUNT, INSN_ADDR, INP_ADDR, WGT_ADDR, UOP_ADDR, BIAS_ADDR, OUT_ADDR, FETCH_CONTROL, LOAD_CONTROL,
  COMPUTE_CONTROL, STORE_CONTROL, DONE_READ, FAULT_CODE, CYCLES_HIGH, CYCLES_LOW
};

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Starts `count` instructions at `address`; `counts`: the hardware is hilt's and is reset before. Returns the time of the
// start, or -1 where the reset does not end within `patience` seconds. `*old_done`: `done` was set before.
EXPORT double hilt_start(volatile uint32_t *registers, const int32_t *places, int32_t counts, uint32_t count,
                         uint32_t address, double patience, int32_t *old_done) {
  static const uint8_t zeros[] = {INP_ADDR, WGT_ADDR, UOP_ADDR, BIAS_ADDR, OUT_ADDR};
  static const uint8_t stages[] = {LOAD_CONTROL, COMPUTE_CONTROL, STORE_CONTROL};
  *old_done = 0;
  if (counts) {
    registers[places[SOFT_RESET]] = 1;
    double deadline = seconds() + patience;
    while (registers[places[SOFT_RESET]] & 1)
      if (seconds() > deadline) return -1.0;
  } else {
    *old_done = registers[places[DONE_READ]] & 1;
  }
  registers[places[INSN_COUNT]] = count;
  registers[places[INSN_ADDR]] = address;
  for (size_t i = 0; i < sizeof zeros; ++i) registers[places[zeros[i]]] = 0;
  __sync_synchronize();
  double started = seconds();
  registers[places[FETCH_CONTROL]] = 0x01;
  for (size_t i = 0; i < sizeof stages; ++i) registers[places[stages[i]]] = 0x81;
  return started;
}

#define ROUSE_SECONDS 50e-6  // helpers watch for longer

// Polls `done` for `patience` seconds at most. Returns 1 at the end of the program, with the cycles where the hardware
// counts them and the time; 0 where it has not ended, has a fault, or `done` may still be that of the run before.
EXPORT int32_t hilt_poll(volatile uint32_t *registers, const int32_t *places, int32_t counts, double patience,
                         int32_t *old_done, int64_t *cycles, double *ended) {
  double deadline = seconds() + patience, roused = 0.0;
  do {
    uint32_t done = registers[places[DONE_READ]] & 1;
    *ended = seconds();
    if (!done && *ended > roused + ROUSE_SECONDS) {  // the steps behind the program need not wake them
      rouse_helpers();
      roused = *ended;
    }
    if (!done) *old_done = 0;
    if (done && !*old_done) {
      uint32_t high = 0, low = 0;
      while (counts) {
        high = registers[places[CYCLES_HIGH]];
        low = registers[places[CYCLES_LOW]];
        if (registers[places[CYCLES_HIGH]] == high) break;
      }
      *cycles = (int64_t)((uint64_t)high << 32 | low);
      __sync_synchronize();
      return 1;
    }
    if (counts && registers[places[FAULT_CODE]]) return 0;
  } while (*ended < deadline);
  return 0;
}
