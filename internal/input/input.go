// Package input reads what PATH arguments name: files, folders, standard
// input. All commands share it, so that a PATH means the same everywhere.
package input

import (
	"errors"
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
// A file that is reached in several ways (by its name and through its folder,
// by several spellings, by links) is read once, at the first of them. It counts
// as named if any of them names it.
//
// A link that leads nowhere is an error in a folder too: to go on without it
// would leave out a rule or a manifest that somebody believes to be there.
//
// At most limit+1 bytes of a file are read: enough for a parser that allows
// limit bytes to refuse it by name.
func Read(paths []string, stdin io.Reader, limit int) ([]File, error) {
	r := reader{stdin: stdin, limit: limit, seen: map[string]int{}}
	for _, path := range paths {
		if err := r.path(path); err != nil {
			return nil, err
		}
	}
	return r.files, nil
}

type reader struct {
	stdin io.Reader
	limit int
	files []File
	seen  map[string]int // indices of files, by where they really are
}

func (r *reader) path(path string) error {
	if path == "-" {
		return r.standardInput()
	}
	info, err := stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.file(File{Name: path})
	}
	// The folder itself may be a link: WalkDir does not follow it, a trailing
	// slash makes it.
	root := path + string(filepath.Separator)
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
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
		if info, err := stat(file); err != nil || info.IsDir() {
			return err // links to folders are not followed: they may lead in circles
		}
		return r.file(File{Name: filepath.Clean(file), Listed: true})
	})
}

func (r *reader) standardInput() error {
	if _, again := r.seen[Stdin]; again {
		return nil
	}
	r.seen[Stdin] = len(r.files)
	data, err := readLimited(r.stdin, r.limit)
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	r.files = append(r.files, File{Name: Stdin, Data: data})
	return nil
}

// file reads a file if it has not been read yet.
func (r *reader) file(f File) error {
	real, err := realPath(f.Name)
	if err != nil {
		return err
	}
	if i, again := r.seen[real]; again {
		r.files[i].Listed = r.files[i].Listed && f.Listed
		return nil
	}
	if f.Data, err = readFile(f.Name, r.limit); err != nil {
		return err
	}
	r.seen[real] = len(r.files)
	r.files = append(r.files, f)
	return nil
}

// realPath returns the absolute path of a file, links followed. The pipe behind
// the /dev/fd/63 of a shell's <(command) has no path of its own.
func realPath(name string) (string, error) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	return filepath.Abs(name)
}

// stat is os.Stat with an error that tells a link to nothing from nothing.
func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	if target, linkErr := os.Readlink(path); linkErr == nil {
		return nil, fmt.Errorf("%s is a link that leads nowhere, to %s: %w", path, target, fs.ErrNotExist)
	}
	return info, err
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
