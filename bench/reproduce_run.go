package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memopd/memopd-bench/results"
)

// reproduction works through parts, beside others of its kind in the same folder.
type reproduction struct {
	o      reproduceOptions
	parts  []part
	store  partStore
	commit string
	states map[string]*partState
	shown  time.Time // when a line of progress was last shown
}

// partState is what is known of a part.
type partState struct {
	record    *results.Part // of a finished part
	err       error         // why it failed
	blocked   string        // the part whose failure keeps it from beginning
	began     time.Time     // while it runs here
	elsewhere bool          // another process is at it
}

func (s *partState) ended() bool { return s.record != nil || s.err != nil || s.blocked != "" }

// partEnd says that a part has come to its end here.
type partEnd struct {
	name string
	err  error
}

// lookEvery is the time between two looks at what other processes have done.
const lookEvery = 200 * time.Millisecond

// run does the parts, or those of --only, that are not finished.
func (r *reproduction) run(ctx context.Context) error {
	manifest := results.NewManifest(nil, "")
	r.commit = commitName(manifest)
	if err := os.MkdirAll(r.o.auditFolder(), 0o755); err != nil {
		return err
	}
	if err := r.read(); err != nil {
		return err
	}
	wanted, err := r.wanted()
	if err != nil {
		return err
	}
	ends := make(chan partEnd)
	running := 0
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if ctx.Err() == nil {
			begun, err := r.begin(ctx, wanted, r.o.Jobs-running, ends)
			running += begun
			if err != nil { // what runs must end before this does
				for ; running > 0; running-- {
					<-ends
				}
				return err
			}
		}
		r.progress(wanted, false)
		if running == 0 && (ctx.Err() != nil || !slices.ContainsFunc(wanted, func(p part) bool { return !r.states[p.name].ended() })) {
			break
		}
		select {
		case e := <-ends:
			running--
			if err := r.end(ctx, e); err != nil {
				return err
			}
			r.progress(wanted, true)
		case <-tick.C:
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w (go on with the same command)", err)
	}
	return r.failures(wanted)
}

// commitName is a commit as records have it.
func commitName(m *results.Manifest) string {
	switch {
	case m.Commit == "":
		return "unknown"
	case m.Dirty:
		return m.Commit + "-dirty"
	}
	return m.Commit
}

// read looks at all parts' records for the first time.
func (r *reproduction) read() error {
	r.states = map[string]*partState{}
	for _, p := range r.parts {
		record, err := r.store.finished(p)
		if err != nil {
			return err
		}
		r.states[p.name] = &partState{record: record}
	}
	return nil
}

// wanted lists the parts of --only, or all.
func (r *reproduction) wanted() ([]part, error) {
	if len(r.o.Only) == 0 {
		return r.parts, nil
	}
	var list []part
	for _, name := range r.o.Only {
		i := slices.IndexFunc(r.parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown part %q (--plan shows them)", name)
		}
		for _, before := range r.parts[i].after {
			if r.states[before].record == nil && !slices.Contains(r.o.Only, before) {
				return nil, fmt.Errorf("%s: %s has to be finished before", name, before)
			}
		}
		list = append(list, r.parts[i])
	}
	return list, nil
}

// begin starts up to free parts that can be, and returns how many. A part whose
// lock another process has is passed over until that is done with it.
func (r *reproduction) begin(ctx context.Context, wanted []part, free int, ends chan<- partEnd) (begun int, err error) {
	for _, p := range wanted {
		s := r.states[p.name]
		if s.ended() || !s.began.IsZero() {
			continue
		}
		ready := r.ready(p)
		if s.blocked != "" {
			r.say("%s is left out: it needs %s", p.name, s.blocked)
		}
		if !ready || begun == free {
			continue
		}
		ok, err := r.beginPart(ctx, p, ends)
		if err != nil {
			return begun, err
		}
		if ok {
			begun++
		}
	}
	return begun, nil
}

// ready tells whether all that a part hangs on is finished.
func (r *reproduction) ready(p part) bool {
	ready := true
	for _, before := range p.after {
		b := r.states[before]
		if b.err != nil || b.blocked != "" {
			r.states[p.name].blocked = before
		}
		ready = ready && b.record != nil
	}
	return ready
}

// beginPart takes a part's lock and starts it, unless another process has it or has
// finished it.
func (r *reproduction) beginPart(ctx context.Context, p part, ends chan<- partEnd) (bool, error) {
	s := r.states[p.name]
	lock, err := r.store.lock(p.name)
	if s.elsewhere = err == nil && lock == nil; s.elsewhere || err != nil {
		return false, err
	}
	s.record, err = r.store.finished(p)
	if err != nil || s.record != nil {
		return false, errors.Join(err, lock.Close())
	}
	gate, err := r.store.gate(p.alone)
	if gate == nil || err != nil {
		return false, errors.Join(err, lock.Close())
	}
	s.began = time.Now()
	r.say("begin %s", p.name)
	go func() {
		err := r.runPart(ctx, p, lock, gate)
		_, _ = gate.Close(), lock.Close() // only read
		ends <- partEnd{p.name, err}
	}()
	return true, nil
}

// end notes how a part ended here.
func (r *reproduction) end(ctx context.Context, e partEnd) (err error) {
	s := r.states[e.name]
	s.began = time.Time{}
	if e.err != nil {
		if ctx.Err() == nil {
			s.err = e.err
			r.say("failed: %v", e.err)
		}
		return nil
	}
	i := slices.IndexFunc(r.parts, func(p part) bool { return p.name == e.name })
	if s.record, err = r.store.finished(r.parts[i]); err == nil && s.record == nil {
		err = fmt.Errorf("%s: its record is gone", e.name)
	}
	return err
}

// failures is an error that names what failed and what was left out for it.
func (r *reproduction) failures(wanted []part) error {
	var failed, blocked []string
	for _, p := range wanted {
		switch s := r.states[p.name]; {
		case s.err != nil:
			failed = append(failed, p.name)
		case s.blocked != "":
			blocked = append(blocked, p.name)
		}
	}
	if failed == nil {
		return nil
	}
	text := fmt.Sprintf("%d of %d parts failed: %s", len(failed), len(wanted), strings.Join(failed, ", "))
	if blocked != nil {
		text += "; left out for them: " + strings.Join(blocked, ", ")
	}
	return errors.New(text + "; the same command tries them again")
}
