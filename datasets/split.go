package datasets

import "fmt"

// Split names a part of the data that shares no question with the others.
type Split string

// The splits.
const (
	Train Split = "train"
	Dev   Split = "dev"
	Test  Split = "test"
)

// Splits lists the splits in their usual order.
var Splits = []Split{Train, Dev, Test}

// ParseSplit returns the split of a name, or an error that lists the names.
func ParseSplit(name string) (Split, error) {
	for _, s := range Splits {
		if string(s) == name {
			return s, nil
		}
	}
	return "", fmt.Errorf("unknown split %q; known are train, dev, test", name)
}
