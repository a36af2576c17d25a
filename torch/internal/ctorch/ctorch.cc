// Any ATen operator through libtorch's dispatcher, and what operators cannot do.
// It compiles, with no #if on the version, against libtorch 1.13 (C++17) to 2.15 (C++20).
#include "ctorch.h"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include "handles.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {

// An operator with its trailing defaults at hand, so that a call does not walk the schema.
struct Op {
  c10::OperatorHandle handle;
  std::vector<c10::optional<c10::IValue>> defaults;
  std::vector<std::string> names;
};

#ifdef __GLIBC__
// keep_memory lets glibc keep what tensors free. Its defaults give blocks of 32 MiB and more back to the kernel, which clears their pages
// anew when the next tensor comes: a third of an update's time. Whoever sets malloc's environment is left to it.
__attribute__((constructor)) void keep_memory() {
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"}) {
    if (getenv(name)) return;
  }
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_ARENA_MAX, 1);  // other arenas are too small for large blocks, and would map them
}
#endif

double as_double(uint64_t bits) {
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return d;
}

uint64_t double_bits(double d) {
  uint64_t bits;
  std::memcpy(&bits, &d, sizeof d);
  return bits;
}

c10::IValue scalar(double v, const mb_value& first) {
  if (first.tag == MB_TENSOR && std::trunc(v) == v && std::fabs(v) < 9e15) {
    auto* impl = reinterpret_cast<c10::TensorImpl*>(first.bits);
    if (c10::isIntegralType(c10::typeMetaToScalarType(impl->dtype()), false)) return c10::IValue(static_cast<int64_t>(v));
  }
  return c10::IValue(v);
}

c10::IValue box(const mb_value& a, const mb_value& first, const int64_t* side) {
  switch (a.tag) {
    case MB_TENSOR: return c10::IValue(borrow(a.bits));
    case MB_INT: return c10::IValue(static_cast<int64_t>(a.bits));
    case MB_DOUBLE: return c10::IValue(as_double(a.bits));
    case MB_BOOL: return c10::IValue(a.bits != 0);
    case MB_SCALAR: return scalar(as_double(a.bits), first);
    case MB_DEVICE:
      return c10::IValue(c10::Device(static_cast<c10::DeviceType>(a.bits >> 8), static_cast<c10::DeviceIndex>((a.bits & 255)) - 1));
    case MB_INTS: {
      c10::List<int64_t> list;
      list.reserve(a.n);
      for (int i = 0; i < a.n; i++) list.push_back(side[a.bits + i]);
      return c10::IValue(std::move(list));
    }
    case MB_TENSORS: {
      c10::List<at::Tensor> list;
      list.reserve(a.n);
      for (int i = 0; i < a.n; i++) list.push_back(borrow(static_cast<mb_tensor>(side[a.bits + i])));
      return c10::IValue(std::move(list));
    }
    case MB_OPT_TENSORS: {
      c10::List<c10::optional<at::Tensor>> list;
      list.reserve(a.n);
      for (int i = 0; i < a.n; i++) {
        auto t = static_cast<mb_tensor>(side[a.bits + i]);
        list.push_back(t ? c10::optional<at::Tensor>(borrow(t)) : c10::optional<at::Tensor>());
      }
      return c10::IValue(std::move(list));
    }
    case MB_STRING: return c10::IValue(std::string(reinterpret_cast<const char*>(side + a.bits), a.n));
    default: return c10::IValue();
  }
}

// Results goes over the stack after a call and writes what it holds, in order, into the caller's cells.
struct Results {
  mb_value* out;
  int cap;
  int got = 0;

  void put(int tag, uint64_t bits) { out[got++] = mb_value{static_cast<int32_t>(tag), 0, bits}; }

  void room(size_t n) {
    TORCH_CHECK(got + n <= static_cast<size_t>(cap), "more results than the caller has room for: ", got + n, " > ", cap);
  }

  void take(c10::IValue&& v) {
    if (v.isTensorList()) {
      auto list = std::move(v).toTensorVector();
      room(list.size());
      for (auto& t : list) put(MB_TENSOR, release(std::move(t)));
      return;
    }
    room(1);
    if (v.isTensor()) {
      put(MB_TENSOR, release(std::move(v).toTensor()));
    } else if (v.isInt()) {
      put(MB_INT, static_cast<uint64_t>(v.toInt()));
    } else if (v.isDouble()) {
      put(MB_DOUBLE, double_bits(v.toDouble()));
    } else if (v.isBool()) {
      put(MB_BOOL, v.toBool());
    } else {
      put(MB_NONE, 0);
    }
  }
};

// set_blas_threads tells OpenBLAS, which libtorch's own setting does not reach.
void set_blas_threads(int n) {
  static auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set) set(n);
}

}  // namespace

