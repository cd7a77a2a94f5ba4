// SPDX-License-Identifier: Apache-2.0
//
// Runs recorded steps of the native engine and compares their results with numpy's: on an emulated processor, or under a
// sanitizer. A record, little-endian int64 each: steps, buffers, outputs; the steps; for each buffer its bytes and
// contents; for each output its buffer, offset, bytes, whether it is float32 (every NaN is the same), and contents.
// replay FILE [REPEAT [RECORD]]: REPEAT runs of each, or of the one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

int64_t hilt_check(const hilt_step *, int64_t, const hilt_buffer *, int64_t);
int64_t hilt_run(const hilt_step *, int64_t, int64_t, const hilt_buffer *, double *);

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

int main(int count, char **words) {
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
