// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <time.h>

#define EXPORT __attribute__((visibility("default")))

static const kernel_t *kernel_of(int32_t number) {
  int index = number - 1;  // 0: a step of Python's
  if (index < 0) return NULL;
  if (index < move_kernel_count) return &move_kernels[index];
  index -= move_kernel_count;
  if (index < integer_kernel_count) return &integer_kernels[index];
  index -= integer_kernel_count;
  if (index < float_kernel_count) return &float_kernels[index];
  index -= float_kernel_count;
  return index < recurrent_kernel_count ? &recurrent_kernels[index] : NULL;
}

static work_t work_of(const hilt_step *step, const hilt_buffer *buffers) {
  work_t work = {.p = step->p, .f = step->f, .count = step->count};
  for (int i = 0; i < step->count; ++i) {
    const hilt_buffer *buffer = &buffers[step->buffers[i]];
    work.data[i] = (uint8_t *)(uintptr_t)buffer->data;
    work.bytes[i] = buffer->bytes;
  }
  return work;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

EXPORT int32_t hilt_abi(void) { return HILT_ABI; }

EXPORT int32_t hilt_kernel_count(void) {
  return move_kernel_count + integer_kernel_count + float_kernel_count + recurrent_kernel_count;
}

// Returns -1, or the first step whose numbers reach outside of its buffers.
EXPORT int64_t hilt_check(const hilt_step *steps, int64_t count, const hilt_buffer *buffers, int64_t buffer_count) {
  for (int64_t i = 0; i < count; ++i) {
    const hilt_step *step = &steps[i];
    if (step->kernel == 0) continue;
    const kernel_t *kernel = kernel_of(step->kernel);
    if (kernel == NULL || !in_range(step->count, 0, HILT_BUFFERS)) return i;
    if (!in_range(step->together, 0, count - i)) return i;
    for (int64_t k = 1; k < step->together; ++k)
      if (steps[i + k].kernel == 0 || steps[i + k].together > 1) return i;
    for (int32_t k = 0; k < step->count; ++k)
      if (!in_range(step->buffers[k], 0, buffer_count - 1) || buffers[step->buffers[k]].bytes < 0) return i;
    work_t work = work_of(step, buffers);
    if (!kernel->check(&work)) return i;
  }
  return -1;
}

typedef struct {
  const hilt_step *steps;
  const hilt_buffer *buffers;
  int64_t failed;  // the place of a piece that its values forbid, or -1
} group_t;

static void run_piece(void *context, int64_t place) {
  group_t *group = context;
  work_t work = work_of(&group->steps[place], group->buffers);
  if (kernel_of(group->steps[place].kernel)->run(&work)) __atomic_store_n(&group->failed, place, __ATOMIC_RELAXED);
}

// Runs steps from `first` on, and writes the begin and end of each in seconds to `times`; the pieces of one have the
// same. Returns `count` at the end, the place of the next step of Python's, or -1 - place of a step that its values
// forbid.
EXPORT int64_t hilt_run(const hilt_step *steps, int64_t first, int64_t count, const hilt_buffer *buffers,
                        double *times) {
  double began = now();
  int64_t pieces;
  for (int64_t i = first; i < count; i += pieces) {
    if (steps[i].kernel == 0) return i;
    pieces = steps[i].together > 1 ? steps[i].together : 1;
    group_t group = {&steps[i], buffers, -1};
    if (pieces > 1)
      run_together(run_piece, &group, pieces);
    else
      run_piece(&group, 0);
    double ended = now();
    for (int64_t k = i; k < i + pieces; ++k) {
      times[2 * k] = began;
      times[2 * k + 1] = ended;
    }
    began = ended;
    if (group.failed >= 0) return -1 - i - group.failed;
  }
  return count;
}
