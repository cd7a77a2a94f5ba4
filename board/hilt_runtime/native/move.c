// SPDX-License-Identifier: Apache-2.0
//
// Kernels that move elements: copies between strides, fills, takes by index, and VTA's packed layout.
#include "engine.h"
#include "vector.h"

// --- transposing bytes ---

#if defined(__ARM_NEON) && !defined(__aarch64__)
// Eight rows of eight at a time: 32-bit ARM has registers for no more.
static void transpose_8(const uint8_t *src, ptrdiff_t from, uint8_t *dst, ptrdiff_t to) {
  uint8x8x2_t bytes[4];
  UNROLLED for (int k = 0; k < 4; ++k) bytes[k] = vtrn_u8(vld1_u8(src + 2 * k * from), vld1_u8(src + (2 * k + 1) * from));
  UNROLLED for (int odd = 0; odd < 2; ++odd) {
    uint16x4x2_t low = vtrn_u16(vreinterpret_u16_u8(bytes[0].val[odd]), vreinterpret_u16_u8(bytes[1].val[odd]));
    uint16x4x2_t high = vtrn_u16(vreinterpret_u16_u8(bytes[2].val[odd]), vreinterpret_u16_u8(bytes[3].val[odd]));
    UNROLLED for (int half = 0; half < 2; ++half) {
      uint32x2x2_t whole = vtrn_u32(vreinterpret_u32_u16(low.val[half]), vreinterpret_u32_u16(high.val[half]));
      vst1_u8(dst + (odd + 2 * half) * to, vreinterpret_u8_u32(whole.val[0]));
      vst1_u8(dst + (odd + 2 * half + 4) * to, vreinterpret_u8_u32(whole.val[1]));
    }
  }
}

static void transpose_tile(const uint8_t *src, ptrdiff_t from, uint8_t *dst, ptrdiff_t to) {
  for (int row = 0; row < 16; row += 8)
    for (int column = 0; column < 16; column += 8)
      transpose_8(src + row * from + column, from, dst + column * to + row, to);
}
#else
static void transpose_tile(const uint8_t *src, ptrdiff_t from, uint8_t *dst, ptrdiff_t to) {
  bytes16 tile[16];
  UNROLLED for (int k = 0; k < 16; ++k, src += from) tile[k] = load16(src);
  transpose16(tile);
  UNROLLED for (int k = 0; k < 16; ++k, dst += to) store16(dst, tile[k]);
}
#endif

// The same of `rows` x `columns`, at most 16, of `whole_lines` if 16 bytes of each may be read; `width` bytes are
// written in each line, zeros behind the rows.
static void transpose_edge(const uint8_t *src, ptrdiff_t from, ptrdiff_t rows, uint8_t *dst, ptrdiff_t to,
                           ptrdiff_t columns, ptrdiff_t width, int whole_lines) {
  uint8_t edge[16] = {0};
  bytes16 tile[16];
  for (ptrdiff_t k = 0; k < 16; ++k, src += from) {
    if (k >= rows) {
      memset(edge, 0, 16);
      tile[k] = load16(edge);
    } else if (columns == 16 || whole_lines) {
      tile[k] = load16(src);
    } else {
      memcpy(edge, src, (size_t)columns);
      tile[k] = load16(edge);
    }
  }
  transpose16(tile);
  for (ptrdiff_t k = 0; k < columns; ++k, dst += to) {
    if (width == 16) {
      store16(dst, tile[k]);
      continue;
    }
    store16(edge, tile[k]);
    if (width == 8)
      memcpy(dst, edge, 8);
    else
      memcpy(dst, edge, (size_t)width);
  }
}

