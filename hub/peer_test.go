package hub

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python runs a script with Hugging Face's own client, against this server and
// cache; offline where the server is nil.
func python(t *testing.T, f *fakeHub, cache, script string) {
	t.Helper()
	name := cmp.Or(os.Getenv("PEERS_PYTHON"), "python3")
	if err := exec.Command(name, "-c", "import huggingface_hub").Run(); err != nil {
		t.Skipf("%s has no huggingface_hub (PEERS_PYTHON names another): %v", name, err)
	}
	cmd := exec.Command(name, "-c", script)
	cmd.Env = append(os.Environ(), "HF_HUB_CACHE="+cache, "HF_HOME="+t.TempDir(), "HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_HUB_DISABLE_XET=1")
	if f != nil {
		cmd.Env = append(cmd.Env, "HF_ENDPOINT="+f.URL)
	} else {
		cmd.Env = append(cmd.Env, "HF_HUB_OFFLINE=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestHuggingFaceFindsOurs: huggingface_hub finds, without network, what was
// downloaded here.
func TestHuggingFaceFindsOurs(t *testing.T) {
	f := newFakeHub(t)
	f.put(tiny())
	h := f.client(t)
	got := fetch(t, h, Request{})
	python(t, nil, h.Cache, `
import os
from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download, try_to_load_from_cache
want = "`+got.Dir+`"
assert snapshot_download("org/tiny", local_files_only=True) == want
assert snapshot_download("org/tiny", revision="`+commitA+`", local_files_only=True) == want
for name in ["config.json", "model.safetensors", "tokenizer.json"]:
    assert try_to_load_from_cache("org/tiny", name) == os.path.join(want, name), name
    assert hf_hub_download("org/tiny", name) == os.path.join(want, name), name
info = scan_cache_dir()
assert not info.warnings, info.warnings
repo, = info.repos
assert repo.repo_id == "org/tiny" and repo.nb_files == 6 and repo.refs.keys() == {"main"}, repo
`)
}

// TestOursFindsHuggingFaces: what huggingface_hub downloaded is used here
// without a request, and half of it is completed.
func TestOursFindsHuggingFaces(t *testing.T) {
	f := newFakeHub(t)
	repo := tiny()
	f.put(repo)
	h := f.client(t)
	python(t, f, h.Cache, `
from huggingface_hub import snapshot_download
snapshot_download("org/tiny", allow_patterns=["*.json"])
`)
	f.taken()
	got := fetch(t, h, Request{})
	if files := f.downloads(); len(files) != 2 {
		t.Errorf("downloaded %q, want the chat template and the weights", files)
	}
	isFile(t, filepath.Join(got.Dir, "model.safetensors"), repo.files["model.safetensors"])

	h = f.client(t)
	python(t, f, h.Cache, `
from huggingface_hub import snapshot_download
snapshot_download("org/tiny")
`)
	f.taken()
	if got := fetch(t, h, Request{}); !got.Already || len(f.taken()) != 0 {
		t.Errorf("%+v", got)
	}
}
