// Plain C face of the libtorch shim. Every symbol bears the prefix mb_.
//
// A tensor is a TensorImpl pointer that owns one reference, as an integer; 0 is an undefined tensor.
// A call that can fail returns NULL, or a malloc'ed one-line message that the caller frees.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uintptr_t mb_tensor;

enum {
  MB_NONE = 0,
  MB_TENSOR = 1,   // bits: handle
  MB_INT = 2,      // bits: int64
  MB_DOUBLE = 3,   // bits: double
  MB_BOOL = 4,     // bits: 0 or 1
  MB_SCALAR = 5,   // bits: double; an int64 when it is whole and the first argument's dtype is integral
  MB_DEVICE = 6,   // bits: type << 8 | (index + 1)
  MB_INTS = 7,     // bits: offset into side, n: length
  MB_TENSORS = 8,  // likewise, handles
  MB_OPT_TENSORS = 9,  // likewise, handle 0 is None
  MB_STRING = 10,  // bits: offset into side, n: length in bytes
};

// One boxed argument or result. It holds no pointer to Go memory: lists live in the call's side buffer.
typedef struct {
  int32_t tag;
  int32_t n;
  uint64_t bits;
} mb_value;

// mb_find looks up an operator; *op stays NULL where this libtorch lacks it.
char* mb_find(const char* name, const char* overload, void** op);
// mb_call calls op. Trailing arguments that are not given take the schema's defaults. Results fill out (cap cells; a list
// of tensors takes a cell each) and *got counts them; with cap 0 the results are dropped.
char* mb_call(void* op, const mb_value* args, int n, const int64_t* side, mb_value* out, int cap, int* got);

// mb_linear is x (rows, in) times w (out, in) transposed plus bias, by kernels.cc, or 0 where that has nothing for them: it takes
// contiguous float32 on the CPU, records no gradients, and wants a processor that it knows. lanes is 0 but in tests.
char* mb_linear(mb_tensor x, mb_tensor w, mb_tensor bias, int lanes, mb_tensor* out);
// mb_attend is the attention of q (rows, heads, size) to the first lengths[row] of keys and values (rows or more, places, kv * size), as
// (rows, heads, size), float32 on the CPU and without gradients. mb_attends says whether this processor has a kernel for heads of a size. lanes is 0 but in tests.
char* mb_attend(mb_tensor q, mb_tensor keys, mb_tensor values, const int64_t* lengths, int lanes, mb_tensor* out);
int mb_attends(int64_t size, int lanes);

char* mb_from(const void* data, int64_t bytes, int dtype, const int64_t* shape, int dims, mb_tensor* out);
char* mb_to_bytes(mb_tensor t, void* data, int64_t bytes);  // t contiguous, on the CPU
char* mb_set_bytes(mb_tensor t, const void* data, int64_t bytes);  // likewise
void mb_free(const mb_tensor* tensors, int n);
// mb_meta writes dtype, device type, device index, requires_grad, is_leaf, contiguous, dims, then at most cap-7 sizes.
void mb_meta(mb_tensor t, int64_t* meta, int cap);

char* mb_backward(mb_tensor root, mb_tensor gradient, int keep_graph);
char* mb_requires_grad(mb_tensor t, int on);
mb_tensor mb_grad(mb_tensor t);
char* mb_set_grad(mb_tensor t, mb_tensor grad);
int mb_grad_mode(int on);  // returns the mode before

void mb_set_threads(int n);
int mb_threads(void);
char* mb_seed(uint64_t seed);
int mb_cuda_devices(void);
char* mb_synchronize(int index);  // a CUDA device, -1: the current one
void mb_cuda_memory(size_t* free, size_t* total);  // of the current CUDA device; left alone without a CUDA runtime
const char* mb_version(void);
const char* mb_blas_core(void);  // the processor that OpenBLAS takes this one for; "" without OpenBLAS

#ifdef __cplusplus
}
#endif
