// SPDX-License-Identifier: Apache-2.0
//
// ONNX's recurrent operators: the steps of one direction, whose gates hold the data's part already. Weights are of
// float32, with sums in double, or of int8: then what they are multiplied with is rounded to steps, sums are exact, and
// sigmoid and tanh are lines between the values of a table, whose every operation is one of float32.
#include "engine.h"
#include "fixed_point.h"
#include "functions.h"
#include "products.h"

#include <math.h>
#include <string.h>

#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

#define CHUNK 256           // sums on the stack
#define TABLE_END 12.0f      // sigmoids from -12 to 12, as hilt_runtime.functions has them
#define TABLE_STEPS 64.0f    // of a unit
#define TABLE_MIDDLE 768.0f
#define TABLE_VALUES 1538    // one more behind the end

// --- lstm, gru, rnn: steps, batch, hidden, 1 backwards, outputs' step stride, 1 with peepholes (lstm), linear before
// reset (gru) or the activation (rnn). Buffers: gates of the data (steps, batch, n * hidden), recurrence, outputs,
// hidden state (batch, hidden; in and out), room (4 * hidden), cell state (lstm; in and out) or recurrent bias (gru; 3 *
// hidden). The recurrence is transposed (hidden, n * hidden); or it is of int8 (n * hidden, hidden), and two buffers
// follow: the factors of its sums (n * hidden), and behind them the table of sigmoids; int16 for the state (hidden).
// Peepholes are factors of the cell state at the gates input, output and forget (3 * hidden), behind a recurrence of
// float32 or behind the table. One step of an lstm of int8 may be of some units of `whole`: the state is of all of them
// then, and is not written. `whole` is 0 of others. ---

enum { STEPS, BATCH, HIDDEN, BACKWARDS, STRIDE, KIND, WHOLE_STATE };
enum { GATES, RECURRENCE, OUTPUTS, STATE, ROOM, MORE };

static float *floats(const work_t *w, int buffer) { return (float *)w->data[buffer]; }

// Returns the values of a state that a step reads.
static int64_t depth_of(const work_t *w) { return w->p[WHOLE_STATE] ? w->p[WHOLE_STATE] : w->p[HIDDEN]; }

static int check_recurrent(const work_t *w, int64_t gates, int buffers) {
  const int64_t *p = w->p;
  int64_t data[4] = {p[STEPS], p[BATCH], p[HIDDEN], gates}, matrix[3] = {depth_of(w), p[HIDDEN], gates};
  int64_t state[2] = {p[BATCH], p[HIDDEN]}, before[2] = {p[BATCH], depth_of(w)};
  int64_t read = product_of(4, data), weights = product_of(3, matrix), states = product_of(2, state);
  int is_int8 = w->count == buffers + 2;
  if (!(is_int8 || w->count == buffers) || read <= 0 || weights < 0 || states < 0) return 0;
  if (!in_range(p[STRIDE], states, (int64_t)1 << 31)) return 0;
  if (p[WHOLE_STATE] && !(is_int8 && gates == 4 && p[STEPS] == 1 && p[BATCH] == 1)) return 0;
  int64_t span = (p[STEPS] - 1) * p[STRIDE];
  return span <= (int64_t)1 << 40 && holds(w, GATES, read, 4) && holds(w, RECURRENCE, weights, is_int8 ? 1 : 4) &&
         holds(w, OUTPUTS, span + states, 4) && holds(w, STATE, product_of(2, before), 4) && holds(w, ROOM, 4 * p[HIDDEN], 4) &&
         (!is_int8 || (depth_of(w) <= MOST_DEPTH && holds(w, buffers, gates * p[HIDDEN] + TABLE_VALUES, 4) &&
                       holds(w, buffers + 1, depth_of(w), 2)));
}

// Returns an lstm's peepholes; NULL if it has none.
static const float *peepholes_of(const work_t *w) {
  const int64_t size = w->p[HIDDEN];
  if (!w->p[KIND]) return NULL;
  return w->count == MORE + 1 ? floats(w, RECURRENCE) + 4 * size * size : floats(w, MORE + 1) + 4 * size + TABLE_VALUES;
}

static int check_lstm(const work_t *w) {
  if (!in_range(w->p[KIND], 0, 1) || !check_recurrent(w, 4, MORE + 1)) return 0;
  const int64_t size = w->p[HIDDEN], peepholes = w->p[KIND] ? 3 * size : 0;
  int in_table = w->count != MORE + 1;
  return holds(w, MORE, w->p[BATCH] * size, 4) &&
         (in_table ? holds(w, MORE + 1, 4 * size + TABLE_VALUES + peepholes, 4)
                   : holds(w, RECURRENCE, 4 * size * size + peepholes, 4));
}
static int check_gru(const work_t *w) { return check_recurrent(w, 3, MORE + 1) && holds(w, MORE, 3 * w->p[HIDDEN], 4); }
static int check_rnn(const work_t *w) { return check_recurrent(w, 1, MORE) && in_range(w->p[KIND], 0, 2); }

