// Package input reads what PATH arguments name: files, folders, standard
// input. All commands share it, so that a PATH means the same everywhere.
package input

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the name of standard input in messages.
const Stdin = "<stdin>"

// File is one file as it was read.
type File struct {
	Name string // as shown in messages; Stdin for standard input
	Data []byte
	// Listed says that the file was found in a folder, not named itself.
	Listed bool
}

// Read reads files, folders (recursively: *.yaml, *.yml and *.json, in
// lexical order) and standard input ("-"). Hidden files and folders are left
// out when a folder is read; so is the ..data folder of a mounted ConfigMap,
// whose files appear beside it as links.
//
// At most limit+1 bytes of a file are read: enough for a parser that allows
// limit bytes to refuse it by name.
func Read(paths []string, stdin io.Reader, limit int) ([]File, error) {
	var out []File
	for _, path := range paths {
		if path == "-" {
			data, err := readLimited(stdin, limit)
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			out = append(out, File{Name: Stdin, Data: data})
			continue
		}
		found, err := readPath(path, limit)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func readPath(path string, limit int) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := readFile(path, limit)
		return []File{{Name: path, Data: data}}, err
	}
	var out []File
	// The folder itself may be a link: WalkDir does not follow it, a trailing
	// slash makes it.
	root := path + string(filepath.Separator)
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case hidden(entry.Name()) && file != root:
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)):
			return nil
		}
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			return err // a link to nothing, or to a folder
		}
		data, err := readFile(file, limit)
		out = append(out, File{Name: filepath.Clean(file), Data: data, Listed: true})
		return err
	})
	return out, err
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

func readFile(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, limit)
}

func readLimited(r io.Reader, limit int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, int64(limit)+1))
}