// Writes dst[column * to + row] = src[row * from + column] for rows x columns, and zeros for rows up to `whole`.
// Of each row `readable` bytes may be read, at least the columns.
static void transpose_bytes(const uint8_t *src, ptrdiff_t from, ptrdiff_t rows, uint8_t *dst, ptrdiff_t to, ptrdiff_t columns,
                            ptrdiff_t whole, ptrdiff_t readable) {
  for (ptrdiff_t row = 0; row < whole; row += 16) {
    ptrdiff_t here = rows - row < 16 ? rows - row : 16;
    ptrdiff_t width = whole - row < 16 ? whole - row : 16;
    for (ptrdiff_t column = 0; column < columns; column += 16) {
      ptrdiff_t there = columns - column < 16 ? columns - column : 16;
      const uint8_t *from_here = src + row * from + column;
      uint8_t *to_here = dst + column * to + row;
      if (here >= 16 && there == 16 && width == 16)
        transpose_tile(from_here, from, to_here, to);
      else
        transpose_edge(from_here, from, here, to_here, to, there, width, readable - column >= 16);
    }
  }
}

// --- copy: item bytes, axes, offset and strides of source and target in items ---
// p: item, axes, source offset, target offset, sizes[6], source strides[6], target strides[6]. Buffers: source, target.

static int reach(int64_t axes, int64_t offset, const int64_t *sizes, const int64_t *strides, int64_t limit) {
  int64_t low = offset, high = offset;
  if (!in_range(offset, 0, (int64_t)1 << 40)) return 0;
  for (int64_t i = 0; i < axes; ++i) {
    if (!in_range(strides[i], -((int64_t)1 << 31), (int64_t)1 << 31)) return 0;
    int64_t far = (sizes[i] - 1) * strides[i];  // sizes are at most 2^31
    if (!in_range(far, -((int64_t)1 << 40), (int64_t)1 << 40)) return 0;
    *(far < 0 ? &low : &high) += far;
  }
  return low >= 0 && high < limit;
}

static int check_copy(const work_t *w) {
  const int64_t *p = w->p;
  int64_t item = p[0], axes = p[1];
  if (w->count != 2 || !(item == 1 || item == 2 || item == 4 || item == 8) || !in_range(axes, 1, HILT_AXES)) return 0;
  int64_t elements = product_of((int)axes, p + 4);
  if (elements < 0 || !holds(w, 0, 0, item) || !holds(w, 1, 0, item)) return 0;
  return elements == 0 || (reach(axes, p[2], p + 4, p + 10, w->bytes[0] / item) &&
                           reach(axes, p[3], p + 4, p + 16, w->bytes[1] / item));
}

#define COPY_LINE(type)                                                                       \
  do {                                                                                        \
    const type *s = (const type *)src;                                                        \
    type *d = (type *)dst;                                                                    \
    for (int64_t i = 0; i < count; ++i) d[i * to] = s[i * from];                              \
  } while (0)

static void copy_line(ptrdiff_t item, const uint8_t *restrict src, ptrdiff_t from, uint8_t *restrict dst, ptrdiff_t to, ptrdiff_t count) {
  if (from == 1 && to == 1)
    memcpy(dst, src, (size_t)(count * item));
  else if (item == 1)
    COPY_LINE(uint8_t);
  else if (item == 2)
    COPY_LINE(uint16_t);
  else if (item == 4)
    COPY_LINE(uint32_t);
  else
    COPY_LINE(uint64_t);
}

// Writes dst[2 * i] = even[i] and dst[2 * i + 1] = odd[i].
static void zip_lines(const uint8_t *even, const uint8_t *odd, uint8_t *restrict dst, ptrdiff_t count) {
  for (ptrdiff_t i = 0; i < count; i += 16) {
    if (count - i < 16) i = count - 16;  // again some of those before
    bytes16 low, high;
    zip16(load16(even + i), load16(odd + i), &low, &high);
    store16(dst + 2 * i, low);
    store16(dst + 2 * i + 16, high);
  }
}

// Writes dst[first * to + second] = src[second * from + first], four by four: each line of memory is met in one go.
static void transpose_words(const uint32_t *src, ptrdiff_t from, uint32_t *restrict dst, ptrdiff_t to, ptrdiff_t firsts,
                            ptrdiff_t seconds) {
  for (ptrdiff_t second = 0; second < seconds; second += 4)
    for (ptrdiff_t first = 0; first < firsts; first += 4) {
      if (seconds - second < 4) second = seconds - 4;  // again some of those before
      if (firsts - first < 4) first = firsts - 4;
      const uint32_t *s = src + second * from + first;
      uint32_t *d = dst + first * to + second;
      UNROLLED for (int k = 0; k < 4; ++k, ++s, d += to) {
        const uint32_t words[4] = {s[0], s[from], s[2 * from], s[3 * from]};
        memcpy(d, words, 16);
      }
    }
}

