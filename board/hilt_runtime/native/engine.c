// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <time.h>

#define EXPORT __attribute__((visibility("default")))

static const struct {
  const kernel_t *kernels;
  const int *count;
} tables[] = {
    {move_kernels, &move_kernel_count},         {integer_kernels, &integer_kernel_count},
    {float_kernels, &float_kernel_count},       {recurrent_kernels, &recurrent_kernel_count},
    {fixed_kernels, &fixed_kernel_count},       {border_kernels, &border_kernel_count},
    {softmax_kernels, &softmax_kernel_count},   {look_up_kernels, &look_up_kernel_count},
    {norm_kernels, &norm_kernel_count},         {integer_norm_kernels, &integer_norm_kernel_count},
    {interpolate_kernels, &interpolate_kernel_count}, {pool_kernels, &pool_kernel_count},
};
#define TABLES (sizeof tables / sizeof tables[0])

static const kernel_t *kernel_of(int32_t number) {
  int index = number - 1;  // 0: a step of Python's
  if (index < 0) return NULL;
  for (size_t i = 0; i < TABLES; index -= *tables[i++].count)
    if (index < *tables[i].count) return &tables[i].kernels[index];
  return NULL;
}

// Returns a step's work from a row of its chain on.
static work_t work_of(const hilt_step *step, const hilt_buffer *buffers, int64_t row) {
  work_t work = {.p = step->p, .f = step->f, .count = step->count};
  for (int i = 0; i < step->count; ++i) {
    const hilt_buffer *buffer = &buffers[step->buffers[i]];
    work.data[i] = (uint8_t *)(uintptr_t)buffer->data + row * step->pitch[i];
    work.bytes[i] = buffer->bytes - row * step->pitch[i];
  }
  return work;
}

static int64_t chain_of(const hilt_step *step) { return step->chain > 1 ? step->chain : 1; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

EXPORT int32_t hilt_abi(void) { return HILT_ABI; }

EXPORT int32_t hilt_kernel_count(void) {
  int count = 0;
  for (size_t i = 0; i < TABLES; ++i) count += *tables[i].count;
  return count;
}

static int buffers_are_there(const hilt_step *step, const hilt_buffer *buffers, int64_t buffer_count) {
  for (int32_t k = 0; k < step->count; ++k)
    if (!in_range(step->buffers[k], 0, buffer_count - 1) || buffers[step->buffers[k]].bytes < 0) return 0;
  return 1;
}

// Whether a step keeps within its buffers for every strip of its chain: the first and the last reach furthest, and
// the second begins where all that follow are aligned as it is.
static int strips_keep_within(const hilt_step *step, const hilt_step *chain, const hilt_buffer *buffers) {
  const int64_t last = chain->rows - chain->height, starts[3] = {0, least(chain->height, last), last};
  for (int32_t k = 0; k < step->count; ++k)
    if (!in_range(step->pitch[k], 0, (int64_t)1 << 31) || last * step->pitch[k] > buffers[step->buffers[k]].bytes)
      return 0;
  for (int i = 0; i < 3; ++i) {
    work_t work = work_of(step, buffers, starts[i]);
    if (!kernel_of(step->kernel)->check(&work)) return 0;
  }
  return 1;
}

// Whether `count` steps from `steps` on are a chain, or one step, whose strips keep within their buffers. Rows of no
// pitch have no bytes that bound them.
static int chain_keeps_within(const hilt_step *steps, int64_t count, const hilt_buffer *buffers, int64_t buffer_count) {
  static const hilt_step alone = {.rows = 1, .height = 1};
  const hilt_step *chain = count > 1 ? steps : &alone;
  if (!in_range(chain->rows, 1, MOST_AROUND) || !in_range(chain->height, 1, chain->rows)) return 0;
  for (int64_t k = 0; k < count; ++k) {
    const hilt_step *step = &steps[k];
    if (kernel_of(step->kernel) == NULL || !in_range(step->count, 0, HILT_BUFFERS)) return 0;
    if (k > 0 && (step->together > 1 || step->chain > 1)) return 0;
    if (!buffers_are_there(step, buffers, buffer_count) || !strips_keep_within(step, chain, buffers)) return 0;
  }
  return 1;
}

// Returns -1, or the first step or chain whose numbers reach outside of its buffers.
EXPORT int64_t hilt_check(const hilt_step *steps, int64_t count, const hilt_buffer *buffers, int64_t buffer_count) {
  int64_t group = 0, pieces = 0, length = 1;  // where it begins, the pieces of it that follow, and the steps of each
  for (int64_t i = 0; i < count; i += length) {
    const hilt_step *step = &steps[i];
    if (pieces > 0) {
      --pieces;
      if (step->kernel == 0 || step->together > 1 || chain_of(step) != length) return group;
    } else {
      group = i;
      length = chain_of(step);
      if (!in_range(step->together, 0, count - i) || length > count - i) return i;
      pieces = step->together > 1 ? step->together - 1 : 0;
      if (step->kernel == 0 && (pieces > 0 || length > 1)) return i;
    }
    if (length > count - i || pieces > (count - i) / length - 1) return i;
    if (step->kernel != 0 && !chain_keeps_within(step, length, buffers, buffer_count)) return i;
  }
  return -1;
}

typedef struct {
  const hilt_step *steps;
  const hilt_buffer *buffers;
  int64_t failed;  // the place of a piece that its values forbid, or -1
} group_t;

static void run_piece(void *context, int64_t piece) {
  group_t *group = context;
  const hilt_step *chain = group->steps + piece * chain_of(group->steps);
  const int64_t count = chain_of(chain), height = count > 1 ? chain->height : 1, rows = count > 1 ? chain->rows : 1;
  for (int64_t row = 0; row < rows; row += height)
    for (int64_t k = 0; k < count; ++k) {
      work_t work = work_of(&chain[k], group->buffers, least(row, rows - height));
      if (!kernel_of(chain[k].kernel)->run(&work)) continue;
      __atomic_store_n(&group->failed, chain - group->steps + k, __ATOMIC_RELAXED);
      return;
    }
}

// Runs steps from `first` on, and writes the begin and end of each in seconds to `times`; the pieces of one, and the
// steps of a chain, have the same; a quiet step has none, and the next one begins where it did. Returns `count` at
// the end, the place of the next step of Python's, or -1 - place of a step that its values forbid.
EXPORT int64_t hilt_run(const hilt_step *steps, int64_t first, int64_t count, const hilt_buffer *buffers,
                        double *times) {
  double began = now();
  int64_t covered;
  for (int64_t i = first; i < count; i += covered) {
    if (steps[i].kernel == 0) return i;
    const int64_t pieces = steps[i].together > 1 ? steps[i].together : 1;
    covered = pieces * chain_of(&steps[i]);
    group_t group = {&steps[i], buffers, -1};
    if (pieces > 1)
      run_together(run_piece, &group, pieces);
    else
      run_piece(&group, 0);
    const int64_t next = i + covered;
    const int quiet = steps[i].quiet && group.failed < 0 && next < count && steps[next].kernel != 0;
    double ended = quiet ? began : now();
    for (int64_t k = i; k < i + covered; ++k) {
      times[2 * k] = began;
      times[2 * k + 1] = ended;
    }
    began = ended;
    if (group.failed >= 0) return -1 - i - group.failed;
  }
  return count;
}
