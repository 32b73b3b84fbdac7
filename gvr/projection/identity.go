package projection

import (
	"bytes"
	"sync"
)

// identity is what the scanner finds of who an object is. All of it is ASCII
// without escapes, and nothing but namespace, uid and resourceVersion may be absent.
// It is part of the scanner's input.
type identity struct {
	apiVersion, kind     []byte
	name, namespace      []byte
	uid, resourceVersion []byte
	hasMetadata          bool
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// A scanner whose text is longer is not used again: it would stay large for ever.
const longText = 1 << 20

func newScanner(in []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.in, s.out = in, s.out[:0]
	return s
}

func (s *scanner) free() {
	s.in, s.metadata, s.id = nil, nil, identity{}
	if cap(s.out) <= longText {
		scanners.Put(s)
	}
}

// scanObject writes what is kept of the object at i, besides its identity, and
// returns the index behind it.
func (p *Projector) scanObject(s *scanner, i int) (id identity, end int) {
	if i >= len(s.in) || s.in[i] != '{' {
		return id, unusual
	}
	s.out = append(s.out, '{')
	start := len(s.out)
	i, done := s.open(i, '}')
	for !done {
		var k key
		if k, i = s.member(i); i < 0 || !k.plain {
			return id, unusual
		}
		switch {
		case string(k.name) == "apiVersion":
			i = s.identity(&id.apiVersion, i)
		case string(k.name) == "kind":
			i = s.identity(&id.kind, i)
		case looksLikeType(k.name):
			return id, unusual
		case string(k.name) == "metadata":
			i = p.scanMetadata(s, &id, start, i)
		default:
			i = s.field(p.plan, k, start, i, 1)
		}
		i, done = s.next(i, '}')
	}
	s.out = append(s.out, '}')
	return id, i
}

// looksLikeType reports whether client-go's decoder takes a key for apiVersion or
// kind when it looks for the type of an object: there it ignores case.
func looksLikeType(name []byte) bool {
	switch len(name) {
	case len("kind"):
		return bytes.EqualFold(name, []byte("kind"))
	case len("apiVersion"):
		return bytes.EqualFold(name, []byte("apiVersion"))
	}
	return false
}

// scanMetadata is scanObject for the metadata. Metadata of which nothing is kept but
// the identity is not written.
func (p *Projector) scanMetadata(s *scanner, id *identity, start, i int) int {
	if id.hasMetadata || i >= len(s.in) || s.in[i] != '{' {
		return unusual
	}
	id.hasMetadata = true
	undo := len(s.out)
	if undo > start {
		s.out = append(s.out, ',')
	}
	s.out = append(s.out, `"metadata":{`...)
	first := len(s.out)
	i, done := s.open(i, '}')
	for !done {
		var k key
		if k, i = s.member(i); i < 0 || !k.plain {
			return unusual
		}
		switch string(k.name) {
		case "name":
			i = s.identity(&id.name, i)
		case "namespace":
			i = s.identity(&id.namespace, i)
		case "uid":
			i = s.identity(&id.uid, i)
		case "resourceVersion":
			i = s.identity(&id.resourceVersion, i)
		case "managedFields":
			if !p.fields.ManagedFields {
				i = skip(s.in, i)
				break
			}
			i = s.field(p.metadata, k, first, i, 2)
		default:
			i = s.field(p.metadata, k, first, i, 2)
		}
		i, done = s.next(i, '}')
	}
	if len(id.name) == 0 {
		return unusual
	}
	if len(s.out) == first {
		s.out = s.out[:undo]
		return i
	}
	s.out = append(s.out, '}')
	return i
}

// identity reads a string into a field that is still empty.
func (s *scanner) identity(field *[]byte, i int) int {
	if len(*field) != 0 || i >= len(s.in) || s.in[i] != '"' {
		return unusual
	}
	end, plain := scanString(s.in, i+1)
	if end < 0 || !plain || end == i+2 {
		return unusual
	}
	*field = s.in[i+1 : end-1]
	return end
}