// Transposes a plane of larger items in tiles that stay in the cache.
static void copy_plane(ptrdiff_t item, const uint8_t *src, const int64_t *from, uint8_t *dst, const int64_t *to,
                       const int64_t *sizes) {
  if (item == 1 && sizes[1] == 2 && sizes[0] >= 16 && from[0] == 1 && to[0] == 2 && to[1] == 1) {
    zip_lines(src, src + from[1], dst, sizes[0]);
    return;
  }
  if (sizes[1] < 8 && sizes[0] > sizes[1]) {
    for (ptrdiff_t second = 0; second < sizes[1]; ++second)
      copy_line(item, src + second * from[1] * item, from[0], dst + second * to[1] * item, to[0], sizes[0]);
    return;
  }
  if (item == 1 && from[0] == 1 && to[1] == 1 && from[1] > 0 && to[0] > 0 && sizes[0] >= 8) {
    transpose_bytes(src, from[1], sizes[1], dst, to[0], sizes[0], sizes[1], sizes[0]);
    return;
  }
  if (item == 4 && from[0] == 1 && to[1] == 1 && sizes[0] >= 4) {
    transpose_words((const uint32_t *)(const void *)src, from[1], (uint32_t *)(void *)dst, to[0], sizes[0], sizes[1]);
    return;
  }
  ptrdiff_t tile = from[1] == 1 && to[1] == 1 ? sizes[1] : 32;
  for (ptrdiff_t second = 0; second < sizes[1]; second += tile) {
    ptrdiff_t count = sizes[1] - second < tile ? sizes[1] - second : tile;
    for (ptrdiff_t first = 0; first < sizes[0]; ++first)
      copy_line(item, src + (first * from[0] + second * from[1]) * item, from[1],
                dst + (first * to[0] + second * to[1]) * item, to[1], count);
  }
}

static int run_copy(const work_t *w) {
  const int64_t *p = w->p, *sizes = p + 4, *from = p + 10, *to = p + 16;
  ptrdiff_t item = p[0];
  int axes = (int)p[1];
  if (product_of(axes, sizes) == 0) return 0;
  const uint8_t *src = w->data[0] + p[2] * item;
  uint8_t *dst = w->data[1] + p[3] * item;
  if (axes == 1) {
    copy_line(item, src, from[0], dst, to[0], sizes[0]);
    return 0;
  }
  int outer = axes - 2;
  ptrdiff_t at[HILT_AXES] = {0};
  for (;;) {
    copy_plane(item, src, from + outer, dst, to + outer, sizes + outer);
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      src += from[axis] * item;
      dst += to[axis] * item;
      if (++at[axis] < sizes[axis]) break;
      src -= from[axis] * item * sizes[axis];
      dst -= to[axis] * item * sizes[axis];
      at[axis] = 0;
    }
    if (axis < 0) return 0;
  }
}

// --- fill: item bytes, elements, the item's bits. Buffers: target. ---

static int check_fill(const work_t *w) {
  int64_t item = w->p[0];
  if (w->count != 1 || !(item == 1 || item == 2 || item == 4 || item == 8)) return 0;
  return product_of(1, w->p + 1) >= 0 && holds(w, 0, w->p[1], item);
}

static int run_fill(const work_t *w) {
  ptrdiff_t item = w->p[0], count = w->p[1];
  uint64_t bits = (uint64_t)w->p[2];
  if (item == 1)
    memset(w->data[0], (int)(bits & 255), (size_t)count);
  else if (item == 2)
    for (ptrdiff_t i = 0; i < count; ++i) ((uint16_t *)w->data[0])[i] = (uint16_t)bits;
  else if (item == 4)
    for (ptrdiff_t i = 0; i < count; ++i) ((uint32_t *)w->data[0])[i] = (uint32_t)bits;
  else
    for (ptrdiff_t i = 0; i < count; ++i) ((uint64_t *)w->data[0])[i] = bits;
  return 0;
}

