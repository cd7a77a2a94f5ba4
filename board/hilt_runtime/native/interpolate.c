// SPDX-License-Identifier: Apache-2.0
//
// Linear interpolation of int8 images by powers of two: sums of neighbours in whole numbers, halves rounded up.
#include "engine.h"

#define CHUNK 512  // columns of a line of sums on the stack

// The weight of the neighbour of an output's pixel, of twice the factor; `above`: the next pixel, else the one before.
typedef struct {
  int beside, above;
} part_t;

static part_t part_of(ptrdiff_t place, ptrdiff_t factor, int centred) {
  const int doubled = (int)(centred ? 2 * place + 1 - factor : 2 * place);
  return (part_t){doubled < 0 ? -doubled : doubled, doubled > 0};
}

static ptrdiff_t inside(ptrdiff_t place, ptrdiff_t size) { return place < 0 ? 0 : place < size ? place : size - 1; }

// --- interpolate: planes, height, width, rows and columns of a pixel, 1 if pixels lie at their centres, the shift.
// Buffers: data, target. ---

static int check_interpolate(const work_t *w) {
  const int64_t *p = w->p;
  const int64_t elements = product_of(3, p);
  if (w->count != 2 || elements < 1 || !in_range(p[3], 1, 8) || !in_range(p[4], 1, 8)) return 0;
  const int64_t sizes[4] = {elements, p[3], p[4], 1};
  return in_range(p[5], 0, 1) && in_range(p[6], 0, 8) && holds(w, 0, elements, 1) && holds(w, 1, product_of(4, sizes), 1);
}

static int run_interpolate(const work_t *w) {
  const ptrdiff_t planes = w->p[0], height = w->p[1], width = w->p[2], high = w->p[3], wide = w->p[4];
  const int centred = (int)w->p[5], shift = (int)w->p[6], half = 1 << shift >> 1;
  int8_t *y = (int8_t *)w->data[1];
  for (ptrdiff_t row = 0; row < planes * height * high; ++row, y += width * wide) {
    const ptrdiff_t pixel = row / high % height;
    const int8_t *plane = (const int8_t *)w->data[0] + row / high / height * height * width;
    const part_t rows = part_of(row % high, high, centred);
    const int8_t *near = plane + pixel * width;
    const int8_t *far = plane + inside(rows.above ? pixel + 1 : pixel - 1, height) * width;
    const int own = (int)(2 * high) - rows.beside;
    for (ptrdiff_t first = 0; first < width; first += CHUNK) {
      const ptrdiff_t count = width - first < CHUNK ? width - first : CHUNK;
      int16_t line[CHUNK + 2];  // with the columns before and behind
      for (ptrdiff_t i = 0; i < count; ++i)
        line[i + 1] = (int16_t)(near[first + i] * own + far[first + i] * rows.beside);
      const ptrdiff_t before = inside(first - 1, width), behind = inside(first + count, width);
      line[0] = (int16_t)(near[before] * own + far[before] * rows.beside);
      line[count + 1] = (int16_t)(near[behind] * own + far[behind] * rows.beside);
      for (ptrdiff_t place = 0; place < wide; ++place) {
        const part_t columns = part_of(place, wide, centred);
        const int16_t *here = line + 1, *there = columns.above ? line + 2 : line;
        const int part = columns.beside, rest = (int)(2 * wide) - part;
        int8_t *target = y + first * wide + place;
        for (ptrdiff_t i = 0; i < count; ++i)
          target[i * wide] = (int8_t)((here[i] * rest + there[i] * part + half) >> shift);
      }
    }
  }
  return 0;
}

const kernel_t interpolate_kernels[] = {{check_interpolate, run_interpolate}};
const int interpolate_kernel_count = sizeof interpolate_kernels / sizeof interpolate_kernels[0];
