// SPDX-License-Identifier: Apache-2.0
//
// ONNX's recurrent operators: the steps of one direction, whose gates hold the data's part already. Weights are of
// float32, with sums in double, or of int8: then what they are multiplied with is rounded to steps, sums are exact, and
// sigmoid and tanh are lines between the values of a table, whose every operation is one of float32.
#include "engine.h"
#include "functions.h"
#include "products.h"

#include <math.h>
#include <string.h>

#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

#define CHUNK 256           // sums on the stack
#define LINES 4             // of int8, for which a piece of the state is read once
#define NEAR 16             // of int8, which stay in the cache for all states
#define EXACT 1008          // products of int8 and of a state's steps, whose sum keeps within 32 bits
#define STEPS_BITS 14       // of the largest value
#define MOST_DEPTH (1 << 20)
#define LEAST_FACTOR 0x1p-100
#define MOST_EXPONENT 100    // a power of two of float32
#define WHOLE 6755399441055744.0  // added and taken away, it rounds half to even
#define TABLE_END 12.0f      // sigmoids from -12 to 12, as hilt_runtime.functions has them
#define TABLE_STEPS 64.0f    // of a unit
#define TABLE_MIDDLE 768.0f
#define TABLE_VALUES 1538    // one more behind the end

// --- lstm, gru, rnn: steps, batch, hidden, 1 backwards, outputs' step stride, 1 linear before reset (gru) or the
// activation (rnn). Buffers: gates of the data (steps, batch, n * hidden), recurrence, outputs, hidden state (batch,
// hidden; in and out), room (4 * hidden), cell state (lstm; in and out) or recurrent bias (gru; 3 * hidden). The
// recurrence is transposed (hidden, n * hidden); or it is of int8 (n * hidden, hidden), and two buffers follow: the
// factors of its sums (n * hidden), and behind them the table of sigmoids; int16 for the state (hidden). One step of an
// lstm of int8 may be of some units of `whole`: the state is of all of them then, and is not written. `whole` is 0 of
// others. ---

enum { STEPS, BATCH, HIDDEN, BACKWARDS, STRIDE, KIND, WHOLE_STATE };
enum { GATES, RECURRENCE, OUTPUTS, STATE, ROOM, MORE };

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

static int check_lstm(const work_t *w) {
  return check_recurrent(w, 4, MORE + 1) && holds(w, MORE, w->p[BATCH] * w->p[HIDDEN], 4);
}
static int check_gru(const work_t *w) { return check_recurrent(w, 3, MORE + 1) && holds(w, MORE, 3 * w->p[HIDDEN], 4); }
static int check_rnn(const work_t *w) { return check_recurrent(w, 1, MORE) && in_range(w->p[KIND], 0, 2); }

// The few products that vectors leave, on processors that have ours.
#if defined(__clang__) && defined(__ARM_NEON)
#define FEW _Pragma("clang loop vectorize(disable) unroll(disable)")
#define BY_FOUR _Pragma("clang loop unroll_count(4)")
#else
#define FEW
#define BY_FOUR _Pragma("GCC unroll 4")
#endif

static float *floats(const work_t *w, int buffer) { return (float *)w->data[buffer]; }
static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

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

// Rounds values to steps of 2^-exponent, 2^14 of them at most; NaN is 0.
static void to_steps(const float *values, int16_t *to, ptrdiff_t count, int exponent) {
  const double factor = ldexp(1.0, exponent), end = 1 << STEPS_BITS;
  ptrdiff_t i = 0;
#ifdef __ARM_NEON
  // A product by a power of two is exact, or too small for a step; 1.5 * 2^23 rounds it into the lowest bits, 0 of NaN.
  if (in_range(exponent, -MOST_EXPONENT, MOST_EXPONENT))
    for (; i + 4 <= count; i += 4) {
      const float32x4_t value = vmulq_n_f32(vld1q_f32(values + i), (float)factor);
      const float32x4_t clipped = vmaxq_f32(vminq_f32(value, vdupq_n_f32((float)end)), vdupq_n_f32((float)-end));
      const int32x4_t bits = vreinterpretq_s32_f32(vaddq_f32(clipped, vdupq_n_f32(12582912.0f)));
      const uint32x4_t numbers = vceqq_f32(clipped, clipped);
      vst1_s16(to + i, vmovn_s32(vandq_s32(bits, vreinterpretq_s32_u32(numbers))));
    }
#endif
  for (; i < count; ++i) {
    double value = (double)values[i] * factor;
    value = value != value ? 0.0 : value < -end ? -end : value > end ? end : value;
    to[i] = (int16_t)((value + WHOLE) - WHOLE);
  }
}

