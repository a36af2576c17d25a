package results

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes where a run took place. What the system does not tell is
// empty or 0.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
	OS          string `json:"os"`
	Kernel      string `json:"kernel"`
	Arch        string `json:"arch"`
	Go          string `json:"go"`
}

// ThisMachine asks the running system.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	m.CPU = field("/proc/cpuinfo", "model name", ":")
	if name := field("/etc/os-release", "PRETTY_NAME", "="); name != "" {
		m.OS = strings.Trim(name, `"`)
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(kernel))
	}
	kib, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal", ":"), " ")
	if n, err := strconv.ParseInt(kib, 10, 64); err == nil {
		m.MemoryBytes = n << 10
	}
	return m
}

// field is the first value of a key in a file of lines "key <sep> value".
func field(path, key, sep string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		k, v, _ := strings.Cut(s.Text(), sep)
		if strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
