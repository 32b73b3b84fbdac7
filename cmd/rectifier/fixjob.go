package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
)

// bufferSize is that of what is printed and written.
const bufferSize = 64 << 10

// fixJob is one run of fix. It goes over the manifests document by document and
// keeps but a few: 50,000 need no more memory.
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
	err = j.documents(ctx, reader, func(d *fixedDocument) error {
		return j.document(d, &report, out)
	})
	broken := err != nil || j.unreadable > before
	ended := out.end(broken)
	if !errors.As(err, new(*printError)) { // else that is why it cannot be ended
		err = errors.Join(err, ended)
	}
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

// document tells of one document that has been fixed, and puts it out.
func (j *fixJob) document(d *fixedDocument, report *offline.Report, out fixOutput) error {
	if d.readErr != nil {
		j.complain(d.readErr)
		return nil
	}
	for _, w := range d.warnings {
		fmt.Fprintf(j.err, "%s: warning: %s\n", w.Pos, w.Msg)
	}
	report.Count(d.report)
	j.progress.show(j.total.Objects+report.Objects, j.total.Changed+report.Changed)
	if d.fixErr != nil {
		j.complain(d.fixErr)
	}
	for _, finding := range d.report.Findings {
		printFinding(j.err, finding)
	}
	if d.writeErr != nil {
		j.complain(fmt.Errorf("write the changes into the manifest: %w", d.writeErr))
	}
	return out.write(d.text, d.changed)
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
