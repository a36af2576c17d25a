package datasets

import (
	"fmt"
	"io"
	"iter"
)

// ReadTasks yields the tasks of a Parquet file in MEM1's columns: one that
// [TaskWriter] wrote, or MEM1's own ([MEM1] and [Tasks]). MEM1's rows have no
// ids; theirs are "mem1/" and the row's number from 0. An error, which ends the
// tasks, is as in [Reader.Next]; files with one question a record are an error.
func ReadTasks(path string, o Options) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		r, err := Open(path, o)
		if err != nil {
			yield(Task{}, err)
			return
		}
		defer r.Close()
		if !r.layout.multi {
			yield(Task{}, fmt.Errorf("%s: format %s holds single questions; tasks have to be composed of them", path, r.Format()))
			return
		}
		for {
			e, n, err := r.nextEntry()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Task{}, err)
				return
			}
			t := Task{ID: e.task, World: e.world, Questions: e.questions}
			if t.ID == "" {
				t.ID = fmt.Sprintf("%s/%d", r.Format(), n)
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}