// to[i] = float32 of the products of a state with the columns of a matrix (hidden, width).
static void times_matrix(const float *state, const float *matrix, ptrdiff_t hidden, ptrdiff_t width, ptrdiff_t columns,
                         float *to) {
  for (ptrdiff_t first = 0; first < columns; first += CHUNK) {
    double sums[CHUNK] = {0};
    ptrdiff_t count = least(columns - first, CHUNK);
    add_products(state, 1, matrix + first, width, 1, hidden, count, sums);
    for (ptrdiff_t i = 0; i < count; ++i) to[first + i] = (float)sums[i];
  }
}


// Gives the products of a state with `count` of a recurrence's n * hidden gates, from gate `from` on.
static void recur(const work_t *w, int buffers, const float *state, ptrdiff_t gates, ptrdiff_t from, ptrdiff_t count,
                  float *to) {
  const ptrdiff_t size = w->p[HIDDEN];
  if (w->count == buffers) {
    times_matrix(state, floats(w, RECURRENCE) + from, size, gates * size, count, to);
  } else {
    const ptrdiff_t depth = depth_of(w);
    int16_t *fixed = (int16_t *)w->data[buffers + 1];
    to_steps(state, fixed, depth, STEPS_BITS);
    times_rows(fixed, 1, (const int8_t *)w->data[RECURRENCE] + from * depth, floats(w, buffers) + from, depth, count,
               0.0, to, count);
  }
}

// x = the sigmoid of x, or (twice) tanh(x) = 2 * sigmoid(2 * x) - 1, by lines between the table's values. What NEON takes
// for zero is far below a step of it.
static void look_up(const float *table, int twice, float *x, ptrdiff_t count) {
  const float end = twice ? TABLE_END / 2 : TABLE_END, steps = twice ? TABLE_STEPS * 2 : TABLE_STEPS;
  ptrdiff_t i = 0;
#ifdef __ARM_NEON
  for (; i + 4 <= count; i += 4) {
    const float32x4_t clipped = vminq_f32(vmaxq_f32(vld1q_f32(x + i), vdupq_n_f32(-end)), vdupq_n_f32(end));
    const float32x4_t place = vaddq_f32(vmulq_n_f32(clipped, steps), vdupq_n_f32(TABLE_MIDDLE));
    const int32x4_t whole = vcvtq_s32_f32(place);  // 0 of NaN
    const float32x2_t a = vld1_f32(table + vgetq_lane_s32(whole, 0)), b = vld1_f32(table + vgetq_lane_s32(whole, 1));
    const float32x2_t c = vld1_f32(table + vgetq_lane_s32(whole, 2)), d = vld1_f32(table + vgetq_lane_s32(whole, 3));
    const float32x4x2_t ends = vuzpq_f32(vcombine_f32(a, b), vcombine_f32(c, d));
    const float32x4_t rest = vsubq_f32(place, vcvtq_f32_s32(whole));
    const float32x4_t line = vmulq_f32(rest, vsubq_f32(ends.val[1], ends.val[0]));
    const float32x4_t y = vaddq_f32(ends.val[0], line);
    vst1q_f32(x + i, twice ? vsubq_f32(vaddq_f32(y, y), vdupq_n_f32(1.0f)) : y);
  }
#endif
  FEW for (; i < count; ++i) {
    const float clipped = x[i] < -end ? -end : x[i] > end ? end : x[i];
    const float place = clipped * steps + TABLE_MIDDLE;
    const int32_t whole = place == place ? (int32_t)place : 0;
    const float low = table[whole], line = (place - (float)whole) * (table[whole + 1] - low);
    const float y = low + line;
    x[i] = twice ? 2.0f * y - 1.0f : y;
  }
}

// Turns values into their sigmoids, or (twice) their tanh.
static void turn(const work_t *w, int buffers, ptrdiff_t gates, int twice, float *x, ptrdiff_t count) {
  if (w->count != buffers)
    look_up(floats(w, buffers) + gates * w->p[HIDDEN], twice, x, count);
  else if (twice)
    for (ptrdiff_t i = 0; i < count; ++i) x[i] = (float)tanh_of(x[i]);
  else
    for (ptrdiff_t i = 0; i < count; ++i) x[i] = (float)sigmoid_of(x[i]);
}

// Adds the products of a cell state with a gate's peepholes to the gate.
static void peep(const float *factors, const float *cell, float *gate, ptrdiff_t size) {
  for (ptrdiff_t i = 0; i < size; ++i) {
    float product = factors[i] * cell[i];
    gate[i] = gate[i] + product;
  }
}

