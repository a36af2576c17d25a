package scripts

import (
	"os"
	"strings"
	"testing"
	"time"
)

var (
	torch113 = libtorch{version: "1.13.1"}
	torch215 = libtorch{version: "2.15.0", std20: true, cuda: true}
)

// machines lack something: what setup.sh answers on each, and which packages it
// asks apt for.
var machines = []struct {
	name    string
	machine func(m *machine)
	ok      bool
	says    []string
	calls   []string
	never   string // must not be called
}{
	{"no go", func(m *machine) { m.remove("go"); m.tool("curl", "") }, false,
		[]string{"Go 1.26.0 or newer is needed and was not found", "  mkdir -p HOME/.local && curl -fsSL https://go.dev/dl/go1.26.0.linux-", "| tar -C HOME/.local -xz\n"}, nil, "apt-get"},
	{"no go, no rights, nothing to fetch with", func(m *machine) { m.remove("go") }, false,
		[]string{"su -c 'apt-get update && apt-get install -y curl' && curl", "| tar -C HOME/.local -xz\n"}, nil, ""},
	{"older go in place, sudo, wget", func(m *machine) {
		m.remove("go")
		m.goTool(m.sysroot+"/usr/local/go/bin", "1.21.0")
		m.sudo(false)
		m.tool("wget", "")
	}, false,
		[]string{"/usr/local/go/bin/go is 1.21.0", "  sudo rm -rf /usr/local/go &&", "wget -qO- https://go.dev/dl/go1.26.0.linux-", "| sudo tar -C /usr/local -xz"}, nil, ""},
	{"no go, root, nothing to fetch with", func(m *machine) { m.remove("go"); m.root() }, false,
		[]string{"apt-get install -y curl && curl", "| tar -C /usr/local -xz"}, nil, "sudo"},
	{"old go", func(m *machine) { m.goTool(m.bin, "1.19.8") }, false,
		[]string{"Go 1.26.0 or newer is needed, ", "is 1.19.8", "go1.26.0.linux-"}, nil, ""},
	{"no compiler, no rights", func(m *machine) { m.remove("g++"); m.debian(torch113); m.apt("1.13.1"); m.sudo(false) }, false,
		[]string{"missing: g++", "sudo apt-get update && sudo apt-get install -y g++\n"}, []string{"sudo -n true"}, "apt-get"},
	{"no compiler, no apt", func(m *machine) { m.remove("g++"); m.debian(torch113) }, false,
		[]string{"no C++ compiler (g++)", "dnf install gcc-c++"}, nil, ""},
	{"no compiler, root", func(m *machine) { m.remove("g++"); m.debian(torch113); m.apt("1.13.1"); m.root() }, true,
		[]string{"installing with apt, which takes some minutes: g++ (", "libtorch 1.13.1 from the system's packages (C++17)"},
		[]string{"apt-get install -y --no-install-recommends g++\n"}, "sudo"},
	{"no libtorch, root", func(m *machine) { m.apt("1.13.1+dfsg-4"); m.root() }, true,
		[]string{"libtorch 1.13.1 from the system's packages"},
		[]string{"apt-get update", "apt-get install -y --no-install-recommends libtorch-dev libopenblas0-pthread\n"}, "sudo"},
	{"no libtorch, sudo without password", func(m *machine) { m.apt("1.13.1"); m.sudo(true) }, true,
		[]string{"libtorch 1.13.1 from the system's packages"},
		[]string{"sudo -n env DEBIAN_FRONTEND=noninteractive apt-get"}, ""},
	{"no libtorch, no rights", func(m *machine) { m.apt("1.13.1") }, false,
		[]string{"su -c 'apt-get update && apt-get install -y libtorch-dev libopenblas0-pthread'\n"}, nil, "apt-get"},
	{"no libtorch, no apt", func(m *machine) {}, false,
		[]string{"libtorch was not found", "pip install torch && export LIBTORCH="}, nil, ""},
	{"apt has an old libtorch", func(m *machine) { m.apt("1.8.1-1"); m.root() }, false,
		[]string{"older than 1.13", "pip install torch"}, nil, "apt-get install"},
	{"the system's is old", func(m *machine) { m.debian(libtorch{version: "1.8.1"}) }, false,
		[]string{"libtorch 1.8.1 is older than 1.13", "pip install torch"}, nil, ""},
	{"LIBTORCH is no libtorch", func(m *machine) { m.debian(torch113); m.env = []string{"LIBTORCH=/nowhere"} }, false,
		[]string{"LIBTORCH=/nowhere has no include/torch", "pip install torch"}, nil, ""},
	{"LIBTORCH does not compile", func(m *machine) {
		m.debian(torch113)
		m.install(torch215, m.dir+"/lt", m.dir+"/lt/lib")
		m.env = []string{"LIBTORCH=" + m.dir + "/lt"}
		m.compiler("g++", "std=c++20")
	}, false, []string{"/lt does not work: try.cc:1: error: refused"}, nil, ""},
	{"python's torch without headers", func(m *machine) { m.debian(torch113); m.python(m.dir + "/empty") }, true,
		[]string{"has no C++ headers", "libtorch 1.13.1 from the system's packages"}, nil, ""},
	{"python's torch does not work", func(m *machine) {
		m.install(torch215, m.dir+"/py", m.dir+"/py/lib")
		m.python(m.dir + "/py")
		m.compiler("g++", "std=c++20")
		m.apt("1.13.1")
		m.root()
	}, true, []string{"note: python3's torch does not work here: try.cc:1: error: refused", "from the system's packages"},
		[]string{"install -y --no-install-recommends libtorch-dev"}, ""},
	{"python without torch", func(m *machine) { m.debian(torch113); m.python("") }, true,
		[]string{"libtorch 1.13.1 from the system's packages"}, nil, ""},
	{"reference BLAS, no rights", func(m *machine) { m.debian(torch113); m.referenceBLAS(); m.apt("1.13.1") }, true,
		[]string{"warning: libtorch uses the reference BLAS"}, nil, "apt-get"},
	{"reference BLAS, root", func(m *machine) { m.debian(torch113); m.referenceBLAS(); m.apt("1.13.1"); m.root() }, true,
		nil, []string{"install -y --no-install-recommends libopenblas0-pthread\n"}, ""},
}

