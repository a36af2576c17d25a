package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// madeUp are people, each with a town, and towns, each with a river: questions in
// HotpotQA's layout need both passages, those in nq-open-oracle's one.
var madeUp = []struct{ person, town, river string }{
	{"Ada Brook", "Oakton", "Wend"}, {"Lin Moss", "Varnby", "Ister"}, {"Per Holm", "Stelle", "Arno"},
	{"Tove Ask", "Marren", "Lune"}, {"Ivo Kern", "Dalwick", "Tamer"}, {"Una Fell", "Corvin", "Brede"},
	{"Max Dorn", "Elmstead", "Yarrow"}, {"Eda Voss", "Quarn", "Siver"}, {"Ole Finn", "Hasby", "Derne"},
}

// realQuestions writes the question files hotpot.jsonl and nq.jsonl and the
// passages of both.
func (w workplace) realQuestions() {
	var hotpot, nq, passages strings.Builder
	line := func(b *strings.Builder, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			w.t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	for i, m := range madeUp {
		person := fmt.Sprintf("%s is a painter. %s was born in %s.", m.person, m.person, m.town)
		town := fmt.Sprintf("%s is a town. %s lies on the river %s.", m.town, m.town, m.river)
		line(&hotpot, map[string]any{
			"_id": fmt.Sprintf("h%d", i), "question": fmt.Sprintf("Which river flows through the birthplace of %s?", m.person), "answer": m.river,
			"supporting_facts": []any{[]any{m.person, 1}, []any{m.town, 1}},
			"context":          []any{[]any{m.person, []string{person}}, []any{m.town, []string{town}}},
		})
		line(&nq, map[string]any{
			"question": "where was " + strings.ToLower(m.person) + " born", "answers": []string{m.town},
			"ctxs": []any{map[string]any{"title": m.person, "text": person, "hasanswer": true, "isgold": true}},
		})
		line(&passages, map[string]any{"id": fmt.Sprint(2 * i), "contents": fmt.Sprintf("%q\n%s", m.person, person)})
		line(&passages, map[string]any{"id": fmt.Sprint(2*i + 1), "contents": fmt.Sprintf("%q\n%s", m.town, town)})
	}
	w.write("hotpot.jsonl", hotpot.String())
	w.write("nq.jsonl", nq.String())
	w.write("passages.jsonl", passages.String())
}

// tinyModel writes a random decoder whose tokenizer has the words of the prompt
// and of the passages, and then extra.
func (w workplace) tinyModel(name string, seed uint64, extra ...string) {
	w.t.Helper()
	p := agent.MEM1()
	var all strings.Builder
	all.WriteString("<unk> <eos> " + p.Prefix([]string{"where was born Which river flows through the birthplace of"}))
	all.WriteString(" nothing is known yet. I still need More has to be looked up. So the answer Nothing left to look up. Question 3: Doc 1(Title: 2(Title:")
	for n := range 9 {
		all.WriteString(p.Observation(nil, n))
	}
	for _, m := range madeUp {
		fmt.Fprintf(&all, " %s %s %s %s? %s. %s; %s: %s: %s is a painter. town. was born in lies on the river %s. %s) %s)",
			m.person, strings.ToLower(m.person), m.town, m.person, m.town, m.town, m.town, m.person, m.town, m.river, m.person, m.town)
	}
	var words []string
	for _, word := range append(strings.Fields(all.String()), extra...) {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	tok, err := tokenizer.NewWordLevel(words, "<unk>", "<unk>", "<eos>")
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := model.New(model.Config{
		ModelType: model.Llama, VocabSize: tok.Size() + 7, EOSTokenID: model.TokenIDs{1}, // rows beyond the tokenizer, as published models have
		HiddenSize: 32, IntermediateSize: 64, NumHiddenLayers: 2, NumAttentionHeads: 2, NumKeyValueHeads: 1, HeadDim: 16,
		MaxPositionEmbeddings: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true,
	}, seed)
	if err != nil {
		w.t.Fatal(err)
	}
	defer m.Free()
	if err := m.Save(filepath.Join(w.dir, name), tok); err != nil {
		w.t.Fatal(err)
	}
}

const buildReal = "data build --source hotpotqa=hotpot.jsonl --source nq=nq.jsonl --corpus passages.jsonl --horizon q1,q2 --train-share 6 --dev-share 2 --test-share 2 --dir real"

// The whole way on real questions: data, SFT from the oracle, every variant, a table.
func TestRealQuestionsEndToEnd(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.tinyModel("tiny", 1)
	w.tinyModel("other", 1, "another", "word")
	if out := w.mustBench(buildReal); !strings.Contains(out, "hotpot.jsonl") || !strings.Contains(out, "18 passages") {
		t.Fatalf("data build says:\n%s", out)
	}
	const small = " --preset small --data real --response-tokens 96 "
	_, log, status := w.bench("pretrain" + small + "--model tiny --steps 4 --tokens-per-step 2048 --examples-per-pool 8 --log-every 1 --horizon-mix q1:.5,q2:.5")
	if status != 0 || !strings.Contains(log, "oracle: ") || strings.Contains(log, "left out") {
		t.Fatalf("pretrain: exit %d\n%s", status, log)
	}
	var report pretrainReport
	w.readJSON("runs/small/pretrain/seed-0/pretrain.json", &report)
	if report.Student.Step != 2 || report.Teacher.Step != 4 {
		t.Errorf("student of step %d and teacher of step %d, want 2 and 4", report.Student.Step, report.Teacher.Step)
	}
	const pretrained = "runs/small/pretrain/seed-0/run.json"
	before := w.file(pretrained)
	if _, log, status = w.bench("pretrain" + small + "--model tiny --steps 9"); status == 0 || !strings.Contains(log, "holds a run already: --resume") {
		t.Errorf("another pretraining in the same folder: exit %d\n%s", status, log)
	}
	if !bytes.Equal(before, w.file(pretrained)) {
		t.Error("a refused pretraining changed run.json")
	}
	for _, v := range variants[:3] { // the paper's
		w.mustBench("train" + small + "--steps 2 --prompts-per-step 3 --variant " + v.name)
		for i, r := range w.records("runs/small/" + v.name + "/seed-0") {
			if p99, ok := r.Get("rce/p99"); !ok || !(p99 <= 1e-4) {
				t.Errorf("%s, step %d: rce/p99 %g", v.name, i+1, p99)
			}
			if actions, _ := r.Get("rce/actions"); actions == 0 {
				t.Errorf("%s, step %d: no action compared", v.name, i+1)
			}
			kl, ok := r.Get("actor/teacher_kl")
			if ok = ok && kl > 0; ok != (v.name != "ppo") {
				t.Errorf("%s: teacher KL %g", v.name, kl)
			}
		}
	}
	var rows []results.Record
	out := w.mustBench("eval" + small + "--horizon q1,q2 --tasks 2 --timed-tasks 1 --variants sft,teacher,ppo,persistent,memopd --model tiny --json --ledger jsonl")
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Horizon+" "+r.Variant)
		if r.PeakContext <= 0 || r.Tasks == 0 {
			t.Errorf("row %+v", r)
		}
	}
	want := "q1 tiny, q1 sft, q1 teacher, q1 ppo, q1 persistent, q1 memopd, q2 tiny, q2 sft, q2 teacher, q2 ppo, q2 persistent, q2 memopd"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("rows %s, want %s", text, want)
	}
	all := w.mustBench("eval" + small + "--horizon q1 --tasks 1 --timed-tasks 0 --json")
	if err := json.Unmarshal([]byte(all), &rows); err != nil {
		t.Fatalf("%v in %s", err, all)
	}
	got = nil
	for _, r := range rows {
		got = append(got, r.Variant)
	}
	if text := strings.Join(got, ", "); text != "sft, ppo, persistent, memopd" {
		t.Errorf("without --variants: %s", text)
	}
	w.noGoldsIn("runs/small/eval/q2/tiny/seed-0/ledger.jsonl", "tiny")

	// A run that was stopped goes on to the same end; rows beyond the tokenizer stay out.
	const again = "train" + small + "--variant memopd --prompts-per-step 3 --out again " +
		"--student runs/small/pretrain/seed-0/student --teacher-model runs/small/pretrain/seed-0/teacher "
	w.mustBench(again + "--steps 1")
	w.setFinished(filepath.Join(w.dir, "again/small/memopd/seed-0"), false)
	w.mustBench(again + "--steps 2 --resume")
	if !bytes.Equal(w.file("runs/small/memopd/seed-0/model/model.safetensors"), w.file("again/small/memopd/seed-0/model/model.safetensors")) {
		t.Error("a resumed run ends with other weights")
	}

	for _, c := range []struct{ line, want string }{
		{"train" + small + "--student other --teacher-model tiny --out o", "its tokenizer is another one"},
		{"pretrain" + small + "--model tiny --examples runs/small/eval/q2/tiny/seed-0/ledger.jsonl --out o", "no trajectory that ends with an answer"},
		{"pretrain" + small + "--model tiny --examples nosuch.jsonl --out o", "nosuch.jsonl"},
		{"pretrain" + small + "--model tiny --horizon-mix q99:1 --out o", "too few for a task of 99"},
		{"pretrain" + small + "--model tiny --response-tokens 8 --response-tokens-per-question 0 --out o", "--response-tokens"},
		{"eval" + small + "--horizon q3", "q3.parquet"},
		{"eval" + small + "--model tiny --dtype f16", "known: f32, bf16"},
		{"eval" + small + "--model tiny --device tpu", "tpu"},
		{"eval" + small + "--model tiny --chat-template chatty", "chatty"},
	} {
		if _, stderr, status := w.bench(c.line); status == 0 || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "goroutine") {
			t.Errorf("bench %s: exit %d, want an error with %q, got\n%s", c.line, status, c.want, stderr)
		}
	}
}