// --- take: outer, size of the axis, indices, bytes behind the axis. Buffers: source, indices (int64), target. ---

static int check_take(const work_t *w) {
  const int64_t *p = w->p;
  int64_t source[3] = {p[0], p[1], p[3]}, target[3] = {p[0], p[2], p[3]};
  int64_t there = product_of(3, source), made = product_of(3, target);
  return w->count == 3 && there >= 0 && made >= 0 && holds(w, 0, there, 1) && holds(w, 1, p[2], 8) &&
         holds(w, 2, made, 1);
}

static int run_take(const work_t *w) {
  ptrdiff_t outer = w->p[0], size = w->p[1], count = w->p[2], bytes = w->p[3];
  const int64_t *indices = (const int64_t *)w->data[1];
  for (ptrdiff_t i = 0; i < count; ++i)
    if (!in_range(indices[i], -size, size - 1)) return 1;
  uint8_t *dst = w->data[2];
  for (ptrdiff_t o = 0; o < outer; ++o) {
    const uint8_t *src = w->data[0] + o * size * bytes;
    if (bytes == 1) {
      for (ptrdiff_t i = 0; i < count; ++i) dst[i] = src[indices[i] < 0 ? indices[i] + size : indices[i]];
    } else {
      for (ptrdiff_t i = 0; i < count; ++i)
        memcpy(dst + i * bytes, src + (indices[i] < 0 ? indices[i] + size : indices[i]) * bytes, (size_t)bytes);
    }
    dst += count * bytes;
  }
  return 0;
}

// --- pack, unpack: images, channels, pixels, outer, inner, batch, block, pack alone: 1 where the source's channels are last.
// Buffers: source, target. ---

static int check_packed(const work_t *w, int plain, int packed) {
  const int64_t *p = w->p;
  int64_t all[5] = {p[2], p[3], p[4], p[5], p[6]};
  int64_t tensor = product_of(3, p), whole = product_of(5, all);
  if (w->count != 2 || tensor < 0 || whole < 0 || !holds(w, plain, tensor, 1) || !holds(w, packed, whole, 1)) return 0;
  return in_range(p[0], 1, p[3] * p[5]) && in_range(p[1], 1, p[4] * p[6]) && p[2] >= 1;
}

static int check_pack(const work_t *w) { return check_packed(w, 0, 1) && in_range(w->p[7], 0, 1); }
static int check_unpack(const work_t *w) { return check_packed(w, 1, 0); }

// Writes `count` elements of a block, each the `lanes` bytes at its step of the source and zeros.
static void blocks_of(const uint8_t *from, ptrdiff_t step, uint8_t *to, ptrdiff_t apart, ptrdiff_t count, ptrdiff_t lanes,
                      ptrdiff_t block) {
  for (ptrdiff_t i = 0; i < count; ++i, from += step, to += apart) {
    if (lanes == 16 && block == 16) {
      store16(to, load16(from));
      continue;
    }
    memcpy(to, from, (size_t)lanes);
    memset(to + lanes, 0, (size_t)(block - lanes));
  }
}

static int run_pack(const work_t *w) {
  ptrdiff_t images = w->p[0], channels = w->p[1], pixels = w->p[2];
  ptrdiff_t outer = w->p[3], inner = w->p[4], batch = w->p[5], block = w->p[6];
  for (ptrdiff_t image = 0; image < outer * batch; ++image)
    for (ptrdiff_t part = 0; part < inner; ++part) {
      ptrdiff_t rows = image < images ? channels - part * block : 0;
      rows = rows < 0 ? 0 : rows < block ? rows : block;
      const uint8_t *src = rows ? w->data[0] + (image * channels + part * block) * pixels : w->data[0];
      uint8_t *dst = w->data[1] + ((image / batch * inner + part) * pixels * batch + image % batch) * block;
      if (w->p[7] && rows) {
        blocks_of(w->data[0] + image * channels * pixels + part * block, channels, dst, batch * block, pixels, rows, block);
      } else if (pixels == 1) {
        for (ptrdiff_t lane = 0; lane < block; ++lane) dst[lane] = lane < rows ? src[lane] : 0;
      } else {
        transpose_bytes(src, pixels, rows, dst, batch * block, pixels, block, pixels);
      }
    }
  return 0;
}