// Gives the sums of a state's products with LINES lines of int8, which lie `apart`: of `count` products, EXACT at most.
static inline __attribute__((always_inline)) void sum_lines(const int16_t *state, const int8_t *lines, ptrdiff_t apart, ptrdiff_t count,
                             int32_t parts[LINES]) {
  ptrdiff_t k = 0;
#ifdef __ARM_NEON
  int32x4_t lanes[LINES] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
  const ptrdiff_t whole = count / 16 * 16;
  BY_FOUR for (; k < whole; k += 16) {
    const int16x8_t low = vld1q_s16(state + k), high = vld1q_s16(state + k + 8);
    UNROLLED for (int line = 0; line < LINES; ++line) {
      const int8x16_t bytes = vld1q_s8(lines + line * apart + k);
      const int16x8_t first = vmovl_s8(vget_low_s8(bytes)), second = vmovl_s8(vget_high_s8(bytes));
      lanes[line] = vmlal_s16(lanes[line], vget_low_s16(first), vget_low_s16(low));
      lanes[line] = vmlal_s16(lanes[line], vget_high_s16(first), vget_high_s16(low));
      lanes[line] = vmlal_s16(lanes[line], vget_low_s16(second), vget_low_s16(high));
      lanes[line] = vmlal_s16(lanes[line], vget_high_s16(second), vget_high_s16(high));
    }
  }
  int32x2_t halves[LINES];
  UNROLLED for (int line = 0; line < LINES; ++line)
    halves[line] = vadd_s32(vget_low_s32(lanes[line]), vget_high_s32(lanes[line]));
  vst1q_s32(parts, vcombine_s32(vpadd_s32(halves[0], halves[1]), vpadd_s32(halves[2], halves[3])));
#else
  UNROLLED for (int line = 0; line < LINES; ++line) parts[line] = 0;
#endif
  FEW for (; k < count; ++k)
    UNROLLED for (int line = 0; line < LINES; ++line) parts[line] += (int32_t)lines[line * apart + k] * state[k];
}

// Gives a state's products with whole LINES of rows of int8, EXACT products each at most.
static __attribute__((noinline)) void times_short(const int16_t *state, const int8_t *lines, const float *factors,
                                                  ptrdiff_t size, ptrdiff_t rows, float *y) {
  for (ptrdiff_t row = 0; row < rows; row += LINES, lines += LINES * size) {
    int32_t parts[LINES];
    sum_lines(state, lines, size, size, parts);
#ifdef __ARM_NEON
    vst1q_f32(y + row, vmulq_f32(vcvtq_f32_s32(vld1q_s32(parts)), vld1q_f32(factors + row)));
#else
    UNROLLED for (int line = 0; line < LINES; ++line) y[row + line] = (float)parts[line] * factors[row + line];
#endif
  }
}

// Gives a state's products with LINES rows of int8, which lie `apart`: sums times their factors.
static __attribute__((noinline)) void times_lines(const int16_t *state, const int8_t *lines, ptrdiff_t apart,
                                                  ptrdiff_t size, const float factors[LINES], float y[LINES]) {
  int32_t parts[LINES];
  double sums[LINES] = {0};
  for (ptrdiff_t first = 0; first < size; first += EXACT) {
    sum_lines(state + first, lines + first, apart, least(size - first, EXACT), parts);
    UNROLLED for (int line = 0; line < LINES; ++line) sums[line] += parts[line];
  }
  UNROLLED for (int line = 0; line < LINES; ++line) y[line] = (float)sums[line] * factors[line];
}

// Gives what the sums of rows are multiplied with, in float32; the smallest are 0, so that no product is subnormal.
static void factors_of(const float *scales, double step, ptrdiff_t count, float *to) {
  FEW for (ptrdiff_t i = 0; i < count; ++i) {
    const double factor = (double)scales[i] * step;
    to[i] = fabs(factor) < LEAST_FACTOR ? 0.0f : (float)factor;
  }
}

