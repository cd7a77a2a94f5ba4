// SPDX-License-Identifier: Apache-2.0
//
// The runtime's native engine: steps of an inference as flat records, made once by Python from a checked manifest.
// A step names a kernel, its buffers (places in a table) and its numbers. hilt_check compares every step with the sizes
// of its buffers; hilt_run trusts records that hilt_check has accepted. Integers wrap as VTA's; floats are IEEE, never fused.
#ifndef HILT_ENGINE_H
#define HILT_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#define HILT_ABI 15
#define HILT_BUFFERS 8
#define HILT_NUMBERS 40
#define HILT_AXES 6

typedef struct {
  int32_t kernel;
  int32_t count;  // of buffers
  int32_t buffers[HILT_BUFFERS];
  int64_t together;  // so many steps or chains, this the first, are pieces of one, and may run at once; 0, 1: it is alone
  // A chain is `chain` steps, this the first; 0 and 1: none. They run in turn for each strip of `height` of its `rows`.
  // The last strip ends with the last row: it may begin within the strip before.
  int64_t chain, rows, height;
  int64_t quiet;  // 1: the clock is not read behind it, and the next step has its time
  int64_t pitch[HILT_BUFFERS];  // bytes from a row to the next, of a step of a chain
  int64_t p[HILT_NUMBERS];
  double f[4];
} hilt_step;

typedef struct {
  uint64_t data;  // an address
  int64_t bytes;
} hilt_buffer;

// A kernel's arguments: its numbers, and its buffers by their order in the step.
typedef struct {
  const int64_t *p;
  const double *f;
  uint8_t *data[HILT_BUFFERS];
  int64_t bytes[HILT_BUFFERS];
  int count;
} work_t;

typedef struct {
  int (*check)(const work_t *);  // whether the numbers keep within the buffers
  int (*run)(const work_t *);    // 0, or 1 where the values forbid it (an index that is not there)
} kernel_t;

// The order is that of KERNELS in steps.py.
extern const kernel_t move_kernels[], integer_kernels[], float_kernels[], recurrent_kernels[], fixed_kernels[],
    border_kernels[], softmax_kernels[], look_up_kernels[], norm_kernels[], integer_norm_kernels[],
    interpolate_kernels[], pool_kernels[];
extern const int move_kernel_count, integer_kernel_count, float_kernel_count, recurrent_kernel_count,
    fixed_kernel_count, border_kernel_count, softmax_kernel_count, look_up_kernel_count, norm_kernel_count,
    integer_norm_kernel_count, interpolate_kernel_count, pool_kernel_count;

// Quantises floats; `exact`: the scale is a power of two from 2^-100 to 2^100.
void quantize_line(const float *x, int8_t *y, ptrdiff_t count, float scale, float inverse, int exact);

// Runs job(context, 0) to job(context, count - 1), in any order, on this thread and on helpers where there are any.
void run_together(void (*job)(void *, int64_t), void *context, int64_t count);
// Lets the helpers that are there watch for jobs that are soon to come.
void rouse_helpers(void);

// Turns of a loop that no bytes bound.
#define MOST_AROUND ((int64_t)1 << 20)

// Returns the product of sizes, or -1 if one is negative or those that are not 0 have a product above 2^40. A tensor
// without elements has no bytes that bound the loops over its other sizes: -1 too if those are more than MOST_AROUND.
static inline int64_t product_of(int count, const int64_t *sizes) {
  int64_t around = 1;
  int empty = 0;
  for (int i = 0; i < count; ++i) {
    if (sizes[i] < 0 || sizes[i] > (int64_t)1 << 31) return -1;
    if (sizes[i] == 0)
      empty = 1;
    else if ((around *= sizes[i]) > (int64_t)1 << 40)
      return -1;
  }
  if (empty) return around > MOST_AROUND ? -1 : 0;
  return around;
}

static inline int holds(const work_t *w, int buffer, int64_t elements, int64_t item) {
  return buffer < w->count && elements >= 0 && elements <= w->bytes[buffer] / item &&
         ((uintptr_t)w->data[buffer] & (uintptr_t)(item - 1)) == 0;
}

static inline int in_range(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }

#endif
