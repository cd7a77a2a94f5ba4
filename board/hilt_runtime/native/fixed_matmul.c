// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of floats in fixed point with int8: of a layer's weights, and of two activations.
#include "fixed_point.h"

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

static int run_product_int8(const work_t *w) {
  const ptrdiff_t rows = w->p[0], depth = w->p[1], columns = w->p[2], apart = w->p[3];
  int16_t *fixed = (int16_t *)w->data[3];
  int exponent = exponent_of((const float *)w->data[0], rows * depth);
  to_steps((const float *)w->data[0], fixed, rows * depth, exponent);
  times_rows(fixed, rows, (const int8_t *)w->data[1], (const float *)w->data[2], depth, columns, ldexp(1.0, -exponent),
             (float *)w->data[4], apart);
  return 0;
}

// --- fixed_matmul: batches[2], rows, depth, columns, strides of the data's batches[2] and of the lines', 1: the target
// is turned (columns, rows), 1: it is int8, 1: its step is a power of two; the lines' offset; the first of all
// batches' rows, the one behind the last. Buffers: data, lines of int8 (columns, depth) of each batch, room for two rows of data in int16 and for two
// of the product; target (dense). Floats: the lines' scale; the target's step, and 1 / it. ---

enum { F_ROWS = 2, F_DEPTH, F_COLUMNS, F_DATA, F_LINES = 7, F_TURNED = 9, F_INT8, F_EXACT, F_OFFSET, F_BEGIN, F_END };
enum { F_FIXED = 2, F_ROOM, F_TARGET };

// Returns whether a buffer holds a matrix of `elements` of `item` bytes for each of the batches.
static int holds_batches(const work_t *w, int buffer, const int64_t *strides, int64_t elements, int64_t item) {
  for (int i = 0; i < 2; ++i)
    if (!in_range(strides[i], 0, (int64_t)1 << 31)) return 0;
  const int64_t last = (w->p[0] - 1) * strides[0] + (w->p[1] - 1) * strides[1];
  return elements > 0 && last <= (int64_t)1 << 40 && holds(w, buffer, last + elements, item);
}

static int check_fixed_matmul(const work_t *w) {
  const int64_t *p = w->p, made[4] = {p[0], p[1], p[F_ROWS], p[F_COLUMNS]}, elements = product_of(4, made);
  const int64_t lines[2] = {p[F_COLUMNS], p[F_DEPTH]};
  if (w->count != 5 || elements <= 0 || !in_range(p[F_DEPTH], 1, MOST_DEPTH)) return 0;
  return holds_batches(w, 0, p + F_DATA, product_of(2, p + F_ROWS), 4) &&
         holds_batches(w, 1, p + F_LINES, product_of(2, lines), 1) && holds(w, F_FIXED, 2 * p[F_DEPTH], 2) &&
         holds(w, F_ROOM, 2 * p[F_COLUMNS], 4) &&
         in_range(p[F_OFFSET], -MOST_OFFSET, MOST_OFFSET) && holds(w, F_TARGET, elements, p[F_INT8] ? 1 : 4) && in_range(p[F_BEGIN], 0, p[F_END]) &&
         p[F_END] <= p[0] * p[1] * p[F_ROWS];
}

// Writes a row of a product to a column of the target.
static void keep_turned(const work_t *w, ptrdiff_t batch, ptrdiff_t row, const float *made) {
  const ptrdiff_t rows = w->p[F_ROWS], columns = w->p[F_COLUMNS];
  float *to = (float *)w->data[F_TARGET] + batch * rows * columns + row;
  for (ptrdiff_t i = 0; i < columns; ++i) to[i * rows] = made[i];
}

// Writes a row of a product in steps of the target's, to a row or a column of it.
static void keep_quantised(const work_t *w, ptrdiff_t batch, ptrdiff_t row, const float *made) {
  const ptrdiff_t rows = w->p[F_ROWS], columns = w->p[F_COLUMNS], turned = w->p[F_TURNED] != 0;
  int8_t *to = (int8_t *)w->data[F_TARGET] + batch * rows * columns + (turned ? row : row * columns);
  int8_t steps[NEAR];
  for (ptrdiff_t first = 0, here; (here = least(columns - first, NEAR)) > 0; first += here) {
    quantize_line(made + first, turned ? steps : to + first, here, (float)w->f[1], (float)w->f[2], w->p[F_EXACT] != 0);
    for (ptrdiff_t i = 0; turned && i < here; ++i) to[(first + i) * rows] = steps[i];
  }
}

// Rounds a row of data; returns the factor of its sums.
static float fix_row(const work_t *w, const float *data, int16_t *fixed) {
  const float scale = (float)w->f[0];
  float factor;
  const int exponent = exponent_of(data, w->p[F_DEPTH]);
  to_steps(data, fixed, w->p[F_DEPTH], exponent);
  factors_of(&scale, ldexp(1.0, -exponent), 1, &factor);
  return factor;
}

// Returns the part that an offset of the lines has in each sum of a row's products.
static int64_t added_by(const int16_t *fixed, ptrdiff_t depth, int64_t offset) {
  int64_t sum = 0;
  if (offset)
    for (ptrdiff_t i = 0; i < depth; ++i) sum += fixed[i];
  return sum * offset;
}

static int run_fixed_matmul(const work_t *w) {
  const int64_t *p = w->p;
  const ptrdiff_t depth = p[F_DEPTH], columns = p[F_COLUMNS];
  int16_t *fixed = (int16_t *)w->data[F_FIXED];
  float *room = (float *)w->data[F_ROOM];
  for (ptrdiff_t unit = p[F_BEGIN], rows; unit < p[F_END]; unit += rows) {
    const ptrdiff_t batch = unit / p[F_ROWS], row = unit % p[F_ROWS], outer = batch / p[1], inner = batch % p[1];
    const float *data = (const float *)w->data[0] + outer * p[F_DATA] + inner * p[F_DATA + 1] + row * depth;
    const int8_t *lines = (const int8_t *)w->data[1] + outer * p[F_LINES] + inner * p[F_LINES + 1];
    rows = row + 1 < p[F_ROWS] && unit + 1 < p[F_END] ? 2 : 1;
    const float first = fix_row(w, data, fixed);
    const float factors[2] = {first, rows == 2 ? fix_row(w, data + depth, fixed + depth) : first};
    if (rows == 1) memcpy(fixed + depth, fixed, (size_t)depth * 2);
    const int64_t added[2] = {added_by(fixed, depth, p[F_OFFSET]), added_by(fixed + depth, depth, p[F_OFFSET])};
    const ptrdiff_t exact = EXACT * 128 / (128 + (p[F_OFFSET] < 0 ? -p[F_OFFSET] : p[F_OFFSET]));
    const int plain = !p[F_TURNED] && !p[F_INT8];
    float *made = plain ? (float *)w->data[F_TARGET] + unit * columns : room;
    times_pair(fixed, lines, depth, columns, exact, added, factors, made,
               plain && rows == 2 ? made + columns : room + columns);
    for (ptrdiff_t next = 0; !plain && next < rows; ++next)
      (p[F_INT8] ? keep_quantised : keep_turned)(w, batch, row + next, room + next * columns);
  }
  return 0;
}

const kernel_t fixed_kernels[] = {{check_product_int8, run_product_int8}, {check_fixed_matmul, run_fixed_matmul}};
const int fixed_kernel_count = sizeof fixed_kernels / sizeof fixed_kernels[0];
