package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// DataFile is a public file of questions or passages. Size and SHA256 are those
// that others who use the file record; what is not known is left out.
type DataFile struct {
	Name    string // as it is asked for
	Group   string // names several files together
	About   string
	Licence string // of the data, as its publisher states it; "": not known
	URL     string // "" for a file of a repository
	Repo    string // ORG/NAME of a data set on Hugging Face's hub
	Commit  string // of the repository
	Path    string // within the repository
	Size    int64  // bytes; 0: not known
	SHA256  string // "": not known
}

// File is the file's own name.
func (d DataFile) File() string {
	name := path.Base(cmp.Or(d.Path, d.URL))
	if d.Repo == flashRAG { // all of its files are train.jsonl, dev.jsonl, test.jsonl
		name = strings.ReplaceAll(d.Path, "/", "-")
	}
	return name
}

const (
	hotpotURL    = "http://curtis.ml.cmu.edu/datasets/hotpot/"
	nqOpenURL    = "https://raw.githubusercontent.com/google-research-datasets/natural-questions/master/nq_open/"
	flashRAG     = "RUC-NLPIR/FlashRAG_datasets"
	flashRAGAt   = "bcafb8dd07d453be3cbeeeb3f78be1841bddf92c"
	searchR1Wiki = "PeterJinGo/wiki-18-corpus"
	searchR1At   = "69c1c00ffe7c5554c68d8548355cb22e46aabc51"
)

// KnownData lists the public files of the paper's data: HotpotQA and NQ, in
// their publishers' form and FlashRAG's, and Wikipedia's passages of December
// 2018 in Search-R1's form and DPR's.
func KnownData() []DataFile {
	return []DataFile{
		{Name: "hotpotqa-train", Group: "hotpotqa", About: "HotpotQA 1.1, train, 90,447 questions", Licence: "CC BY-SA 4.0", URL: hotpotURL + "hotpot_train_v1.1.json",
			Size: 566_426_227, SHA256: "26650cf50234ef5fb2e664ed70bbecdfd87815e6bffc257e068efea5cf7cd316"},
		{Name: "hotpotqa-dev", Group: "hotpotqa", About: "HotpotQA, dev with distractors, 7,405 questions", Licence: "CC BY-SA 4.0", URL: hotpotURL + "hotpot_dev_distractor_v1.json",
			Size: 46_320_117, SHA256: "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea"},
		{Name: "nq-open-train", Group: "nq-open", About: "NQ-open, train", Licence: "CC BY-SA 3.0", URL: nqOpenURL + "NQ-open.train.jsonl"},
		{Name: "nq-open-dev", Group: "nq-open", About: "NQ-open, dev (the test questions of most papers), 3,610 questions", Licence: "CC BY-SA 3.0", URL: nqOpenURL + "NQ-open.dev.jsonl",
			Size: 391_316, SHA256: "f15567f38099f3615f5b8a685c0aef449c11ad90d3da3735e8d1b98115b40616"},
		{Name: "flashrag-nq-train", Group: "flashrag", About: "NQ in FlashRAG's form, train", Repo: flashRAG, Commit: flashRAGAt, Path: "nq/train.jsonl",
			Size: 9_960_189, SHA256: "572685d3f384d9c37479b1fb14232984c85ff13b58923c0c9442232bd5d5647b"},
		{Name: "flashrag-nq-dev", Group: "flashrag", About: "NQ in FlashRAG's form, dev", Repo: flashRAG, Commit: flashRAGAt, Path: "nq/dev.jsonl"},
		{Name: "flashrag-nq-test", Group: "flashrag", About: "NQ in FlashRAG's form, test", Repo: flashRAG, Commit: flashRAGAt, Path: "nq/test.jsonl"},
		{Name: "flashrag-hotpotqa-train", Group: "flashrag", About: "HotpotQA in FlashRAG's form, train", Repo: flashRAG, Commit: flashRAGAt, Path: "hotpotqa/train.jsonl",
			Size: 569_520_788, SHA256: "a81274abafa899ec0ee073102edbe6bb694a8a1174201b4e43e2bc6c98964d1a"},
		{Name: "flashrag-hotpotqa-dev", Group: "flashrag", About: "HotpotQA in FlashRAG's form, dev", Repo: flashRAG, Commit: flashRAGAt, Path: "hotpotqa/dev.jsonl",
			Size: 48_191_374, SHA256: "434ec155867019396312f3d466ce3406c71fe8a2917f49f63bb646ec5ad2ff52"},
		{Name: "wiki-18", Group: "passages", About: "Wikipedia 2018 in 21,015,324 passages, as Search-R1 uses it", Repo: searchR1Wiki, Commit: searchR1At, Path: "wiki-18.jsonl.gz",
			Size: 5_123_307_260, SHA256: "7abd929223399cd63c52b499f289bf4f9039be1e9f8c43e1cb3938305b2317db"},
		{Name: "dpr-wikipedia", Group: "passages", About: "Wikipedia 2018 in 21,015,324 passages, as DPR published them", URL: "https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz",
			Size: 4_694_541_059, SHA256: "c39b020c855a2b5c25ffef3abe4a3b6f9b829ad7dbc14ec3d163d34d7c53ea8d"},
	}
}