// TestSetupSays runs setup.sh on each of the machines.
func TestSetupSays(t *testing.T) {
	for _, c := range machines {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			c.machine(m)
			said, ok := m.setup()
			if ok != c.ok {
				t.Errorf("success %v, want %v", ok, c.ok)
			}
			if _, err := os.Stat(m.checkout + "/.setup/env.sh"); (err == nil) != c.ok {
				t.Errorf("env.sh: %v, though success is %v", err, ok)
			}
			for _, want := range c.says {
				if want = strings.ReplaceAll(want, "HOME", m.dir+"/home"); !strings.Contains(said, want) {
					t.Errorf("did not say %q", want)
				}
			}
			calls := m.calls()
			for _, want := range c.calls {
				if !strings.Contains(calls, want) {
					t.Errorf("did not call %q", want)
				}
			}
			if c.never != "" && strings.Contains(calls, c.never) {
				t.Errorf("called %q", c.never)
			}
			if t.Failed() {
				t.Logf("said:\n%s\ncalls:\n%s", said, calls)
			}
		})
	}
}

// referenceBLAS links libblas.so.3 as Debian's libblas3 alone does.
func (m *machine) referenceBLAS() {
	lib := m.sysroot + "/usr/lib/x86_64-linux-gnu"
	m.write(lib+"/blas/libblas.so.3", "")
	m.must(os.Symlink("blas/libblas.so.3", lib+"/libblas.so.3"))
}

// libtorches are what setup.sh may find, and what env.sh then hands to go.
var libtorches = []struct {
	name    string
	kind    libtorch
	place   string // "debian", "LIBTORCH" or "python"
	cxx     []string
	cxxNot  string
	ld      []string
	ldNot   string
	goflags string
}{
	{"debian", torch113, "debian", []string{"unset"}, "-std", []string{"unset"}, "-l", "unset"},
	{"debian with C++20", libtorch{version: "2.16.0", std20: true}, "debian",
		[]string{"-O2 -std=c++20 -D_GLIBCXX_USE_CXX11_ABI=1", "/usr/include/torch/csrc/api/include"}, "/usr/include ",
		[]string{"-ltorch -ltorch_cpu -lc10"}, "rpath", "-mod=mod -tags=libtorch_env"},
	{"LIBTORCH", torch215, "LIBTORCH",
		[]string{"-std=c++20", "-D_GLIBCXX_USE_CXX11_ABI=1", "'-IDIR/some torch/include'"}, "",
		[]string{"'-LDIR/some torch/lib'", "'-Wl,-rpath,DIR/some torch/lib'", "-Wl,--no-as-needed -ltorch_cuda -lc10_cuda"}, "", "-mod=mod -tags=libtorch_env"},
	{"python, CPU, old string ABI", libtorch{version: "2.1.0", oldABI: true}, "python",
		[]string{"-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0"}, "", []string{"-ltorch_cpu"}, "cuda", "-mod=mod -tags=libtorch_env"},
}