// Gives the products of states (count, size), in steps of `step`, with rows of int8; targets lie `apart`. Where it is 0,
// `scales` are the factors.
static void times_rows(const int16_t *states, ptrdiff_t count, const int8_t *matrix, const float *scales, ptrdiff_t size,
                       ptrdiff_t rows, double step, float *to, ptrdiff_t apart) {
  float made[NEAR];
  for (ptrdiff_t row = 0, here; (here = least(rows - row, NEAR)) > 0; row += here) {
    const float *factors = step == 0 ? scales + row : made;
    const ptrdiff_t whole = size <= EXACT ? here / LINES * LINES : 0;
    if (step != 0) factors_of(scales + row, step, here, made);
    for (ptrdiff_t state = 0; whole > 0 && state < count; ++state)
      times_short(states + state * size, matrix + row * size, factors, size, whole, to + state * apart + row);
    for (ptrdiff_t at = whole, lines; at < here; at += lines) {
      lines = here - at < LINES ? 1 : LINES;  // one line, LINES times
      float own[LINES], y[LINES];
      for (int line = 0; line < LINES; ++line) own[line] = factors[lines == 1 ? at : at + line];
      for (ptrdiff_t state = 0; state < count; ++state) {
        times_lines(states + state * size, matrix + (row + at) * size, lines == 1 ? 0 : size, size, own, y);
        memcpy(to + state * apart + row + at, y, (size_t)lines * 4);
      }
    }
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

static void lstm_step(const work_t *w, const float *gates, float *hidden, ptrdiff_t n) {
  const ptrdiff_t size = w->p[HIDDEN];
  float *room = floats(w, ROOM), *cell = floats(w, MORE) + n * size;
  float *made = w->p[WHOLE_STATE] ? floats(w, OUTPUTS) : hidden;
  recur(w, MORE + 1, hidden, 4, 0, 4 * size, room);
  for (ptrdiff_t i = 0; i < 4 * size; ++i) room[i] = gates[i] + room[i];
  turn(w, MORE + 1, 4, 0, room, 3 * size);
  turn(w, MORE + 1, 4, 1, room + 3 * size, size);
  float *enter = room, *leave = room + size, *forget = room + 2 * size, *fresh = room + 3 * size;
  for (ptrdiff_t i = 0; i < size; ++i) {
    float kept = forget[i] * cell[i], added = enter[i] * fresh[i];
    enter[i] = cell[i] = kept + added;
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

// --- product of int8: rows, depth, columns, the target's columns from one row to the next. Buffers: data (rows, depth),
// weights of int8 (columns, depth), scales (columns), int16 for the data, target (rows, columns): of some columns of a
// wider one, the buffer begins at the first of them. ---

static int check_product_int8(const work_t *w) {
  const int64_t rows = w->p[0], columns = w->p[2], before[2] = {rows - 1, w->p[3]};
  int64_t data = product_of(2, w->p), weights = product_of(2, w->p + 1), start = rows ? product_of(2, before) : 0;
  return w->count == 5 && data >= 0 && weights >= 0 && start >= 0 && w->p[3] >= columns && w->p[1] <= MOST_DEPTH &&
         holds(w, 0, data, 4) && holds(w, 1, weights, 1) && holds(w, 2, columns, 4) && holds(w, 3, data, 2) &&
         holds(w, 4, rows ? start + columns : 0, 4);
}

// Returns k of the steps 2^-k of data: its largest finite value is less than 2^14 of them.
static int exponent_of(const float *data, ptrdiff_t count) {
  uint32_t most = 0;  // bits of floats without their sign are in the order of the floats
  for (ptrdiff_t i = 0; i < count; ++i) {
    uint32_t bits;
    memcpy(&bits, data + i, 4);
    bits &= 0x7fffffffu;
    bits = bits < 0x7f800000u ? bits : 0;
    most = bits > most ? bits : most;
  }
  float largest;
  memcpy(&largest, &most, 4);
  int exponent;
  frexp((double)largest, &exponent);
  return STEPS_BITS - exponent;
}

static int run_product_int8(const work_t *w) {
  const ptrdiff_t rows = w->p[0], depth = w->p[1], columns = w->p[2], apart = w->p[3];
  int16_t *fixed = (int16_t *)w->data[3];
  int exponent = exponent_of(floats(w, 0), rows * depth);
  to_steps(floats(w, 0), fixed, rows * depth, exponent);
  times_rows(fixed, rows, (const int8_t *)w->data[1], floats(w, 2), depth, columns, ldexp(1.0, -exponent), floats(w, 4),
             apart);
  return 0;
}

const kernel_t recurrent_kernels[] = {
    {check_lstm, run_lstm}, {check_gru, run_gru}, {check_rnn, run_rnn}, {check_product_int8, run_product_int8}};
const int recurrent_kernel_count = sizeof recurrent_kernels / sizeof recurrent_kernels[0];
