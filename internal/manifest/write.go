package manifest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

func joinErrors(errs []error) error { return errors.Join(errs...) }

// forEach calls f for 0…n-1 on all processors.
func forEach(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// result is the new text of a document, nil when it stays as it is.
type result struct {
	text []byte
	errs []error
}

// change is an object with the depth below which the editor may make small edits in it; beyond, values are replaced whole.
type change struct {
	object *Object
	depth  int
}

const (
	anyDepth = 1 << 30
	// rebuilt marks a change that only writing the whole document anew could bring in.
	rebuilt = -1
)

// write finds a text that holds the wanted values of all objects of the document, with the smallest edits that parse back to them.
func (d *document) write(data []byte) result {
	var changes []change
	for _, o := range d.objects {
		if o.want != nil {
			changes = append(changes, change{o, anyDepth})
		}
	}
	if len(changes) == 0 {
		return result{}
	}
	w := writer{doc: d, data: data}
	w.add(changes)
	return result{w.text, w.errs}
}

type writer struct {
	doc      *document
	data     []byte
	accepted []change
	text     []byte // with all accepted changes
	errs     []error
}

// add accepts changes, all at once if that works; otherwise it searches for the ones that need coarser edits by halving, so that one exotic
// object in a long list costs little and leaves the edits of the others small.
func (w *writer) add(changes []change) {
	if w.try(changes) {
		return
	}
	if len(changes) > 1 {
		half := len(changes) / 2
		w.add(changes[:half])
		w.add(changes[half:])
		return
	}
	o := changes[0].object
	for depth := changedDepth(o.text, o.want) - 1; depth >= 0; depth-- {
		if w.try([]change{{o, depth}}) {
			return
		}
	}
	if text, ok := w.rebuild(o); ok {
		w.accepted, w.text = append(w.accepted, change{o, rebuilt}), text
		return
	}
	w.errs = append(w.errs, &yamldoc.Error{Pos: o.pos, Msg: fmt.Sprintf(
		"%scannot be written in the notation of this document (anchors, aliases or tags in the way?); it is left unchanged", pathPrefix(o.path))})
}

func pathPrefix(path string) string {
	if path == "" {
		return "the change "
	}
	return "the change of " + path + " "
}

// try edits the document for the accepted changes and these, and accepts them if the new text holds exactly the wanted values.
func (w *writer) try(changes []change) bool {
	all := append(slices.Clip(w.accepted), changes...)
	for _, c := range all {
		if c.depth == rebuilt {
			return w.tryRebuilt(changes)
		}
	}
	e := newEditor(w.doc.source, w.data, all)
	want := w.wanted(all)
	if !e.edit(w.doc.value, want) {
		return false
	}
	text, ok := e.apply()
	if !ok || !holds(text, want) {
		return false
	}
	w.accepted, w.text = all, text
	return true
}

// tryRebuilt adds changes to a document that has been rebuilt for another object: its text is no longer the one that edits refer to.
func (w *writer) tryRebuilt(changes []change) bool {
	if len(changes) > 1 {
		return false
	}
	text, ok := w.rebuild(changes[0].object)
	if ok {
		w.accepted, w.text = append(w.accepted, change{changes[0].object, rebuilt}), text
	}
	return ok
}

// holds reports whether text is one document of that value.
func holds(text []byte, want any) bool {
	docs, err := yamldoc.Parse("", text, yamldoc.ManifestLimits)
	if err != nil || len(docs) != 1 {
		return false
	}
	got, err := docs[0].InexactValue()
	return err == nil && jsonvalue.Equal(dropNulls(got), want)
}

// wanted is the value of the document with these changes.
func (w *writer) wanted(changes []change) any {
	byPath := make(map[string]map[string]any, len(changes))
	for _, c := range changes {
		byPath[c.object.path] = c.object.want
	}
	if item, ok := w.doc.value.([]any); ok {
		return []any{assemble(item[0], w.doc.item, byPath)}
	}
	return assemble(w.doc.value, w.doc.item, byPath)
}

func assemble(v any, path string, byPath map[string]map[string]any) any {
	if want, ok := byPath[path]; ok {
		return want
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	items, ok := m["items"].([]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for k, e := range m {
		out[k] = e
	}
	list := make([]any, len(items))
	for i, e := range items {
		list[i] = assemble(e, fmt.Sprintf("%s[%d]", join(path, "items"), i), byPath)
	}
	out["items"] = list
	return out
}

// changedDepth is the number of levels between an object and the deepest value that differs.
func changedDepth(a, b any) int {
	deepest := 0
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			for k, v := range a {
				if w, ok := b[k]; ok && !jsonvalue.Equal(v, w) {
					deepest = max(deepest, changedDepth(v, w))
				}
			}
			return deepest + 1
		}
	case []any:
		if b, ok := b.([]any); ok {
			for i := range min(len(a), len(b)) {
				if !jsonvalue.Equal(a[i], b[i]) {
					deepest = max(deepest, changedDepth(a[i], b[i]))
				}
			}
			return deepest + 1
		}
	}
	return 0
}