static int run_unpack(const work_t *w) {
  ptrdiff_t images = w->p[0], channels = w->p[1], pixels = w->p[2];
  ptrdiff_t inner = w->p[4], batch = w->p[5], block = w->p[6];
  for (ptrdiff_t image = 0; image < images; ++image)
    for (ptrdiff_t part = 0; part * block < channels; ++part) {
      ptrdiff_t here = channels - part * block < block ? channels - part * block : block;
      const uint8_t *src = w->data[0] + ((image / batch * inner + part) * pixels * batch + image % batch) * block;
      uint8_t *dst = w->data[1] + (image * channels + part * block) * pixels;
      if (pixels == 1)
        memcpy(dst, src, (size_t)here);
      else
        transpose_bytes(src, batch * block, pixels, dst, pixels, here, pixels, block);
    }
  return 0;
}

// --- fold: images, channels, height, width, outer, inner, columns, batch, block, kernel, stride, left, first row, end,
// 1 where the source's channels are last, 1 where it is of floats; f: their scale, a power of two, and its inverse. ---
// Buffers: source, target.

// Functions of a row: within the loops over rows and blocks their numbers would find no registers.
#define APART __attribute__((noinline))

#define FOLD_ROOM 8192  // bytes of the lanes of a row

enum { F_FLOATS = 15 };

// Returns the columns that the room holds beside one kernel, channel beside channel; less than 0 if it holds none.
static ptrdiff_t room_of_rows(const int64_t *p) { return (ptrdiff_t)((FOLD_ROOM - 16) / p[1] - p[9]); }

static int check_fold(const work_t *w) {
  const int64_t *p = w->p;
  int64_t all[6] = {p[4], p[5], p[2], p[6], p[7], p[8]};
  int64_t tensor = product_of(4, p), whole = product_of(6, all);
  if (w->count != 2 || tensor < 0 || whole < 0 || !in_range(p[F_FLOATS], 0, 1)) return 0;
  if (!holds(w, 0, tensor, p[F_FLOATS] ? 4 : 1) || !holds(w, 1, whole, 1) || p[1] < 1) return 0;
  if (p[F_FLOATS] && !(w->f[0] > 0 && (p[8] == 16 || p[14]) && room_of_rows(p) >= 0)) return 0;
  return in_range(p[0], 1, p[4] * p[7]) && in_range(p[9], 1, 4096) && in_range(p[10], 1, 4096) &&
         in_range(p[11], 0, 4096) && p[1] >= 1 && p[1] <= 1 << 20 && p[9] * p[1] <= p[5] * p[8] && p[3] >= 1 && in_range(p[8], 1, 4096) &&
         in_range(p[12], 0, p[13]) && p[13] <= p[2] && in_range(p[14], 0, 1) &&
         (p[14] == 0 || room_of_rows(p) >= 0);
}

// Writes a lane's elements of the columns [first, first + count): zeros outside of the row.
static void fold_lane(const uint8_t *line, ptrdiff_t width, ptrdiff_t stride, ptrdiff_t shift, ptrdiff_t first, ptrdiff_t count,
                      uint8_t *to) {
  ptrdiff_t begin = shift < 0 ? (-shift + stride - 1) / stride : 0, last = width - 1 - shift;
  ptrdiff_t end = last < 0 ? 0 : last / stride + 1;
  begin = begin > first ? begin - first : 0;
  end = end - first < count ? end - first : count;
  if (begin >= end) {
    memset(to, 0, (size_t)count);
    return;
  }
  memset(to, 0, (size_t)begin);
  memset(to + end, 0, (size_t)(count - end));
  const uint8_t *from = line + (first + begin) * stride + shift;
  copy_line(1, from, stride, to + begin, 1, end - begin);
}

