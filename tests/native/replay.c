// SPDX-License-Identifier: Apache-2.0
//
// Runs recorded steps of the native engine and compares their results with numpy's: on an emulated processor, or under a
// sanitizer. A record, little-endian int64 each: steps, buffers, outputs; the steps; for each buffer its bytes and
// contents; for each output its buffer, offset, bytes, whether it is float32 (every NaN is the same), and contents.
// replay FILE [REPEAT [RECORD]]: REPEAT runs of each, or of the one. replay --fuzz STEPS SEED: steps of any numbers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"

int64_t hilt_check(const hilt_step *, int64_t, const hilt_buffer *, int64_t);
int64_t hilt_run(const hilt_step *, int64_t, int64_t, const hilt_buffer *, double *);
int32_t hilt_kernel_count(void);

static FILE *file;

static void read_bytes(void *to, size_t size) {
  if (size && fread(to, size, 1, file) != 1) {
    puts("the file ends early");
    exit(2);
  }
}

static int64_t number(void) {
  int64_t value;
  read_bytes(&value, sizeof value);
  return value;
}

static void *room(int64_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 16, (size_t)bytes + !bytes)) exit(2);
  return memory;
}

static int differs(const uint8_t *given, const uint8_t *wanted, int64_t bytes, int64_t floats) {
  if (!floats) return memcmp(given, wanted, (size_t)bytes) != 0;
  for (int64_t i = 0; i < bytes; i += 4) {
    float one, other;
    memcpy(&one, given + i, 4);
    memcpy(&other, wanted + i, 4);
    if (memcmp(given + i, wanted + i, 4) && (one == one || other == other)) return 1;
  }
  return 0;
}

// Runs the next record; returns whether it is as recorded.
static int replay(int64_t repeat) {
  int64_t count = number(), buffers = number(), outputs = number();
  hilt_step *steps = room(count * (int64_t)sizeof *steps);
  hilt_buffer *table = room(buffers * (int64_t)sizeof *table);
  double *times = room(16 * count + 16);
  read_bytes(steps, (size_t)count * sizeof *steps);
  for (int64_t i = 0; i < buffers; ++i) {
    table[i].bytes = number();
    uint8_t *data = room(table[i].bytes);
    read_bytes(data, (size_t)table[i].bytes);
    table[i].data = (uint64_t)(uintptr_t)data;
  }
  int good = hilt_check(steps, count, table, buffers) == -1;
  for (int64_t i = 0; good && i < repeat; ++i) good = hilt_run(steps, 0, count, table, times) == count;
  for (int64_t i = 0; i < outputs; ++i) {
    int64_t buffer = number(), offset = number(), bytes = number(), floats = number();
    uint8_t *wanted = room(bytes);
    read_bytes(wanted, (size_t)bytes);
    if (repeat) good = good && !differs((uint8_t *)(uintptr_t)table[buffer].data + offset, wanted, bytes, floats);
    free(wanted);
  }
  for (int64_t i = 0; i < buffers; ++i) free((void *)(uintptr_t)table[i].data);
  free(times);
  free(table);
  free(steps);
  return good;
}

#define SLOW 2.0

static uint64_t state;

// Returns a number below a bound: small ones most of the time.
static int64_t drawn(uint64_t bound) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (int64_t)(state % bound);
}

static int64_t odd_number(void) {
  static const int64_t odd[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 31, INT64_C(1) << 40, 127, -128, 255};
  return drawn(40) == 0 ? odd[drawn(sizeof odd / sizeof *odd)] : drawn(2) ? drawn(3) : drawn(12);
}

// Fills a step with any numbers, on `count` buffers.
static hilt_step any_step(int32_t count) {
  hilt_step step = {.kernel = (int32_t)(1 + drawn(hilt_kernel_count())), .count = count};
  for (int32_t k = 0; k < count; ++k) {
    step.buffers[k] = k;
    step.pitch[k] = drawn(3) ? 4 * drawn(16) : odd_number();
  }
  for (int k = 0; k < HILT_NUMBERS; ++k) step.p[k] = odd_number();
  for (int k = 0; k < 4; ++k) step.f[k] = (double)drawn(5) / 2;
  return step;
}

// Runs steps and chains of any numbers on buffers of exactly their bytes: those that hilt_check accepts keep within
// them, and end soon. Returns 1 if one took more seconds of processor time than SLOW.
static int fuzz(int64_t steps, int64_t seed) {
  int64_t accepted = 0, chains = 0;
  double slowest = 0;
  state = (uint64_t)seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  for (int64_t i = 0; i < steps; ++i) {
    const int32_t count = (int32_t)(1 + drawn(7));
    const int64_t length = drawn(4) ? 1 : 2;
    hilt_step pair[2] = {any_step(count), any_step(count)};
    hilt_buffer table[HILT_BUFFERS];
    double times[4];
    if (length > 1) {
      if (drawn(2)) pair[1] = pair[0];
      pair[0].chain = drawn(16) ? length : odd_number();
      pair[0].rows = drawn(8) ? 1 + drawn(20) : odd_number();
      pair[0].height = drawn(8) ? 1 + drawn(4) : odd_number();
    } else {
      memset(pair[0].pitch, 0, sizeof pair[0].pitch);
    }
    for (int32_t k = 0; k < count; ++k) {
      int64_t bytes = drawn(3) ? drawn(64) * 8 : 1024 + drawn(4096);
      uint8_t *data = room(bytes);
      for (int64_t at = 0; at < bytes; ++at) data[at] = (uint8_t)drawn(drawn(2) ? 2 : 256);
      table[k] = (hilt_buffer){(uint64_t)(uintptr_t)data, bytes};
    }
    if (hilt_check(pair, length, table, count) == -1) {
      ++accepted;
      chains += pair[0].chain > 1;
      const clock_t began = clock();
      hilt_run(pair, 0, length, table, times);
      const double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
      slowest = seconds > slowest ? seconds : slowest;
    }
    for (int32_t k = 0; k < count; ++k) free((void *)(uintptr_t)table[k].data);
  }
  printf("%lld steps or chains of any numbers, %lld accepted, %lld of them chains, the slowest %.1f ms\n",
         (long long)steps, (long long)accepted, (long long)chains, 1e3 * slowest);
  return slowest > SLOW;
}

int main(int count, char **words) {
  if (count > 3 && strcmp(words[1], "--fuzz") == 0) return fuzz(atoll(words[2]), atoll(words[3]));
  if (count < 2 || (file = fopen(words[1], "rb")) == NULL) return 2;
  int64_t repeat = count > 2 ? atoll(words[2]) : 1, only = count > 3 ? atoll(words[3]) : -1, wrong = 0;
  int64_t records = 0;
  for (int first; (first = getc(file)) != EOF; ++records) {
    ungetc(first, file);
    if (!replay(only < 0 || only == records ? repeat : 0)) {
      printf("record %lld differs\n", (long long)records);
      ++wrong;
    }
  }
  printf("%lld records, %lld differ\n", (long long)records, (long long)wrong);
  return wrong != 0;
}
