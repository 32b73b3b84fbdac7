package rulefiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// places are the folders in which changes matter, by their real path, and the
// names in each that do.
type places map[string]names

// names are those that matter in a folder.
type names struct {
	all   bool
	named map[string]bool
}

// maxLinks ends the way of a link that leads in circles.
const maxLinks = 40

// placesOf finds the places that decide what paths lead to: where each of them
// stands, where the links on its way stand, and the folders below it.
func placesOf(paths []string) places {
	p := places{}
	for _, path := range paths {
		p.folders(p.trace(path))
	}
	return p
}

// matter reports whether a change of what has that path matters.
func (p places) matter(path string) bool {
	if _, ok := p[path]; ok {
		return true // it is one of the folders
	}
	in, ok := p[filepath.Dir(path)]
	return ok && (in.all || in.named[filepath.Base(path)])
}

func (p places) note(folder, name string) {
	in := p[folder]
	if in.named == nil {
		in.named = map[string]bool{}
	}
	in.named[name] = true
	p[folder] = in
}

// trace follows a path link by link and returns where it leads, as far as that
// exists.
func (p places) trace(path string) string {
	if working, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		// Not cleaned: what .. leads to behind a link is not known before the link is.
		path = working + string(filepath.Separator) + path
	}
	at, rest := split(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if target, err := os.Readlink(next); err == nil && links < maxLinks {
			links++
			p.note(at, name)
			root, steps := split(target)
			if root != "" {
				at = root
			}
			rest = append(steps, rest...)
			continue
		}
		if _, err := os.Lstat(next); err != nil || len(rest) == 0 {
			p.note(at, name)
			return next
		}
		at = next
	}
	return at
}

// split returns the root of a path, empty if it is relative, and its steps.
func split(path string) (root string, steps []string) {
	if filepath.IsAbs(path) {
		root = filepath.VolumeName(path) + string(filepath.Separator)
	}
	for step := range strings.SplitSeq(path[len(root):], string(filepath.Separator)) {
		if step != "" && step != "." {
			steps = append(steps, step)
		}
	}
	return root, steps
}

// folders adds a folder and those below it, and where the links in them lead:
// the folders that package input reads. It does nothing for a file.
func (p places) folders(root string) {
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return fs.SkipDir
		case entry.IsDir():
			in := p[path]
			in.all = true
			p[path] = in
		case entry.Type()&fs.ModeSymlink != 0 && path != root:
			p.trace(path)
		}
		return nil
	})
}
