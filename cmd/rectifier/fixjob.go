package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// bufferSize is that of what is printed and written.
const bufferSize = 64 << 10

// fixJob is one run of fix. It goes over the manifests document by document and
// keeps none: 50,000 need no more memory than one.
type fixJob struct {
	flags      *fixFlags
	fixer      *offline.Fixer
	err        io.Writer
	printed    *joiner
	total      offline.Report
	progress   *progress
	unreadable int // problems that make the exit code that of unreadable input
}

// learn reads the manifests for what rules look up in them, if they look at
// anything beside the object at hand.
func (j *fixJob) learn(ctx context.Context, sources []*input.Source) error {
	if !j.fixer.World.Keeps() {
		return nil
	}
	for _, source := range sources {
		r, err := source.Open(false)
		if err != nil {
			return err
		}
		err = j.fixer.World.Learn(source.Name, contextReader{ctx, r})
		if err = errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("read %s: %w", source.Name, err)
		}
	}
	return nil
}

// file fixes one file and puts the result where it belongs. What is wrong with
// the file is told and counted; an error ends the run: it is interrupted, or
// nobody reads what it prints.
func (j *fixJob) file(ctx context.Context, source *input.Source) error {
	r, err := source.Open(true)
	if err != nil {
		j.complain(fmt.Errorf("read the manifests: %w", err))
		return nil
	}
	defer r.Close()
	var report offline.Report
	before := j.unreadable
	out := j.output(source)
	reader := manifest.NewReader(source.Name, contextReader{ctx, r})
	for err == nil {
		var file *manifest.File
		file, err = reader.Next()
		switch {
		case errors.As(err, new(*yamldoc.Error)):
			j.complain(err)
			err = nil
		case err == nil:
			err = j.document(file, &report, out)
		}
	}
	if err == io.EOF {
		err = nil
	}
	broken := err != nil || j.unreadable > before
	err = errors.Join(err, out.end(broken))
	if j.flags.inPlace && broken {
		report.Changed = 0
	}
	j.total.Count(report)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*printError)):
		return err
	default:
		j.complain(err)
	}
	return nil
}

// document fixes one document.
func (j *fixJob) document(file *manifest.File, report *offline.Report, out fixOutput) error {
	for _, w := range file.Warnings() {
		fmt.Fprintf(j.err, "%s: warning: %s\n", w.Pos, w.Msg)
	}
	found, err := j.fixer.Fix(file)
	report.Count(found)
	j.progress.show(j.total.Objects+report.Objects, j.total.Changed+report.Changed)
	if err != nil {
		j.complain(err)
	}
	for _, finding := range found.Findings {
		printFinding(j.err, finding)
	}
	text, err := file.Bytes()
	if err != nil {
		j.complain(fmt.Errorf("write the changes into the manifest: %w", err))
	}
	return out.write(text, file.Changed())
}

func (j *fixJob) complain(err error) {
	fmt.Fprintln(j.err, "rectifier:", err)
	j.unreadable++
}

// contextReader ends a long read when the command is told to stop.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
