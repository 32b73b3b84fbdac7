package main

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// maxAhead bounds the documents of a file that are read and not yet put out, in bytes
// of their text. One that is longer is alone.
const maxAhead = 48 << 10

// maxAheadDocuments bounds their number, however short they are.
const maxAheadDocuments = 16

// fixedDocument is one document of a file, on its way from the reader to the output.
type fixedDocument struct {
	part    *manifest.Part
	size    int64         // what it counts towards maxAhead
	done    chan struct{} // closed when the rest is there
	readErr error         // a *yamldoc.Error; then there is no more

	// The File itself is not held: it is many times as large as the text.
	warnings []*yamldoc.Error
	report   offline.Report
	fixErr   error
	text     []byte
	changed  bool
	writeErr error
}

// fix reads the document and applies the rules to it.
func (d *fixedDocument) fix(fixer *offline.Fixer) {
	defer close(d.done)
	defer func() { d.part = nil }()
	if d.readErr != nil {
		return
	}
	file, err := d.part.Parse()
	if err != nil {
		d.readErr = err
		return
	}
	d.warnings = file.Warnings()
	d.report, d.fixErr = fixer.Fix(file)
	d.text, d.writeErr = file.Bytes()
	d.changed = file.Changed()
}

// documents fixes the documents of a file side by side and has put called with each,
// in their order. The error is the first of put, or that of reading; it is nil at the
// end of the file. put is not called any more when documents has returned.
func (j *fixJob) documents(ctx context.Context, reader *manifest.Reader, put func(*fixedDocument) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	room := semaphore.NewWeighted(maxAhead)
	ordered := make(chan *fixedDocument, maxAheadDocuments)
	work := make(chan *fixedDocument, maxAheadDocuments)
	var putErr error
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for d := range work {
				d.fix(j.fixer)
			}
		})
	}
	running.Go(func() {
		for d := range ordered {
			<-d.done
			if putErr == nil {
				if putErr = put(d); putErr != nil {
					cancel()
				}
			}
			room.Release(d.size)
		}
	})
	err := cutDocuments(reader, func(d *fixedDocument) error {
		if err := room.Acquire(ctx, d.size); err != nil {
			return context.Cause(ctx)
		}
		work <- d
		ordered <- d
		return nil
	})
	close(work)
	close(ordered)
	running.Wait()
	if putErr != nil {
		return putErr
	}
	return err
}

// cutDocuments reads documents up to the end of the file, or an error.
func cutDocuments(reader *manifest.Reader, each func(*fixedDocument) error) error {
	for {
		part, err := reader.Cut()
		d := &fixedDocument{part: part, done: make(chan struct{})}
		switch {
		case err == nil:
			d.size = int64(min(part.Size(), maxAhead))
		case errors.As(err, new(*yamldoc.Error)):
			d.readErr = err
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
		if err := each(d); err != nil {
			return err
		}
	}
}