static void fold_by_lanes(const work_t *w) {
  ptrdiff_t images = w->p[0], channels = w->p[1], height = w->p[2], width = w->p[3];
  ptrdiff_t outer = w->p[4], inner = w->p[5], columns = w->p[6], batch = w->p[7], block = w->p[8];
  ptrdiff_t kernel = w->p[9], stride = w->p[10], left = w->p[11];
  uint8_t room[FOLD_ROOM];
  ptrdiff_t chunk = FOLD_ROOM / block;
  for (ptrdiff_t image = 0; image < outer * batch; ++image)
    for (ptrdiff_t part = 0; part < inner; ++part) {
      ptrdiff_t lanes = image < images ? kernel * channels - part * block : 0;
      lanes = lanes < 0 ? 0 : lanes < block ? lanes : block;
      for (ptrdiff_t row = w->p[12]; row < w->p[13]; ++row) {
        uint8_t *dst = w->data[1] +
                       (((image / batch * inner + part) * height + row) * columns * batch + image % batch) * block;
        for (ptrdiff_t first = 0; first < columns; first += chunk) {
          ptrdiff_t count = columns - first < chunk ? columns - first : chunk;
          for (ptrdiff_t lane = 0; lane < lanes; ++lane) {
            ptrdiff_t offset = (part * block + lane) / channels, channel = (part * block + lane) % channels;
            fold_lane(w->data[0] + ((image * channels + channel) * height + row) * width, width, stride, offset - left,
                      first, count, room + lane * count);
          }
          transpose_bytes(room, count, lanes, dst + first * batch * block, batch * block, count, block, count);
        }
      }
    }
}

// Writes columns [begin, begin + count) of a row, channel beside channel: zeros outside of the row. `plane` lies between
// the channels of the row; 0: they are beside one another already.
APART static void interleave(const uint8_t *row, ptrdiff_t plane, ptrdiff_t channels, ptrdiff_t width, ptrdiff_t begin, ptrdiff_t count,
                       uint8_t *to) {
  ptrdiff_t before = begin < 0 ? (-begin < count ? -begin : count) : 0;
  ptrdiff_t end = width - begin < count ? width - begin : count;
  if (end <= before) {
    memset(to, 0, (size_t)(count * channels));
    return;
  }
  memset(to, 0, (size_t)(before * channels));
  memset(to + end * channels, 0, (size_t)((count - end) * channels));
  uint8_t *there = to + before * channels;
  if (plane == 0) {
    memcpy(there, row + (begin + before) * channels, (size_t)((end - before) * channels));
    return;
  }
  const uint8_t *from = row + begin + before;
  if (channels == 3) {
    const uint8_t *second = from + plane, *third = second + plane;
    for (ptrdiff_t i = 0; i < end - before; ++i) {
      there[3 * i] = from[i];
      there[3 * i + 1] = second[i];
      there[3 * i + 2] = third[i];
    }
    return;
  }
  for (ptrdiff_t channel = 0; channel < channels; ++channel)
    copy_line(1, from + channel * plane, 1, there + channel, channels, end - before);
}

// The same of floats, which are quantised.
APART static void interleave_floats(const work_t *w, const float *row, ptrdiff_t plane, ptrdiff_t begin, ptrdiff_t count,
                              uint8_t *to) {
  const ptrdiff_t channels = w->p[1], width = w->p[3];
  const ptrdiff_t first = begin < 0 ? 0 : begin, end = begin + count < width ? begin + count : width;
  const ptrdiff_t inside = end > first ? end - first : 0;
  const float scale = (float)w->f[0], inverse = (float)w->f[1];
  if (plane == 0) {
    const ptrdiff_t before = (first - begin < count ? first - begin : count) * channels, made = inside * channels;
    memset(to, 0, (size_t)before);
    quantize_line(row + first * channels, (int8_t *)to + before, made, scale, inverse, 1);
    memset(to + before + made, 0, (size_t)(count * channels - before - made));
    return;
  }
  uint8_t line[FOLD_ROOM];
  for (ptrdiff_t channel = 0; channel < channels; ++channel)
    quantize_line(row + channel * plane + first, (int8_t *)line + channel * inside, inside, scale, inverse, 1);
  interleave(line, inside, channels, inside, begin - first, count, to);
}