// noGoldsIn checks that no river stands in the prefix of a recorded task.
func (w workplace) noGoldsIn(ledger, tokens string) {
	w.t.Helper()
	tok, err := tokenizer.Load(filepath.Join(w.dir, tokens))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, tr := range w.ledger(ledger) {
		prefix := tok.Decode(tr.Prefix)
		for _, m := range madeUp {
			if strings.Contains(prefix, m.river) || strings.Contains(prefix, m.town) {
				w.t.Errorf("a gold stands in the prompt: %s", prefix)
			}
		}
	}
}

func (w workplace) ledger(name string) []*trace.Trajectory {
	w.t.Helper()
	all, err := trace.ReadAll(filepath.Join(w.dir, name))
	if err != nil || len(all) == 0 {
		w.t.Fatalf("%s: %d trajectories, %v", name, len(all), err)
	}
	return all
}

func (w workplace) file(name string) []byte {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w workplace) readJSON(name string, into any) {
	w.t.Helper()
	if err := json.Unmarshal(w.file(name), into); err != nil {
		w.t.Fatal(err)
	}
}

// A build is made once, taken up where it stopped, and never mixed with another.
func TestDataBuildIsMadeOnce(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	first := w.mustBench(buildReal)
	out, log, _ := w.bench(buildReal)
	if out != first || !strings.Contains(log, "tasks are there already") || !strings.Contains(log, "the index is there already") {
		t.Errorf("a second build:\n%s%s", out, log)
	}
	m, err := datasets.ReadManifest(filepath.Join(w.dir, "real"))
	if err != nil || len(m.Inputs) != 2 || m.Inputs[0].Source != "hotpotqa" || m.Inputs[1].Questions != len(madeUp) {
		t.Errorf("manifest %+v, %v", m, err)
	}
	for _, gone := range []string{"real/index", "real/train-q2.parquet"} {
		if err := os.RemoveAll(filepath.Join(w.dir, gone)); err != nil {
			t.Fatal(err)
		}
		w.mustBench(buildReal)
		if _, err := os.Stat(filepath.Join(w.dir, gone)); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ line, want string }{
		{strings.Replace(buildReal, "q1,q2", "q2", 1), "questions_per_task was [1,2], is [2]"},
		{strings.Replace(buildReal, "--source nq=nq.jsonl", "", 1), "from 2 question files"},
		{strings.Replace(buildReal, "nq=nq.jsonl", "nq/dev=nq.jsonl", 1), "holds other data"},
		{buildReal + " --analyser plain", "analyser"},
		{strings.Replace(buildReal, "--corpus passages.jsonl", "--corpus nq.jsonl", 1), "nq.jsonl"},
		{"data build --dir x", "--source NAME=PATH"},
		{"data build --dir x --source nq.jsonl", "want NAME=PATH"},
		{"data build --dir x --source nq/all=nq.jsonl", "train, dev, test"},
		{"data build --dir x --source nq=nosuch.jsonl", "nosuch.jsonl"},
		{"data build --dir x --source nq=nq.jsonl --horizon 2", "unknown horizon"},
	} {
		if _, stderr, status := w.bench(c.line); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("bench %s: exit %d, want an error with %q, got\n%s", c.line, status, c.want, stderr)
		}
	}
	// Without a corpus the passages of the question files are it.
	if out := w.mustBench("data build --source hotpotqa=hotpot.jsonl --source nq=nq.jsonl --horizon q2 --train-share 1 --dev-share 0 --test-share 0 --dir own"); !strings.Contains(out, "18 passages") {
		t.Errorf("passages of the question files:\n%s", out)
	}
}

