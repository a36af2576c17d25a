// What decoding consists of: products of a few rows with a matrix that lies in memory row by row, and attention of one query a row.
//
// Such products wait for memory, and libtorch's (MKL, oneDNN) wait for it first and multiply then. Here the lanes of a vector are rows of x, so
// that each weight is read once, where it lies, and multiplied with all rows, while what comes next is on its way. A row's result
// does not depend on the rows beside it.
//
// As batched matrix products, the attention would be copied and padded more than multiplied; here keys and values are read where they
// lie, once, as far as their row reaches.
#include "kernels.h"

#include <algorithm>
#include <limits>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 64")

#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
#define LANES 16
#include "rows_kernel.h"
#include "attention_kernel.h"
#undef LANES
const RowsKernel* kernels[] = {&kernel<1, 16>, &kernel<2, 12>, &kernel<3, 8>, &kernel<4, 6>};
}  // namespace avx512
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#define LANES 8
#include "rows_kernel.h"
#include "attention_kernel.h"
#undef LANES
const RowsKernel* kernels[] = {&kernel<1, 12>, &kernel<2, 6>, &kernel<3, 4>, &kernel<4, 3>};
}  // namespace avx2
#pragma GCC pop_options

static const bool wide = __builtin_cpu_supports("avx512f"), narrow = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");

// Beyond so many rows libtorch's product is as fast, except for MKL's on AMD's processors.
static const int64_t most_rows = __builtin_cpu_is("amd") ? INT64_MAX : 256;

const RowsKernel* rows_kernel(int64_t rows, int lanes) {
  if (lanes == 0 && rows > most_rows) return nullptr;
  if (lanes == 0) lanes = wide && rows > 8 ? 16 : 8;  // the results are the same to the bit
  if (lanes == 16 && wide) return avx512::kernels[std::min<int64_t>((rows + 15) / 16, 4) - 1];
  if (lanes == 8 && narrow) return avx2::kernels[std::min<int64_t>((rows + 7) / 8, 4) - 1];
  return nullptr;
}

const AttentionKernel* attention_kernel(int64_t size, int lanes) {
  if (lanes != 8 && wide && size % 16 == 0) return &avx512::attention;
  if (lanes != 16 && narrow && size % 8 == 0) return &avx2::attention;
  return nullptr;
}
#else
const RowsKernel* rows_kernel(int64_t, int) { return nullptr; }
const AttentionKernel* attention_kernel(int64_t, int) { return nullptr; }
#endif
