package main

import "syscall"

// ownProgram is this program even where its file has been replaced by another build.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// childAttributes has the kernel kill a child whose parent is gone, however that
// ended, and keeps the terminal's Ctrl-C from it: the parent passes on one signal.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