// TestSetupFlags sources env.sh for each of the libtorches.
func TestSetupFlags(t *testing.T) {
	for _, c := range libtorches {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			other := m.dir + "/some torch"
			switch c.place {
			case "debian":
				m.debian(c.kind)
			case "LIBTORCH":
				m.debian(torch113)
				m.python("")
				m.install(c.kind, other, other+"/lib")
				m.env = []string{"LIBTORCH=" + other}
			case "python":
				m.debian(torch113)
				m.install(c.kind, other, other+"/lib")
				m.python(other)
			}
			if said, ok := m.setup(); !ok {
				t.Fatalf("set-up failed: %s", said)
			}
			check := func(name string, want []string, not string) {
				got := m.exported(name)
				for _, w := range want {
					if w = strings.ReplaceAll(w, "DIR", m.dir); !strings.Contains(got, w) {
						t.Errorf("%s is %q, without %q", name, got, w)
					}
				}
				if not != "" && strings.Contains(got, not) {
					t.Errorf("%s is %q, with %q", name, got, not)
				}
			}
			check("CGO_CXXFLAGS", c.cxx, c.cxxNot)
			check("CGO_LDFLAGS", c.ld, c.ldNot)
			if got := m.exported("GOFLAGS"); got != c.goflags {
				t.Errorf("GOFLAGS is %q, want %q", got, c.goflags)
			}
		})
	}
}

// TestEnvironmentKeepsTags: the caller's own build tags stay, and sourcing env.sh again adds nothing.
func TestEnvironmentKeepsTags(t *testing.T) {
	m := newMachine(t)
	m.install(torch215, m.dir+"/lt", m.dir+"/lt/lib")
	m.env = []string{"LIBTORCH=" + m.dir + "/lt"}
	if said, ok := m.setup(); !ok {
		t.Fatal(said)
	}
	for before, want := range map[string]string{
		"":                            "-tags=libtorch_env",
		"-v -tags=a,b":                "-v -tags=libtorch_env,a,b",
		"-mod=mod -tags=libtorch_env": "-mod=mod -tags=libtorch_env",
	} {
		if got := m.exported("GOFLAGS", "GOFLAGS="+before); got != want {
			t.Errorf("GOFLAGS %q became %q, want %q", before, got, want)
		}
	}
}

// TestGoBesidePath: a newer go in /usr/local is taken over an old one on PATH.
func TestGoBesidePath(t *testing.T) {
	m := newMachine(t)
	m.debian(torch113)
	m.goTool(m.bin, "1.19.8")
	m.goTool(m.sysroot+"/usr/local/go/bin", "1.27.0")
	if said, ok := m.setup(); !ok {
		t.Fatal(said)
	}
	if got, want := m.exported("PATH"), m.sysroot+"/usr/local/go/bin:"+m.bin; got != want {
		t.Errorf("PATH is %q, want %q", got, want)
	}
}

// TestSetupIsQuickWhenNothingChanged: the second run calls no tool, and each
// change that matters makes it look again.
func TestSetupIsQuickWhenNothingChanged(t *testing.T) {
	m := newMachine(t)
	m.debian(torch113)
	m.python("")
	if said, ok := m.setup(); !ok {
		t.Fatal(said)
	}
	envFile := m.checkout + "/.setup/env.sh"
	first, err := os.Stat(envFile)
	m.must(err)
	again := func(what string, looks bool) {
		t.Helper()
		before := m.calls()
		said, ok := m.setup()
		if !ok {
			t.Fatalf("%s: %s", what, said)
		}
		if (m.calls() != before) != looks {
			t.Errorf("%s: looked again %v, want %v; said %q", what, !looks, looks, said)
		}
	}
	again("nothing changed", false)
	later := time.Now().Add(time.Hour)
	m.must(os.Chtimes(m.sysroot+"/usr/lib/x86_64-linux-gnu/libtorch_cpu.so", later, later))
	again("libtorch replaced", true)
	m.must(os.Chtimes(m.sysroot+"/usr", later, later)) // a folder that python3 searches
	again("pip installed something", true)
	again("nothing more", false)
	if now, err := os.Stat(envFile); err != nil || !now.ModTime().Equal(first.ModTime()) {
		t.Errorf("env.sh was written anew with the same content (%v)", err)
	}
	m.install(torch215, m.dir+"/lt", m.dir+"/lt/lib")
	m.env = []string{"LIBTORCH=" + m.dir + "/lt"}
	again("LIBTORCH set", true)
	again("LIBTORCH as before", false)
	m.must(os.RemoveAll(m.dir + "/lt/lib"))
	if said, ok := m.setup(); ok {
		t.Errorf("went well without the library: %s", said)
	}
}
