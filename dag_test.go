// Package repo holds the rules of this repository as tests: which package may
// import which, where cgo may stand, that each package is documented, and how
// long a file may be.
package repo

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/memopd/memopd-bench"

// rule says what a package and the packages below it may import of ours. A
// package may always import what stands below its own rule's folder, unless a
// longer rule covers that.
type rule struct {
	imports []string
	pure    bool // builds and tests with CGO_ENABLED=0
	reason  string
}

// anything stands for every package of ours.
const anything = "*"

var rules = map[string]rule{
	"datasets":          {nil, true, "questions know nothing of agents and models"},
	"retriever":         {nil, true, "documents and queries, never questions' answers"},
	"trace":             {nil, true, "the ledger that the others share"},
	"agent":             {[]string{"trace"}, true, "never sees gold answers, so no datasets"},
	"trace/rollouts":    {[]string{"trace"}, true, "readers of others' rollouts"},
	"align":             {[]string{"trace"}, true, "a compiler of ids, no tensors"},
	"align/export":      {[]string{"align", "trace", "torch/safetensors"}, true, "packed batches as files for other programs"},
	"torch":             {[]string{"torch/safetensors"}, false, "the libtorch binding and nothing more"},
	"torch/safetensors": {nil, true, "a file format, usable without libtorch"},
	"model":             {[]string{"torch", "align", "trace", "model/tokenizer", "model/gguf"}, false, "tensors and ids, no agents, no rewards"},
	"model/gguf":        {[]string{"model/tokenizer"}, true, "reads GGUF files, usable without libtorch"},
	"model/tokenizer":   {nil, true, "text to ids, usable without libtorch"},
	"remote":            {[]string{"trace", "agent"}, true, "policies behind a server: agents' requests in, ids out"},
	"hub":               {nil, true, "downloads of published models and data"},
	"train":             {[]string{"model", "torch", "align", "align/export", "trace", "train/events"}, false, "trajectories are handed in by functions; builds no prompts"},
	"train/events":      {nil, true, "event files of TensorBoard, usable without libtorch"},
	"eval":              {[]string{"agent", "datasets", "model", "align", "trace", "results", "eval/metrics"}, false, "runs agents on tasks"},
	"eval/audit":        {[]string{"agent", "align", "trace", "torch", "model", "model/tokenizer", "train", "results", "eval/audit/ledger", "eval/audit/page"}, false, "measures layouts, teachers and masks against the recorded states"},
	"eval/audit/ledger": {[]string{"trace", "model/tokenizer"}, true, "what a ledger shows without its model"},
	"eval/audit/page":   {[]string{"align", "trace", "results"}, true, "an audit as one page"},
	"eval/metrics":      {nil, true, "strings in, scores out; also the reward"},
	"presets":           {nil, true, "embedded checkpoints, as files"},
	"results":           {nil, true, "records, never how they were made"},
	"report":            {[]string{"results"}, true, "shows records; measures nothing"},
	"bench":             {[]string{anything}, false, "wires the parts together"},
	"scripts":           {[]string{anything}, false, "tools of the repository"},
}

// listed is what go list -json tells of a package.
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
	GoFiles      []string
	CgoFiles     []string
	Doc          string
}

// name is the package's path below the module; "." for the root.
func (p listed) name() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// ours keeps the imports of this module, without its prefix.
func ours(imports []string) []string {
	var kept []string
	for _, path := range imports {
		if short, ok := strings.CutPrefix(path, module+"/"); ok {
			kept = append(kept, short)
		}
	}
	return kept
}

// goList tells of every package of the module.
func goList(t *testing.T) []listed {
	t.Helper()
	all, err := listOnce()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if len(all) < len(rules)/2 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// listOnce runs go list, which takes seconds on a busy machine, once.
var listOnce = sync.OnceValues(func() ([]listed, error) {
	out, err := exec.Command("go", "list", "-e",
		"-json=ImportPath,Imports,TestImports,XTestImports,Deps,GoFiles,CgoFiles,Doc", "./...").Output()
	if err != nil {
		return nil, err
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
})

// ruleOf is the longest rule that covers a package; "" if none does.
func ruleOf(name string) string {
	for {
		if _, ok := rules[name]; ok {
			return name
		}
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			return ""
		}
		name = name[:cut]
	}
}

// allowed tells whether a package under the rule may import the other.
func allowed(ruleName, imported string) bool {
	target := ruleOf(imported)
	return target == ruleName || slices.Contains(rules[ruleName].imports, anything) ||
		slices.ContainsFunc(rules[ruleName].imports, func(name string) bool { return name == target })
}

func TestImports(t *testing.T) {
	for _, p := range goList(t) {
		if p.name() == "." {
			continue
		}
		name := ruleOf(p.name())
		if name == "" {
			t.Errorf("%s: not in the import table of dag_test.go", p.name())
			continue
		}
		for _, imported := range ours(p.Imports) {
			if !allowed(name, imported) {
				t.Errorf("%s imports %s, but %s may import only %v: %s",
					p.name(), imported, name, rules[name].imports, rules[name].reason)
			}
		}
	}
}

// TestPure: what is to build without cgo does not reach libtorch, not even in
// its tests. scripts/test also builds these packages with CGO_ENABLED=0.
func TestPure(t *testing.T) {
	all := goList(t)
	reaches := map[string]bool{}
	for _, p := range all {
		reaches[p.name()] = slices.Contains(ours(append(p.Deps, p.ImportPath)), "torch/internal/ctorch")
	}
	for _, p := range all {
		if !rules[ruleOf(p.name())].pure {
			continue
		}
		if reaches[p.name()] {
			t.Errorf("%s reaches libtorch through its imports %v", p.name(), ours(p.Imports))
		}
		for _, imported := range ours(append(p.TestImports, p.XTestImports...)) {
			if reaches[imported] {
				t.Errorf("the tests of %s reach libtorch through %s", p.name(), imported)
			}
		}
	}
}

func TestRuleOf(t *testing.T) {
	for name, want := range map[string]string{
		"datasets/miniwiki": "datasets", "model": "model", "model/tokenizer": "model/tokenizer",
		"model/other": "model", "eval/metrics": "eval/metrics", "modelling": "", "nowhere/x": "",
	} {
		if got := ruleOf(name); got != want {
			t.Errorf("ruleOf(%q) = %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		rule, imported string
		want           bool
	}{
		{"agent", "trace", true}, {"agent", "trace/store", true}, {"agent", "datasets", false},
		{"datasets", "datasets/miniwiki", true}, {"model", "datasets", false},
		{"eval", "eval/metrics", true}, {"eval/metrics", "eval", false}, {"train", "eval/metrics", false},
		{"bench", "torch/internal/ctorch", true},
	} {
		if got := allowed(c.rule, c.imported); got != c.want {
			t.Errorf("allowed(%q, %q) = %v, want %v", c.rule, c.imported, got, c.want)
		}
	}
}
