// Package torch is a thin binding of libtorch.
package torch
