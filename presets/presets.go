// Package presets holds the checkpoints that stand in the repository, so that a
// first training run need not begin with an hour of supervised fine-tuning:
// for each preset the SFT student and the teacher, in Hugging Face's layout, and
// pretrain.json with the command, seed and scores that made them
// (`bench pretrain --preset mini --install`).
package presets

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed mini
var files embed.FS

// The roles of a preset's checkpoints.
const (
	Student = "student" // where PPO starts, and its frozen reference
	Teacher = "teacher"
)

// Checkpoint returns the folder of a preset's checkpoint. The error lists the
// presets that are there.
func Checkpoint(preset, role string) (fs.FS, error) {
	dir := preset + "/" + role
	if _, err := fs.Stat(files, dir+"/config.json"); err != nil {
		return nil, fmt.Errorf("no %s checkpoint of preset %q in this build (known: %s)", role, preset, known())
	}
	return fs.Sub(files, dir)
}

func known() string {
	entries, _ := files.ReadDir(".")
	var names []string
	for _, e := range entries {
		for _, role := range []string{Student, Teacher} {
			if _, err := fs.Stat(files, e.Name()+"/"+role+"/config.json"); err == nil {
				names = append(names, e.Name()+"/"+role)
			}
		}
	}
	return strings.Join(names, ", ")
}