extern "C" {

char* mb_find(const char* name, const char* overload, void** op) {
  *op = nullptr;
  return guarded([&] {
    auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
    if (!handle) return;
    auto* o = new Op{*handle, {}, {}};
    for (const auto& argument : handle->schema().arguments()) {
      o->defaults.push_back(argument.default_value());
      o->names.push_back(argument.name());
    }
    *op = o;
  });
}

char* mb_call(void* op, const mb_value* args, int n, const int64_t* side, mb_value* out, int cap, int* got) {
  *got = 0;
  Results results{out, cap};
  char* err = guarded([&] {
    auto* o = static_cast<Op*>(op);
    torch::jit::Stack stack;
    stack.reserve(o->defaults.size());
    for (int i = 0; i < n; i++) stack.push_back(box(args[i], args[0], side));
    for (size_t i = n; i < o->defaults.size(); i++) {
      TORCH_CHECK(o->defaults[i].has_value(), "missing argument ", o->names[i]);
      stack.push_back(*o->defaults[i]);
    }
    TORCH_CHECK(stack.size() == o->defaults.size(), "takes ", o->defaults.size(), " arguments, given ", n);
    o->handle.callBoxed(&stack);
    if (cap == 0) return;
    for (auto& v : stack) results.take(std::move(v));
  });
  if (err) {
    for (int i = 0; i < results.got; i++) {
      mb_tensor t = out[i].bits;
      if (out[i].tag == MB_TENSOR) mb_free(&t, 1);
    }
    return err;
  }
  *got = results.got;
  return nullptr;
}

char* mb_from(const void* data, int64_t bytes, int dtype, const int64_t* shape, int dims, mb_tensor* out) {
  *out = 0;
  return guarded([&] {
    auto t = at::empty(at::IntArrayRef(shape, dims), at::TensorOptions().dtype(static_cast<c10::ScalarType>(dtype)));
    TORCH_CHECK(static_cast<int64_t>(t.nbytes()) == bytes, "shape needs ", t.nbytes(), " bytes, given ", bytes);
    if (bytes > 0) std::memcpy(t.data_ptr(), data, bytes);
    *out = release(std::move(t));
  });
}

char* mb_to_bytes(mb_tensor h, void* data, int64_t bytes) {
  return guarded([&] {
    auto t = borrow(h);
    TORCH_CHECK(t.is_contiguous() && t.device().is_cpu(), "copy to Go needs a contiguous CPU tensor");
    TORCH_CHECK(static_cast<int64_t>(t.nbytes()) == bytes, "tensor has ", t.nbytes(), " bytes, wanted ", bytes);
    if (bytes > 0) std::memcpy(data, t.data_ptr(), bytes);
  });
}

char* mb_set_bytes(mb_tensor h, const void* data, int64_t bytes) {
  return guarded([&] {
    auto t = borrow(h);
    TORCH_CHECK(t.is_contiguous() && t.device().is_cpu(), "copy from Go needs a contiguous CPU tensor");
    TORCH_CHECK(static_cast<int64_t>(t.nbytes()) == bytes, "tensor has ", t.nbytes(), " bytes, given ", bytes);
    if (bytes > 0) std::memcpy(t.data_ptr(), data, bytes);
  });
}

void mb_free(const mb_tensor* tensors, int n) {
  for (int i = 0; i < n; i++) {
    if (tensors[i]) TensorPtr::reclaim(reinterpret_cast<c10::TensorImpl*>(tensors[i]));
  }
}

void mb_meta(mb_tensor h, int64_t* meta, int cap) {
  auto t = borrow(h);
  meta[0] = static_cast<int64_t>(t.scalar_type());
  meta[1] = static_cast<int64_t>(t.device().type());
  meta[2] = t.device().index();
  meta[3] = t.requires_grad();
  meta[4] = t.is_leaf();
  meta[5] = t.is_contiguous();
  meta[6] = t.dim();
  auto sizes = t.sizes();
  for (size_t i = 0; i < sizes.size() && static_cast<int>(i) + 7 < cap; i++) meta[7 + i] = sizes[i];
}

char* mb_backward(mb_tensor root, mb_tensor gradient, int keep_graph) {
  return guarded([&] { borrow(root).backward(borrow(gradient), keep_graph != 0); });
}

char* mb_requires_grad(mb_tensor t, int on) {
  return guarded([&] { borrow(t).requires_grad_(on != 0); });
}

mb_tensor mb_grad(mb_tensor t) { return release(at::Tensor(borrow(t).grad())); }

char* mb_set_grad(mb_tensor t, mb_tensor grad) {
  return guarded([&] { borrow(t).mutable_grad() = borrow(grad); });
}

int mb_grad_mode(int on) {
  bool before = c10::GradMode::is_enabled();
  c10::GradMode::set_enabled(on != 0);
  return before;
}

void mb_set_threads(int n) {
  at::set_num_threads(n);
  set_blas_threads(n);
}

int mb_threads(void) { return at::get_num_threads(); }

char* mb_seed(uint64_t seed) {
  return guarded([&] { at::manual_seed(seed); });
}

int mb_cuda_devices(void) {
  try {
    return at::hasCUDA() ? static_cast<int>(at::getNumGPUs()) : 0;
  } catch (const std::exception&) {
    return 0;  // a driver that does not answer is no device
  }
}

char* mb_synchronize(int index) {
  return guarded([&] {
    const auto& cuda = at::detail::getCUDAHooks();
    cuda.deviceSynchronize(index < 0 ? cuda.current_device() : index);
  });
}

void mb_cuda_memory(size_t* free, size_t* total) {
  static auto ask = reinterpret_cast<int (*)(size_t*, size_t*)>(dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
  if (ask && ask(free, total) != 0) *free = *total = 0;
}

const char* mb_blas_core(void) {
  static auto name = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name ? name() : "";
}

const char* mb_version(void) { return TORCH_VERSION; }

}  // extern "C"
