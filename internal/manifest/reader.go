package manifest

import (
	"bytes"
	"errors"
	"io"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// Reader reads a manifest document by document, so that a long one needs no more memory than its largest document. It accepts what Parse accepts,
// except that yamldoc.ManifestLimits.MaxBytes counts for each document.
//
// A large YAML list in the layout of kubectl is read item by item in the same way. There, aliases do not reach from item to item, and that the document is no
// list may show only at its end.
//
// A Reader is not safe for concurrent use.
type Reader struct {
	// Wanted is asked about the text of each document; if it says no, the document is passed over without a look at it. Nil wants all.
	Wanted func(text []byte) bool

	name    string
	scanner *yamldoc.Scanner
	list    *splitList // nil: not within one
	held    *scanned   // what comes next
}

// scanned is what a Scanner has returned.
type scanned struct {
	yamldoc.Chunk
	err error
}

// NewReader returns a Reader for the manifest of that name.
func NewReader(name string, r io.Reader) *Reader {
	scanner := yamldoc.NewScanner(name, r, yamldoc.ManifestLimits)
	scanner.SplitList = maySplit
	return &Reader{name: name, scanner: scanner}
}

// Next returns the next document with the markers and comments around it, or the next part of a large list, as a File of its own. It may hold no object.
// The bytes of all Files, put together, are the manifest. Each is valid until the next call; the values of its objects stay valid.
//
// At the end the error is io.EOF. An error that is a *yamldoc.Error is about one document; the next call goes on behind it. Any other is one of reading, and final.
func (r *Reader) Next() (*File, error) {
	part, err := r.next(asItIs)
	if err != nil {
		return nil, err
	}
	return part.Parse()
}

// Part is what the next File is made of.
type Part struct {
	name  string
	chunk yamldoc.Chunk
	file  *File // of a part of a list, which is parsed in the order of the list
}

// Cut returns what Next would, before it is parsed: the parts of a manifest can be parsed side by side. A part stays valid. The part of a large list is an error
// here already where its Parse would be one.
func (r *Reader) Cut() (*Part, error) { return r.next(bytes.Clone) }

// Size returns the length of the text, in bytes.
func (p *Part) Size() int { return len(p.chunk.Text) }

// Parse returns the part as a File. An error is a *yamldoc.Error.
func (p *Part) Parse() (*File, error) {
	if p.file != nil {
		return p.file, nil
	}
	source, err := p.chunk.Parse()
	if err != nil {
		return nil, explain(err, p.chunk.Text, p.chunk.Lines())
	}
	f := &File{name: p.name, data: p.chunk.Text, bom: p.chunk.BOM, before: p.chunk.Lines()}
	if source != nil {
		if err := f.add(source); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func asItIs(text []byte) []byte { return text }

// next returns the next part, whose text is what keep makes of the scanner's.
func (r *Reader) next(keep func(text []byte) []byte) (*Part, error) {
	for {
		chunk, err := r.scan()
		switch {
		case err != nil:
			return nil, err
		case chunk.Part == yamldoc.ListItem && r.list.bad, chunk.Part == yamldoc.ListTail && r.list.bad:
			continue
		case chunk.Part == yamldoc.Whole || chunk.Part == yamldoc.ListItem:
			if r.Wanted != nil && !r.Wanted(chunk.Text) {
				if r.list != nil {
					r.list.items++
				}
				continue
			}
		}
		chunk.Text = keep(chunk.Text)
		part := &Part{name: r.name, chunk: chunk}
		if chunk.Part != yamldoc.Whole {
			part.file, err = r.part(chunk)
		}
		return part, err
	}
}

// scan returns the next chunk. Where a list ends by that, it is judged first.
func (r *Reader) scan() (yamldoc.Chunk, error) {
	next := r.held
	if r.held = nil; next == nil {
		chunk, err := r.scanner.Next()
		next = &scanned{chunk, err}
	}
	if r.list == nil {
		return next.Chunk, next.err
	}
	switch {
	case errors.As(next.err, new(*yamldoc.Error)):
		r.list.bad = true // a part is missing
	case next.err != nil || next.Part == yamldoc.Whole || next.Part == yamldoc.ListHead:
		list := r.list
		r.list = nil
		if err := list.end(); err != nil {
			r.held = next
			return yamldoc.Chunk{}, err
		}
	}
	return next.Chunk, next.err
}
