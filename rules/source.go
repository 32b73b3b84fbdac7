package rules

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Read reads files, folders (recursively: *.yaml, *.yml and *.json, in
// lexical order) and standard input ("-"). Hidden files and folders are left
// out when a folder is read; so are the ..data folders of a mounted ConfigMap,
// whose files appear beside them as links.
//
// An error means that a path cannot be read at all: it is an error of usage,
// not a Problem of a rule.
func Read(paths []string, stdin io.Reader) ([]Source, error) {
	var out []Source
	for _, path := range paths {
		if path == "-" {
			data, err := readLimited(stdin)
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			out = append(out, Source{Name: "<stdin>", Data: data})
			continue
		}
		found, err := readPath(path)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func readPath(path string) ([]Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := readFile(path)
		return []Source{{Name: path, Data: data}}, err
	}
	var out []Source
	// The folder itself may be a link: WalkDir does not follow it, a trailing
	// slash makes it.
	err = filepath.WalkDir(path+string(filepath.Separator), func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(entry.Name(), ".") && filepath.Clean(file) != filepath.Clean(path):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)):
			return nil
		}
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			return err // a link to a folder, or to nothing
		}
		data, err := readFile(file)
		out = append(out, Source{Name: filepath.Clean(file), Data: data, Listed: true})
		return err
	})
	return out, err
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f)
}

// readLimited reads one byte more than is allowed, so that the parser refuses
// what is too large with the file's name.
func readLimited(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
}
