package scripts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a pretended computer: a checkout with the set-up scripts, a root
// folder with what its packages installed, and a PATH that holds the plain
// tools and the stand-ins that a test put there, nothing else.
type machine struct {
	t        *testing.T
	dir      string
	checkout string
	sysroot  string
	bin      string
	env      []string // further NAME=value for setup.sh
}

// plainTools are the programs that the scripts may take for granted.
var plainTools = []string{"bash", "env", "awk", "sed", "stat", "sort", "head", "cmp", "mv", "rm", "mkdir", "cat",
	"readlink", "grep", "uname", "dirname", "touch", "cp", "chmod", "true", "tail"}

// newMachine has Go 1.26, gcc and g++, and is used by nobody special: no root, no sudo, no apt.
func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, dir: dir, checkout: dir + "/check out", sysroot: dir + "/root", bin: dir + "/bin"}
	m.must(os.MkdirAll(m.checkout, 0o755))
	m.must(os.MkdirAll(m.sysroot+"/usr/lib/x86_64-linux-gnu", 0o755))
	m.must(os.MkdirAll(m.bin, 0o755))
	m.must(os.CopyFS(m.checkout+"/scripts/lib", os.DirFS("lib")))
	setup, err := os.ReadFile("setup.sh")
	m.must(err)
	m.write(m.checkout+"/scripts/setup.sh", string(setup))
	m.write(m.checkout+"/go.mod", "module x\n\ngo 1.26.0\n")
	for _, tool := range plainTools {
		path, err := exec.LookPath(tool)
		m.must(err)
		m.must(os.Symlink(path, filepath.Join(m.bin, tool)))
	}
	m.tool("id", "echo 1000")
	m.goTool(m.bin, "1.26.3")
	m.compiler("g++", "")
	m.tool("gcc", "")
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	m.must(os.MkdirAll(filepath.Dir(path), 0o755))
	m.must(os.WriteFile(path, []byte(text), 0o755))
}

// tool puts a stand-in on the PATH that notes each call in m.calls and runs body.
func (m *machine) tool(name, body string) { m.toolIn(m.bin, name, body) }

func (m *machine) toolIn(folder, name, body string) {
	m.t.Helper()
	m.write(filepath.Join(folder, name), fmt.Sprintf("#!%s/bash\necho %s \"$@\" >>'%s/calls'\n%s\n", m.bin, name, m.dir, body))
}

// goTool is a go of this version.
func (m *machine) goTool(folder, version string) {
	m.toolIn(folder, "go", "if [[ $2 == GOVERSION ]]; then echo go"+version+"; else echo -mod=mod; fi")
}

// compiler makes a program that does nothing, unless a flag contains refuse.
func (m *machine) compiler(name, refuse string) { m.tool(name, m.compilerBody(refuse)) }

func (m *machine) compilerBody(refuse string) string {
	body := `while [[ $1 != -o ]]; do shift; done; printf '#!` + m.bin + `/bash\n' >"$2"; chmod +x "$2"`
	if refuse != "" {
		body = "if [[ \"$*\" == *" + refuse + "* ]]; then echo 'try.cc:1: error: refused' >&2; exit 1; fi\n" + body
	}
	return body
}

func (m *machine) remove(tools ...string) {
	for _, tool := range tools {
		m.must(os.Remove(filepath.Join(m.bin, tool)))
	}
}

// libtorch lays out the files of a libtorch that setup.sh looks at.
type libtorch struct {
	version string // "2.15.0"
	std20   bool
	oldABI  bool
	cuda    bool
}

// install writes the libtorch with its headers under root and its libraries under lib.
func (m *machine) install(l libtorch, root, lib string) {
	m.t.Helper()
	numbers := strings.Split(l.version, ".")
	m.write(root+"/include/torch/csrc/api/include/torch/version.h", "#include <torch/headeronly/version.h>\n")
	m.write(root+"/include/torch/headeronly/version.h", fmt.Sprintf(
		"#define TORCH_VERSION_MAJOR %s\n#define TORCH_VERSION_MINOR %s\n#define TORCH_VERSION_PATCH %s\n", numbers[0], numbers[1], numbers[2]))
	all := "#if !defined(_MSC_VER) && __cplusplus < 201703L\n"
	if l.std20 {
		all = "    (!defined(_MSC_VER) && __cplusplus < 202002L)\n"
	}
	m.write(root+"/include/torch/csrc/api/include/torch/all.h", all)
	symbols := "\x00_ZNSt7__cxx1112basic_string\x00"
	if l.oldABI {
		symbols = "\x00_ZNSs4_Rep\x00"
	}
	m.write(lib+"/libc10.so", symbols)
	m.write(lib+"/libtorch_cpu.so", "")
	if l.cuda {
		m.write(lib+"/libtorch_cuda.so", "")
	}
}

// debian installs libtorch as Debian's packages do.
func (m *machine) debian(l libtorch) {
	m.install(l, m.sysroot+"/usr", m.sysroot+"/usr/lib/x86_64-linux-gnu")
}

// python is a python3 that finds torch in this folder; "" for none.
func (m *machine) python(torch string) {
	m.tool("python3", fmt.Sprintf("echo '%s'\necho '%s'", torch, m.sysroot+"/usr"))
}

// apt is an apt-get whose install of libtorch-dev brings libtorch 1.13, and of g++ a compiler.
func (m *machine) apt(candidate string) {
	store := m.dir + "/store"
	m.install(libtorch{version: "1.13.1"}, store+"/usr", store+"/usr/lib/x86_64-linux-gnu")
	m.toolIn(store, "g++", m.compilerBody(""))
	m.tool("apt-get", fmt.Sprintf("if [[ \"$*\" == *install*libtorch-dev* ]]; then cp -r '%s/usr' '%s'; fi\n"+
		"if [[ \"$*\" == *install*g++* ]]; then cp '%s/g++' '%s'; fi\necho apt speaks", store, m.sysroot, store, m.bin))
	m.tool("apt-cache", "echo '  Candidate: "+candidate+"'")
}

func (m *machine) root() { m.tool("id", "echo 0") }

// sudo is a sudo that asks for no password when free.
func (m *machine) sudo(free bool) {
	body := "exit 1"
	if free {
		body = `shift; exec "$@"`
	}
	m.tool("sudo", body)
}

// command is a bash command on this machine.
func (m *machine) command(script string) *exec.Cmd {
	c := exec.Command(m.bin+"/bash", "-c", script)
	c.Env = append([]string{"PATH=" + m.bin, "HOME=" + m.dir + "/home", "MEMOPD_SYSROOT=" + m.sysroot, "SSL_CERT_FILE=x"}, m.env...)
	return c
}

// setup runs setup.sh and returns what it said and whether it went well. It
// may never write to stdout.
func (m *machine) setup() (string, bool) {
	m.t.Helper()
	c := m.command("exec '" + m.checkout + "/scripts/setup.sh'")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if stdout.Len() > 0 {
		m.t.Errorf("setup.sh wrote to stdout: %q", stdout.String())
	}
	return stderr.String(), err == nil
}

// exported is the environment variable after .setup/env.sh was sourced.
func (m *machine) exported(name string, before ...string) string {
	m.t.Helper()
	c := m.command(". '" + m.checkout + "/.setup/env.sh'; echo \"${" + name + "-unset}\"")
	c.Env = append(c.Env, before...)
	out, err := c.CombinedOutput()
	if err != nil {
		m.t.Fatalf("env.sh: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// calls are the calls of stand-ins so far, one a line.
func (m *machine) calls() string {
	text, err := os.ReadFile(m.dir + "/calls")
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	return string(text)
}