// What is missing for real questions is named with the command that makes it.
func TestMissingPartsOfRealQuestions(t *testing.T) {
	w := newWorkplace(t)
	t.Setenv("HF_HOME", filepath.Join(w.dir, "cache"))
	t.Setenv("MEMOPD_ASSETS", "")
	w.realQuestions()
	w.write("bare.jsonl", `{"question": "who sailed the blue heron", "answer": ["Ada Voss"]}`+"\n")
	w.tinyModel("tiny", 1)
	for _, c := range []struct{ line, want string }{
		{"pretrain --preset small", "bench model fetch SmolLM2-135M-Instruct"},
		{"pretrain --preset small --model tiny", "bench data build"},
		{"pretrain --preset small --model nosuch", "nosuch"},
		{"pretrain --preset mini --model tiny", "--preset small or paper"},
		{"pretrain --preset small --model tiny --student-share 2", "--student-share: 2"},
		{"train --preset small", "bench pretrain --preset small"},
		{"train --preset small --student tiny", "--teacher-model"},
		{"train --preset small --student tiny --variant ppo", "bench data build"},
		{"train --protocol mem1", "the mini-wiki speaks the protocol mini"},
		{"train --preset smoke --sampler-rows 0", "sampler-rows 0"},
		{"eval --preset small", "nothing to evaluate"},
		{"eval --preset small --variants base", "bench model fetch"},
		{"eval --preset small --variants sft", "bench pretrain"},
		{"eval --preset small --model tiny", "bench data build"},
		{"data build --source nq/test=bare.jsonl --horizon q1 --dir bare", "name some with --corpus"},
	} {
		_, stderr, status := w.bench(c.line)
		if status == 0 || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "goroutine") {
			t.Errorf("bench %s: exit %d, want an error with %q, got\n%s", c.line, status, c.want, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "runs")); err == nil {
		t.Error("a command that could not run left a folder of runs behind")
	}
}
