package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rectifier-dev/rectifier/internal/input"
)

// fixOutput takes the fixed documents of a file, in order.
type fixOutput interface {
	// write takes the text of a document; changed says that it is not what the file has.
	write(text []byte, changed bool) error
	// end is called once, behind the last document. broken says that the file could not be read or written whole.
	end(broken bool) error
}

// output says where the documents of a file go.
func (j *fixJob) output(source *input.Source) fixOutput {
	switch {
	case j.flags.check:
		return nowhere{}
	case j.flags.inPlace:
		return &replacement{name: source.Name}
	}
	return &printed{joiner: j.printed, json: filepath.Ext(source.Name) == ".json"}
}

type nowhere struct{}

func (nowhere) write([]byte, bool) error { return nil }
func (nowhere) end(bool) error           { return nil }

// printed prints a file to a joiner.
type printed struct {
	*joiner
	json  bool
	begun bool
}

func (p *printed) write(text []byte, _ bool) error {
	if len(text) == 0 {
		return nil
	}
	glue := ""
	if !p.begun {
		glue = p.glue(text, p.json)
	}
	p.begun, p.last = true, text[len(text)-1]
	_, err := p.out.WriteString(glue)
	if err == nil {
		_, err = p.out.Write(text)
	}
	return wrapPrint(err)
}

func (p *printed) end(broken bool) error {
	if broken && p.begun && p.last != '\n' {
		p.last = '\n' // what would have ended the line is missing
		if err := p.out.WriteByte(p.last); err != nil {
			return wrapPrint(err)
		}
	}
	return wrapPrint(p.out.Flush())
}

// printError says that the output is gone: there is no point in going on.
type printError struct{ err error }

func (e *printError) Error() string { return "print the manifests: " + e.err.Error() }
func (e *printError) Unwrap() error { return e.err }

func wrapPrint(err error) error {
	if err == nil {
		return nil
	}
	return &printError{err}
}

// joiner prints files one after another as one valid stream. One file alone is
// printed as it is, to the last byte.
type joiner struct {
	out  *bufio.Writer
	last byte // 0: nothing printed yet
}

// glue returns what belongs between the files before and one that starts with
// text.
func (j *joiner) glue(text []byte, json bool) string {
	glue := ""
	if j.last != 0 && j.last != '\n' {
		glue = "\n"
	}
	if j.last != 0 && !json && !bytes.HasPrefix(text, []byte("---")) {
		glue += "---\n"
	}
	return glue
}

// replacement writes a file anew, all or nothing, with its permissions. What a
// link points to is written, not the link. A file that may not be written is
// not replaced either, although its folder would allow that. As long as nothing
// changes, nothing is written.
type replacement struct {
	name   string
	same   int64 // bytes at the start of the file that do not change
	target string
	temp   *os.File // nil: nothing has changed yet
	out    *bufio.Writer
}

func (r *replacement) write(text []byte, changed bool) error {
	if r.temp == nil {
		if !changed {
			r.same += int64(len(text))
			return nil
		}
		if err := r.begin(); err != nil {
			return err
		}
	}
	_, err := r.out.Write(text)
	return err
}

// begin makes the new file, up to the first change.
func (r *replacement) begin() error {
	target, err := filepath.EvalSymlinks(r.name)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	if err := mayWrite(target, info); err != nil {
		return fmt.Errorf("write the changes into the manifest: %w; it is left as it was", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	r.target, r.temp, r.out = target, temp, bufio.NewWriterSize(temp, bufferSize)
	if err := temp.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	old, err := os.Open(target)
	if err != nil {
		return err
	}
	_, err = io.CopyN(r.out, old, r.same)
	return errors.Join(err, old.Close())
}

func (r *replacement) end(broken bool) error {
	if r.temp == nil {
		return nil
	}
	err := errors.Join(r.out.Flush(), r.temp.Close())
	if err == nil && !broken {
		err = os.Rename(r.temp.Name(), r.target)
	}
	if err != nil || broken {
		err = errors.Join(err, os.Remove(r.temp.Name()))
	}
	return err
}

// mayWrite returns an error if a file is read-only, for root too, or cannot be
// written by this user.
func mayWrite(name string, info os.FileInfo) error {
	if info.Mode().Perm()&0o222 == 0 {
		return fmt.Errorf("%s is read-only (mode %04o)", name, info.Mode().Perm())
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
