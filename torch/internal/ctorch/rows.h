// Products of a few rows with a matrix, for ctorch.cc alone.
#pragma once
#include <stdint.h>

// Rows is y (rows, out) = x (rows, in) times w (out, in) transposed, plus bias (out) unless null; all row-major, the rows of x stride
// floats apart. packed has room
// for x as the kernel wants it, in * kernel.rows floats, aligned to 64 bytes.
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

// rows_kernel is the kernel for so many rows, or the one for most, with vectors of so many lanes, 0: as many as this processor has.
// Null where it has none.
const RowsKernel* rows_kernel(int64_t rows, int lanes);