// Writes blocks of 16 lanes: the first `lanes` of the 16 bytes at each step, and zeros.
APART static void masked_blocks(const uint8_t *from, ptrdiff_t step, uint8_t *to, ptrdiff_t apart, ptrdiff_t count, ptrdiff_t lanes) {
  static const uint8_t kept[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
  const bytes16 mask = load16(kept + 16 - lanes);
  ptrdiff_t i = 0;
  if (apart == 16)
    for (; i + 4 <= count; i += 4, to += 64) {
      const bytes16 a = load16(from), b = load16(from += step), c = load16(from += step), d = load16(from += step);
      from += step;
      store16(to, and16(a, mask));
      store16(to + 16, and16(b, mask));
      store16(to + 32, and16(c, mask));
      store16(to + 48, and16(d, mask));
    }
  for (; i < count; ++i, from += step, to += apart) store16(to, and16(load16(from), mask));
}

// A row with channel beside channel holds each column's lanes in their order: they are copied a block at a time.
static void fold_by_rows(const work_t *w, ptrdiff_t chunk) {
  ptrdiff_t images = w->p[0], channels = w->p[1], height = w->p[2], width = w->p[3];
  ptrdiff_t outer = w->p[4], inner = w->p[5], columns = w->p[6], batch = w->p[7];
  ptrdiff_t kernel = w->p[9], stride = w->p[10], left = w->p[11], block = w->p[8];
  ptrdiff_t apart = w->p[14] ? channels : 1, plane = w->p[14] ? 0 : height * width;
  uint8_t room[FOLD_ROOM];
  memset(room, 0, (size_t)(((chunk - 1) * stride + kernel) * channels + 16));  // a block may reach past the row
  for (ptrdiff_t image = 0; image < outer * batch; ++image) {
    const ptrdiff_t lane = image % batch, whole = image / batch * inner;
    for (ptrdiff_t row = w->p[12]; row < w->p[13]; ++row)
      for (ptrdiff_t first = 0; first < columns; first += chunk) {
        ptrdiff_t count = columns - first < chunk ? columns - first : chunk;
        const ptrdiff_t source = image * channels * height * width + row * width * apart, begin = first * stride - left;
        const ptrdiff_t read = (count - 1) * stride + kernel;
        if (image < images && w->p[F_FLOATS])
          interleave_floats(w, (const float *)w->data[0] + source, plane, begin, read, room);
        else if (image < images)
          interleave(w->data[0] + source, plane, channels, width, begin, read, room);
        for (ptrdiff_t part = 0; part < inner; ++part) {
          ptrdiff_t lanes = image < images ? kernel * channels - part * block : 0;
          lanes = lanes < 0 ? 0 : lanes < block ? lanes : block;
          uint8_t *dst = w->data[1] + ((((whole + part) * height + row) * columns + first) * batch + lane) * block;
          const uint8_t *from = lanes ? room + part * block : room;
          if (block == 16)
            masked_blocks(from, stride * channels, dst, batch * block, count, lanes);
          else
            blocks_of(from, stride * channels, dst, batch * block, count, lanes, block);
        }
      }
  }
}

static int run_fold(const work_t *w) {
  ptrdiff_t columns = w->p[6], fit = room_of_rows(w->p);
  if ((w->p[8] == 16 || w->p[14]) && fit >= 0)
    fold_by_rows(w, fit / w->p[10] + 1 < columns ? fit / w->p[10] + 1 : columns);
  else
    fold_by_lanes(w);
  return 0;
}

// --- where: item bytes, axes, sizes[6], strides[6] of the condition, of each choice. Buffers: condition (bool), choices,
// target (dense). ---

enum { W_ITEM, W_AXES, W_SIZES, W_STRIDES = 8 };

static int check_where(const work_t *w) {
  const int64_t *p = w->p, item = p[W_ITEM], axes = p[W_AXES];
  if (w->count != 4 || !(item == 1 || item == 4 || item == 8) || !in_range(axes, 1, HILT_AXES)) return 0;
  const int64_t elements = product_of((int)axes, p + W_SIZES);
  if (elements <= 0 || !holds(w, 3, elements, item)) return 0;
  for (int i = 0; i < 3; ++i) {
    const int64_t own = i == 0 ? 1 : item;
    if (!holds(w, i, 0, own) || !reach(axes, 0, p + W_SIZES, p + W_STRIDES + 6 * i, w->bytes[i] / own)) return 0;
  }
  return 1;
}

#define CHOOSE(type)                                                                                         \
  do {                                                                                                       \
    const type *a = (const type *)first, *b = (const type *)second;                                          \
    for (ptrdiff_t i = 0; i < n; ++i) ((type *)y)[i] = condition[i * step[0]] ? a[i * step[1]] : b[i * step[2]]; \
  } while (0)

static void where_line(ptrdiff_t item, const uint8_t *condition, const uint8_t *first, const uint8_t *second,
                       const ptrdiff_t step[3], uint8_t *y, ptrdiff_t n) {
  if (step[0] == 0 && (*condition ? step[1] : step[2]) == 1)
    memcpy(y, *condition ? first : second, (size_t)(n * item));
  else if (item == 1)
    CHOOSE(uint8_t);
  else if (item == 4)
    CHOOSE(uint32_t);
  else
    CHOOSE(uint64_t);
}

static int run_where(const work_t *w) {
  const int64_t *p = w->p, *sizes = p + W_SIZES;
  const int last = (int)p[W_AXES] - 1;
  const ptrdiff_t item = p[W_ITEM], steps[3] = {p[W_STRIDES + last], p[W_STRIDES + 6 + last], p[W_STRIDES + 12 + last]};
  ptrdiff_t at[HILT_AXES] = {0};
  for (uint8_t *y = w->data[3];; y += sizes[last] * item) {
    ptrdiff_t offset[3] = {0};
    for (int i = 0; i < 3; ++i)
      for (int axis = 0; axis < last; ++axis) offset[i] += at[axis] * p[W_STRIDES + 6 * i + axis];
    where_line(item, w->data[0] + offset[0], w->data[1] + offset[1] * item, w->data[2] + offset[2] * item, steps, y,
               sizes[last]);
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      if (++at[axis] < sizes[axis]) break;
      at[axis] = 0;
    }
    if (axis < 0) return 0;
  }
}

