package rules

import (
	"io"

	"github.com/rectifier-dev/rectifier/internal/input"
)

// MaxFileBytes is the largest rule file that is read.
const MaxFileBytes = 1 << 20

// Source is a rule file as it was read.
type Source struct {
	Name string // as shown in problems
	Data []byte
	// Listed says that the file was found in a folder, where other kinds of
	// documents may stand beside rules; a file that was named holds rules only.
	Listed bool
}

// Read reads rule files: what PATH arguments name, see package input. An error
// means that a path cannot be read at all: it is an error of usage, not a
// Problem of a rule.
func Read(paths []string, stdin io.Reader) ([]Source, error) {
	files, err := input.Read(paths, stdin, MaxFileBytes)
	if err != nil {
		return nil, err
	}
	out := make([]Source, len(files))
	for i, f := range files {
		out[i] = Source(f)
	}
	return out, nil
}
