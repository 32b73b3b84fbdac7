package offline

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// interest is what rules may ask a World for.
type interest struct {
	resources  map[schema.GroupVersionResource]bool
	namespaces bool
	// words are the kinds of these, one of which the text of such an object holds. Nil: not all kinds are known.
	words [][]byte
}

// Only makes a World keep nothing but what these rules can ask for: the resources that they look up, and Namespaces. It is called before anything
// is added.
func (w *World) Only(set *rules.Set) {
	of := &interest{resources: map[schema.GroupVersionResource]bool{}}
	known := true
	for _, l := range set.Lookups() {
		of.resources[l.Resource] = true
		kinds := w.catalog.Kinds(l.Resource)
		known = known && len(kinds) > 0
		for _, kind := range kinds {
			of.words = append(of.words, []byte(kind))
		}
	}
	for _, r := range set.All() {
		of.namespaces = of.namespaces || r.NeedsNamespace || r.OptOut
	}
	if of.namespaces {
		of.words = append(of.words, []byte("Namespace"))
	}
	if !known {
		of.words = nil
	}
	w.of = of
}

// Keeps reports whether the World keeps anything that it is given. Only with Only it may not.
func (w *World) Keeps() bool { return w.of == nil || len(w.of.resources) > 0 || w.of.namespaces }

// Learn adds the objects of a manifest, reading it document by document. Documents that cannot be read are passed over: whoever
// uses the manifest for more than that finds out. Those that the World would not keep are not even parsed.
func (w *World) Learn(name string, r io.Reader) error {
	reader := manifest.NewReader(name, r)
	reader.Wanted = w.mayKeep
	for {
		file, err := reader.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, new(*yamldoc.Error)):
			continue
		case err != nil:
			return err
		}
		w.Add(file)
	}
}

// mayKeep reports whether the text of a document may hold an object that the World keeps. It errs on the safe side.
func (w *World) mayKeep(text []byte) bool {
	if w.of == nil || w.of.words == nil {
		return w.Keeps()
	}
	for _, word := range w.of.words {
		if bytes.Contains(text, word) {
			return true
		}
	}
	return spelledByEscapes(text)
}

// spelledByEscapes reports whether a double-quoted string in the text may hold a word that the text does not: by escaped letters, or an escaped
// line break between them.
func spelledByEscapes(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return false
		}
		digits := 0
		switch text[i+1] {
		case '\r', '\n':
			return true
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		}
		text = text[i+2:]
		if digits > 0 && len(text) >= digits {
			code, err := strconv.ParseUint(string(text[:digits]), 16, 32)
			if err == nil && (code >= 'a' && code <= 'z' || code >= 'A' && code <= 'Z' || code >= '0' && code <= '9') {
				return true
			}
		}
	}
}
