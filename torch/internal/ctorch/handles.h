// Handles and errors as ctorch.h has them, for the .cc files that use libtorch.
#pragma once
#include "ctorch.h"

#include <cstring>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

using TensorPtr = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

// borrow makes a Tensor from a handle and leaves the handle's reference alone.
inline at::Tensor borrow(mb_tensor t) {
  if (t == 0) return at::Tensor();
  return at::Tensor(TensorPtr::reclaim_copy(reinterpret_cast<c10::TensorImpl*>(t)));
}

inline mb_tensor release(at::Tensor&& t) {
  return t.defined() ? reinterpret_cast<mb_tensor>(t.unsafeReleaseTensorImpl()) : 0;
}

inline char* message(const std::string& s) { return strdup(s.c_str()); }

template <class F>
char* guarded(F&& f) {
  try {
    f();
    return nullptr;
  } catch (const c10::Error& e) {
    return message(e.what_without_backtrace());
  } catch (const std::exception& e) {
    return message(e.what());
  } catch (...) {
    return message("unknown C++ exception");
  }
}