// --- widen: elements. Buffers: int32, int64. clip_wide: elements, 1 with a least, 1 with a most, these. Buffers: int64,
// int64. ---

static int check_widen(const work_t *w) {
  return w->count == 2 && product_of(1, w->p) >= 0 && holds(w, 0, w->p[0], 4) && holds(w, 1, w->p[0], 8);
}

static int run_widen(const work_t *w) {
  for (ptrdiff_t i = 0; i < w->p[0]; ++i) ((int64_t *)w->data[1])[i] = ((const int32_t *)w->data[0])[i];
  return 0;
}

static int check_clip_wide(const work_t *w) {
  return w->count == 2 && product_of(1, w->p) >= 0 && holds(w, 0, w->p[0], 8) && holds(w, 1, w->p[0], 8);
}

static int run_clip_wide(const work_t *w) {
  const int64_t *x = (const int64_t *)w->data[0], low = w->p[1] ? w->p[3] : INT64_MIN, high = w->p[2] ? w->p[4] : INT64_MAX;
  for (ptrdiff_t i = 0; i < w->p[0]; ++i) {
    int64_t value = x[i] < low ? low : x[i];
    ((int64_t *)w->data[1])[i] = value > high ? high : value;
  }
  return 0;
}

const kernel_t move_kernels[] = {
    {check_copy, run_copy}, {check_fill, run_fill},     {check_take, run_take},
    {check_pack, run_pack}, {check_unpack, run_unpack}, {check_fold, run_fold},
    {check_where, run_where}, {check_widen, run_widen}, {check_clip_wide, run_clip_wide},
};
const int move_kernel_count = sizeof move_kernels / sizeof move_kernels[0];
