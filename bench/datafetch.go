package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/hub"
)

// dataFetchOptions holds the settings of bench data fetch.
type dataFetchOptions struct {
	Dir  string `flag:"dir" help:"folder of the files"`
	List bool   `flag:"list" help:"list what is known and fetch nothing"`
}

func newDataFetch() *cobra.Command {
	var o dataFetchOptions
	defaults := func() error {
		o = dataFetchOptions{Dir: filepath.Join("data", "raw")}
		return nil
	}
	return command(&cobra.Command{
		Use:   "fetch NAME...",
		Args:  cobra.ArbitraryArgs,
		Short: "Download public question and passage files",
		Long: `Downloads the public files of HotpotQA, NQ and Wikipedia's passages that bench data
build and bench index read. A download that was cut goes on where it ended. Size
and sha256 are checked where they are known; the sha256 of every file is printed
and kept beside it, so that a later look finds a file that changed. Files on
Hugging Face's hub honour HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE.`,
		Example: `  bench data fetch --list
  bench data fetch hotpotqa nq-open wiki-18`,
	}, &o, nil, defaults, func(cmd *cobra.Command, args []string) error {
		if o.List {
			return listData(cmd.OutOrStdout())
		}
		return runDataFetch(cmd.Context(), cmd.OutOrStdout(), o, args)
	})
}

// listData prints the known files, their sizes and where they come from.
func listData(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\ttogether\tsize\tfile\twhat\tlicence\tfrom")
	for _, d := range hub.KnownData() {
		size, from, licence := "?", d.URL, d.Licence
		if d.Size > 0 {
			size = byteSize(d.Size)
		}
		if from == "" {
			from = "datasets/" + d.Repo + " " + d.Path
		}
		if licence == "" {
			licence = "?"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.Group, size, d.File(), d.About, licence, from)
	}
	return t.Flush()
}

func runDataFetch(ctx context.Context, w io.Writer, o dataFetchOptions, names []string) error {
	if len(names) == 0 {
		return errors.New("no data named; --list shows what there is")
	}
	var files []hub.DataFile
	for _, name := range names {
		found, err := hub.ResolveData(name)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	h, err := hub.FromEnvironment()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	bar := &byteProgress{}
	defer func() { bar.finish() }()
	h.Progress, h.Note = bar.set, bar.say
	for _, d := range files {
		bar.begin(d.File(), d.Size)
		file, got, err := h.Data(ctx, d, o.Dir)
		bar.finish()
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		if d.SHA256 == "" && !got.Already {
			note("%s: no sha256 is published for it; from now on it is compared with this one", d.Name)
		}
		fmt.Fprintf(w, "%s  %s\n", got.SHA256, file)
	}
	return nil
}