static void lstm_step(const work_t *w, const float *gates, float *hidden, ptrdiff_t n) {
  const ptrdiff_t size = w->p[HIDDEN];
  const float *peepholes = peepholes_of(w);
  float *room = floats(w, ROOM), *cell = floats(w, MORE) + n * size;
  float *made = w->p[WHOLE_STATE] ? floats(w, OUTPUTS) : hidden;
  float *enter = room, *leave = room + size, *forget = room + 2 * size, *fresh = room + 3 * size;
  recur(w, MORE + 1, hidden, 4, 0, 4 * size, room);
  for (ptrdiff_t i = 0; i < 4 * size; ++i) room[i] = gates[i] + room[i];
  if (peepholes) {
    peep(peepholes, cell, enter, size);
    peep(peepholes + 2 * size, cell, forget, size);
    turn(w, MORE + 1, 4, 0, enter, size);
    turn(w, MORE + 1, 4, 0, forget, size);
  } else {
    turn(w, MORE + 1, 4, 0, room, 3 * size);
  }
  turn(w, MORE + 1, 4, 1, fresh, size);
  for (ptrdiff_t i = 0; i < size; ++i) {
    float kept = forget[i] * cell[i], added = enter[i] * fresh[i];
    enter[i] = cell[i] = kept + added;
  }
  if (peepholes) {
    peep(peepholes + size, cell, leave, size);
    turn(w, MORE + 1, 4, 0, leave, size);
  }
  turn(w, MORE + 1, 4, 1, enter, size);
  for (ptrdiff_t i = 0; i < size; ++i) made[i] = leave[i] * enter[i];
}

static void gru_step(const work_t *w, const float *gates, float *hidden, ptrdiff_t n) {
  const ptrdiff_t size = w->p[HIDDEN];
  const float *bias = floats(w, MORE);
  float *both = floats(w, ROOM), *last = both + 2 * size, *scaled = both + 3 * size;
  (void)n;
  recur(w, MORE + 1, hidden, 3, 0, 2 * size, both);
  for (ptrdiff_t i = 0; i < 2 * size; ++i) {
    float sum = gates[i] + both[i];
    both[i] = sum + bias[i];
  }
  turn(w, MORE + 1, 3, 0, both, 2 * size);
  const float *update = both, *reset = both + size;
  if (!w->p[KIND])
    for (ptrdiff_t i = 0; i < size; ++i) scaled[i] = reset[i] * hidden[i];
  recur(w, MORE + 1, w->p[KIND] ? hidden : scaled, 3, 2 * size, size, last);
  for (ptrdiff_t i = 0; i < size; ++i) {
    float inner = last[i] + bias[2 * size + i];
    if (w->p[KIND]) inner = reset[i] * inner;
    last[i] = gates[2 * size + i] + inner;
  }
  turn(w, MORE + 1, 3, 1, last, size);
  for (ptrdiff_t i = 0; i < size; ++i) {
    float opposite = 1.0f - update[i], first = opposite * last[i], second = update[i] * hidden[i];
    hidden[i] = first + second;
  }
}

// The activation is Tanh, Sigmoid or Relu.
static void rnn_step(const work_t *w, const float *gates, float *hidden, ptrdiff_t n) {
  const ptrdiff_t size = w->p[HIDDEN];
  float *room = floats(w, ROOM);
  (void)n;
  recur(w, MORE, hidden, 1, 0, size, room);
  for (ptrdiff_t i = 0; i < size; ++i) hidden[i] = gates[i] + room[i];
  if (w->p[KIND] < 2) turn(w, MORE, 1, w->p[KIND] == 0, hidden, size);
  if (w->p[KIND] == 2)
    for (ptrdiff_t i = 0; i < size; ++i) hidden[i] = hidden[i] <= 0 ? 0 : hidden[i];
}

static int run_steps(const work_t *w, ptrdiff_t gates,
                     void (*one)(const work_t *, const float *, float *, ptrdiff_t)) {
  const ptrdiff_t steps = w->p[STEPS], batch = w->p[BATCH], size = w->p[HIDDEN];
  for (ptrdiff_t turn = 0; turn < steps; ++turn) {
    ptrdiff_t step = w->p[BACKWARDS] ? steps - 1 - turn : turn;
    for (ptrdiff_t n = 0; n < batch; ++n) {
      float *hidden = floats(w, STATE) + n * size;
      one(w, floats(w, GATES) + (step * batch + n) * gates * size, hidden, n);
      if (!w->p[WHOLE_STATE]) memcpy(floats(w, OUTPUTS) + step * w->p[STRIDE] + n * size, hidden, (size_t)size * 4);
    }
  }
  return 0;
}

static int run_lstm(const work_t *w) { return run_steps(w, 4, lstm_step); }
static int run_gru(const work_t *w) { return run_steps(w, 3, gru_step); }
static int run_rnn(const work_t *w) { return run_steps(w, 1, rnn_step); }


const kernel_t recurrent_kernels[] = {
    {check_lstm, run_lstm}, {check_gru, run_gru}, {check_rnn, run_rnn}};
const int recurrent_kernel_count = sizeof recurrent_kernels / sizeof recurrent_kernels[0];