// ResolveData gives the files that a name, or the name of a group, stands for.
func ResolveData(name string) ([]DataFile, error) {
	var found []DataFile
	var names, groups []string
	for _, d := range KnownData() {
		if strings.EqualFold(d.Name, name) || strings.EqualFold(d.Group, name) || d.File() == name {
			found = append(found, d)
		}
		names = append(names, d.Name)
		if len(groups) == 0 || groups[len(groups)-1] != d.Group {
			groups = append(groups, d.Group)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("unknown data %q (known: %s; together: %s)", name, strings.Join(names, ", "), strings.Join(groups, ", "))
	}
	return found, nil
}

// Data brings a file to a folder and writes its sha256 beside it, in the form
// of sha256sum. A file that is there is checked against the known hash, else
// against the one beside it.
func (h *Hub) Data(ctx context.Context, d DataFile, dir string) (file string, got Got, err error) {
	file = filepath.Join(dir, d.File())
	noted := file + ".sha256"
	if d.SHA256 == "" {
		d.SHA256 = readSum(noted)
	}
	f, err := h.dataSource(ctx, d, file)
	if err != nil {
		return "", Got{}, err
	}
	got, err = h.Download(ctx, f, file)
	switch {
	case errors.Is(err, ErrUnreachable):
		return "", Got{}, fmt.Errorf("%w; a copy from elsewhere does as well, as %s", err, file)
	case err != nil && d.Repo != "":
		return "", Got{}, h.explain(Repo{DatasetRepo, d.Repo}, err)
	case err != nil:
		return "", Got{}, err
	case got.SHA256 == "":
		if got, err = sumOf(file); err != nil {
			return "", Got{}, err
		}
	}
	return file, got, writeSum(noted, got.SHA256, filepath.Base(file))
}

// dataSource is where a file is and what is known of it; the hub tells what the
// table does not.
func (h *Hub) dataSource(ctx context.Context, d DataFile, file string) (File, error) {
	f := File{URL: d.URL, Size: d.Size, SHA256: d.SHA256}
	if d.Repo != "" {
		l := &Listing{Repo: Repo{DatasetRepo, d.Repo}, Commit: d.Commit}
		f.URL, f.Token = h.url(l, d.Path), h.Token
		if _, here := existing(f, file); here || d.SHA256 != "" && d.Size != 0 || h.Offline {
			return f, h.offline(f, file)
		}
		e, err := h.complete(ctx, l, Entry{Name: d.Path, Size: d.Size, SHA256: d.SHA256})
		if errors.Is(err, ErrUnreachable) {
			err = fmt.Errorf("%w; a copy from elsewhere does as well, as %s", err, file)
		}
		if err != nil {
			return f, err
		}
		f.Size, f.SHA256, f.GitSHA1 = e.Size, e.SHA256, e.GitSHA1
	}
	return f, h.offline(f, file)
}

// offline is the error of a download that is needed and not allowed.
func (h *Hub) offline(f File, file string) error {
	if _, here := existing(f, file); here || !h.Offline {
		return nil
	}
	return fmt.Errorf("%s is not there as expected: %w", file, ErrOffline)
}

// sumOf hashes a file.
func sumOf(name string) (Got, error) {
	file, err := os.Open(name)
	if err != nil {
		return Got{}, err
	}
	defer file.Close()
	s := newSums(File{})
	if _, err := file.WriteTo(s); err != nil {
		return Got{}, err
	}
	return Got{Size: s.size, SHA256: s.sha256(), Already: true}, nil
}

// readSum is the hash in a file of sha256sum; "" if there is none.
func readSum(name string) string {
	data, err := os.ReadFile(name)
	sum, _, _ := strings.Cut(string(data), " ")
	if err != nil || len(sum) != 64 || !hexKey.MatchString(sum) {
		return ""
	}
	return sum
}

func writeSum(name, sum, file string) error {
	if readSum(name) == sum {
		return nil
	}
	return os.WriteFile(name, []byte(sum+"  "+file+"\n"), 0o644)
}
