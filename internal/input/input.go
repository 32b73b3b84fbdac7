// Package input reads what PATH arguments name: files, folders, standard
// input. All commands share it, so that a PATH means the same everywhere. Read
// returns whole files; Find returns Sources, for files that may be large.
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

// Read reads what Find finds. At most limit+1 bytes of a file are read: enough
// for a parser that allows limit bytes to refuse it by name.
func Read(paths []string, stdin io.Reader, limit int) ([]File, error) {
	sources, err := Find(paths, stdin)
	if err != nil {
		return nil, err
	}
	files := make([]File, len(sources))
	for i, s := range sources {
		files[i] = File{Name: s.Name, Listed: s.Listed}
		if files[i].Data, err = s.read(limit); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Find finds files, folders (recursively: *.yaml, *.yml and *.json, in lexical
// order) and standard input ("-"). Hidden files and folders are left out when a
// folder is read; so is the ..data folder of a mounted ConfigMap, whose files
// appear beside it as links.
//
// A file that is reached in several ways (by its name and through its folder,
// by several spellings, by links) is found once, at the first of them. It counts
// as named if any of them names it.
//
// A link that leads nowhere is an error in a folder too: to go on without it
// would leave out a rule or a manifest that somebody believes to be there. So is
// a file that cannot be opened.
func Find(paths []string, stdin io.Reader) ([]*Source, error) {
	f := finder{stdin: stdin, seen: map[string]*Source{}}
	for _, path := range paths {
		if err := f.path(path); err != nil {
			return nil, err
		}
	}
	return f.sources, nil
}

type finder struct {
	stdin   io.Reader
	sources []*Source
	seen    map[string]*Source // by where they really are
}

func (f *finder) path(path string) error {
	if path == "-" {
		f.standardInput()
		return nil
	}
	info, err := stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.file(path, info, false)
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
		info, err := stat(file)
		if err != nil || !info.Mode().IsRegular() {
			// Links to folders are not followed: they may lead in circles. A
			// pipe among files would be waited for, maybe for ever.
			return err
		}
		return f.file(filepath.Clean(file), info, true)
	})
}

func (f *finder) standardInput() {
	if f.seen[Stdin] == nil {
		f.add(Stdin, &Source{Name: Stdin, spool: &spool{from: io.NopCloser(f.stdin)}})
	}
}

func (f *finder) add(real string, s *Source) {
	f.seen[real] = s
	f.sources = append(f.sources, s)
}

// file adds a file if it has not been found yet.
func (f *finder) file(name string, info fs.FileInfo, listed bool) error {
	real, err := realPath(name)
	if err != nil {
		return err
	}
	if known := f.seen[real]; known != nil {
		known.Listed = known.Listed && listed
		return nil
	}
	opened, err := os.Open(name)
	if err != nil {
		return err
	}
	s := &Source{Name: name, Listed: listed}
	if !info.Mode().IsRegular() {
		s.spool = &spool{from: opened} // a pipe can be opened only once
	} else if err := opened.Close(); err != nil {
		return err
	}
	f.add(real, s)
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
