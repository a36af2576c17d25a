// Tensors to the kernels of kernels.cc.
#include <cmath>

#include <ATen/Parallel.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "handles.h"
#include "kernels.h"

extern "C" {

char* mb_linear(mb_tensor hx, mb_tensor hw, mb_tensor hbias, int lanes, mb_tensor* out) {
  *out = 0;
  return guarded([&] {
    auto x = borrow(hx), w = borrow(hw), bias = borrow(hbias);
    for (const auto* t : {&x, &w, &bias}) {
      if (!t->defined()) continue;
      if (t->scalar_type() != at::kFloat || !t->device().is_cpu()) return;
      if (c10::GradMode::is_enabled() && t->requires_grad()) return;
    }
    if (x.dim() != 2 || w.dim() != 2 || x.size(1) != w.size(1) || x.stride(1) != 1 || !w.is_contiguous()) return;
    int64_t rows = x.size(0), in = x.size(1), all = w.size(0);
    if (rows == 0 || in % kStep != 0 || all < kTile || (bias.defined() && (bias.numel() != all || !bias.is_contiguous()))) return;
    const auto* most = rows_kernel(rows, lanes);
    if (!most) return;
    auto y = at::empty({rows, all}, x.options()), packed = at::empty({in * most->rows}, x.options());
    auto* kernel = most;
    for (int64_t from = 0; from < rows; from += kernel->rows) {
      kernel = rows_kernel(rows - from, lanes);
      Rows r{x.data_ptr<float>() + from * x.stride(0), w.data_ptr<float>(), bias.defined() ? bias.data_ptr<float>() : nullptr,
             y.data_ptr<float>() + from * all, packed.data_ptr<float>(), std::min(kernel->rows, rows - from), in, all, x.stride(0)};
      kernel->pack(r);
      at::parallel_for(0, (all + kTile - 1) / kTile, 4, [&](int64_t a, int64_t b) { kernel->tiles(r, a, b); });
    }
    *out = release(std::move(y));
  });
}

int mb_attends(int64_t size, int lanes) { return attention_kernel(size, lanes) != nullptr; }

char* mb_attend(mb_tensor hq, mb_tensor hkeys, mb_tensor hvalues, const int64_t* lengths, int lanes, mb_tensor* out) {
  return guarded([&] {
    auto q = borrow(hq), keys = borrow(hkeys), values = borrow(hvalues);
    for (const auto* t : {&q, &keys, &values}) TORCH_CHECK(t->scalar_type() == at::kFloat && t->device().is_cpu(), "attend takes float32 on the CPU");
    TORCH_CHECK(q.dim() == 3 && keys.dim() == 3 && keys.sizes() == values.sizes() && keys.is_contiguous() && values.is_contiguous(),
                "attend takes q (rows, heads, size), contiguous keys and values (rows, places, kv * size)");
    int64_t rows = q.size(0), heads = q.size(1), size = q.size(2), places = keys.size(1), width = keys.size(2), kv = width / size;
    auto* kernel = attention_kernel(size, lanes);
    TORCH_CHECK(kernel && q.stride(2) == 1 && q.stride(1) == size, "attend has no kernel for heads of ", size, " that lie so");
    TORCH_CHECK(rows > 0 && rows <= keys.size(0) && kv > 0 && width == kv * size && heads % kv == 0, "attend: ", q.sizes(), " with keys ", keys.sizes());
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; r++) {
      TORCH_CHECK(lengths[r] > 0 && lengths[r] <= places, "attend: a length of ", lengths[r], " with ", places, " places");
      longest = std::max(longest, lengths[r]);
    }
    longest = (longest + kLine - 1) / kLine * kLine;  // whole vectors, or a row's softmax would round by how far others reach
    auto weights = at::empty({rows, heads, longest}, q.options()), y = at::empty({rows, heads, size}, q.options());
    Attention a{q.data_ptr<float>(), keys.data_ptr<float>(), values.data_ptr<float>(), weights.data_ptr<float>(), y.data_ptr<float>(), lengths,
                heads, kv, size, q.stride(0), width, places, longest, 1 / std::sqrt(static_cast<float>(size))};
    at::parallel_for(0, rows * kv, 1, [&](int64_t from, int64_t to) { kernel->scores(a, from, to); });
    weights = at::_softmax(weights, -1, false);
    a.weights = weights.data_ptr<float>();
    at::parallel_for(0, rows * kv, 1, [&](int64_t from, int64_t to) { kernel->values(a, from, to); });
    *out = release(std::move(y));
  });
}

}  // extern "C"
