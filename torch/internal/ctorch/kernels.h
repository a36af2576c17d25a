// The kernels of decoding, for decoding.cc alone.
#pragma once
#include <stdint.h>

// Rows is y (rows, out) = x (rows, in) times w (out, in) transposed, plus bias (out) unless null; all row-major, the rows of x stride
// floats apart. packed has room for x as the kernel wants it, in * kernel.rows floats, aligned to 64 bytes.
struct Rows {
  const float *x, *w, *bias;
  float *y, *packed;
  int64_t rows, in, out, stride;
};

// RowsKernel multiplies up to a number of rows: pack first, then any share of the tiles of kTile outputs.
struct RowsKernel {
  int64_t rows;
  void (*pack)(const Rows&);
  void (*tiles)(const Rows&, int64_t from, int64_t to);
};

constexpr int64_t kTile = 48;  // outputs; there are as many at least
constexpr int64_t kStep = 16;  // in is a multiple of it

// rows_kernel is the kernel for so many rows, or the one for most, with vectors of so many lanes, 0: those that suit.
// Null where this processor has none, or for lanes 0 nothing faster than libtorch.
const RowsKernel* rows_kernel(int64_t rows, int lanes);

// Attention is that of one query a row to its first lengths[row] keys. q is (rows, heads, size), its rows stride floats apart; keys and
// values are (rows, places, kv, size), width = kv * size. Each key-value head serves heads / kv query heads in a row.
// weights is (rows, heads, longest), out (rows, heads, size).
struct Attention {
  const float *q, *keys, *values;
  float *weights, *out;
  const int64_t* lengths;
  int64_t heads, kv, size, stride, width, places, longest;
  float scale;
};

// AttentionKernel: scores leaves scaled scores in weights, minus infinity beyond a row's length;
// values mixes the values by what then stands there. Both do a share of the rows * kv key-value heads.
struct AttentionKernel {
  void (*scores)(const Attention&, int64_t from, int64_t to);
  void (*values)(const Attention&, int64_t from, int64_t to);
};

constexpr int64_t kLine = 16;  // floats of a cache line

// attention_kernel is likewise the one for heads of so many floats.
const AttentionKernel* attention_kernel(int64_t size, int lanes);
