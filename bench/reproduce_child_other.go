//go:build !linux

package main

import (
	"os"
	"syscall"
)

func ownProgram() (string, error) { return os.Executable() }

// childAttributes: only Linux kills a child with its parent. Elsewhere a child that is
// left over holds its part's lock until it ends.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
