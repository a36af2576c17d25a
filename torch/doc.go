// Package torch is a thin binding of libtorch: tensors, operators under PyTorch's names, autograd, AdamW and safetensors.
//
// # Memory
//
// A tensor lives in the innermost open [Scope] of one process-wide stack, and dies when that scope closes; Keep moves it one
// scope out. With no scope open a tensor lives until its Free. The garbage collector frees nothing. [Live] counts the living.
//
//	s := torch.NewScope()
//	defer s.Close()
//	loss := x.Linear(w, nil).LogSoftmax(-1).Mean()
//	loss.Backward()
//
// With glibc, what tensors free stays with the process for the next ones, unless MALLOC_MMAP_THRESHOLD_, MALLOC_MMAP_MAX_,
// MALLOC_TRIM_THRESHOLD_ or GLIBC_TUNABLES is set.
//
// # Errors
//
// An operator given what it cannot take panics with an [*Error], one line with the operator and the shapes; [Try] turns the panic
// into an error at a boundary. Reading and writing files returns errors.
//
// # Threads
//
// libtorch is used from one goroutine at a time. Gradient mode and OpenMP's worker teams belong to an OS thread: a program that
// trains calls [runtime.LockOSThread] in the goroutine that owns the model, and [SetNumThreads] once.
package torch
