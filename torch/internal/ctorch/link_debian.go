//go:build !libtorch_env

package ctorch

// Debian's libtorch-dev 1.13 stands in the default search paths, and needs C++17.

/*
#cgo CXXFLAGS: -std=c++17 -I/usr/include/torch/csrc/api/include
#cgo LDFLAGS: -ltorch -ltorch_cpu -lc10 -ldl
*/
import "C"
