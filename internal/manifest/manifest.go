package manifest

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

var utf8BOM = []byte("\xef\xbb\xbf")

// File is a manifest: a sequence of documents, each holding an object or a list of objects.
type File struct {
	name      string
	data      []byte // less a byte-order mark
	bom       bool
	before    int // lines of the manifest before data
	documents []*document
	objects   []*Object
	warnings  []*yamldoc.Error
}

// document is one document of a file.
type document struct {
	source  *yamldoc.Document
	value   any    // of the whole document, nulls dropped
	item    string // the path of the item of a list that the document is; "" for all others
	objects []*Object
}

// Object is one Kubernetes object of a file.
type Object struct {
	doc     *document
	node    *yaml.Node // the mapping, aliases followed
	path    string
	pos     yamldoc.Position
	text    map[string]any // what the text holds, nulls dropped
	value   map[string]any // the same with what the enclosing list implies
	implied map[string]any
	want    map[string]any // nil: unchanged
}

// Parse reads a manifest: YAML or JSON, any number of documents, empty ones skipped. Every document must be an object, or a list kind whose items are objects or
// lists again. What is in a file named .json must be JSON. The error is a *yamldoc.Error. data must not be modified afterwards.
//
// For manifests that may be large there is Reader, which reads them document by document.
func Parse(name string, data []byte) (*File, error) {
	text := bytes.TrimPrefix(data, utf8BOM)
	docs, err := yamldoc.Parse(name, data, yamldoc.ManifestLimits)
	if err != nil {
		return nil, explain(err, text, 0)
	}
	f := &File{name: name, data: text, bom: len(text) < len(data)}
	for _, source := range docs {
		if err := f.add(source); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// add adds a document.
func (f *File) add(source *yamldoc.Document) error {
	if err := mustBeJSON(f.name, f.data, source); err != nil {
		return explain(err, f.data, f.before)
	}
	d, err := f.document(source)
	if err != nil || d.value == nil { // "null" is an empty document to kubectl too
		return err
	}
	c := collector{file: f, doc: d}
	return c.document(source.Root, d.value, "", nil)
}

// addItem adds an item of a list: in YAML it is the only element of a sequence, in JSON it stands for itself.
func (f *File) addItem(source *yamldoc.Document, path string, implied map[string]any) error {
	d, err := f.document(source)
	if err != nil {
		return err
	}
	d.item = path
	c := collector{file: f, doc: d}
	if items, ok := d.value.([]any); ok {
		return c.document(source.Root.Content[0], items[0], path, implied)
	}
	return c.document(source.Root, d.value, path, implied)
}

func (f *File) document(source *yamldoc.Document) (*document, error) {
	value, err := source.InexactValue()
	if err != nil {
		return nil, err
	}
	for _, k := range source.MisreadKeys() {
		if name, err := yamldoc.KeyString(k); err == nil {
			f.warn(source.Pos(k), "YAML 1.1 reads the key %s as %s, and so does kubectl: quote it if it is meant as a string", k.Value, name)
		}
	}
	return &document{source: source, value: dropNulls(value)}, nil
}

func (f *File) warn(pos yamldoc.Position, format string, args ...any) {
	f.warnings = append(f.warnings, &yamldoc.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// Objects returns the objects in the order of the file. The slice belongs to the File.
func (f *File) Objects() []*Object { return f.objects }

// Changed reports whether Update has recorded content that differs from the text.
func (f *File) Changed() bool { return slices.ContainsFunc(f.objects, (*Object).Changed) }

// Name returns the name given to Parse.
func (f *File) Name() string { return f.name }

// Value returns the object as the cluster would have it: entries that are null in the text are absent, and items of a typed list carry
// the apiVersion and kind that the list implies. The map is shared and read-only; Update does not change it.
func (o *Object) Value() map[string]any { return o.value }

// Position returns where the object starts.
func (o *Object) Position() yamldoc.Position { return o.pos }

// Path returns the place of the object within its document, as in "items[3]"; "" when the document is the object.
func (o *Object) Path() string { return o.path }

// Changed reports whether Update has recorded content that differs from the text.
func (o *Object) Changed() bool { return o.want != nil }

// Update records new content for the object. Null entries count as absent. The result is copied. It fails when result holds what a manifest cannot:
// other types than those of decoded JSON, NaN or infinity. Updating with the old value takes the change back.
func (o *Object) Update(result map[string]any) error {
	v, err := normalize(result)
	if err != nil {
		return fmt.Errorf("update %s: %w", o.describe(), err)
	}
	want, ok := v.(map[string]any)
	if !ok || want == nil {
		want = map[string]any{}
	}
	for k, implied := range o.implied {
		if jsonvalue.Equal(want[k], implied) {
			delete(want, k)
		}
	}
	o.want = want
	if jsonvalue.Equal(want, o.text) {
		o.want = nil
	}
	return nil
}

func (o *Object) describe() string {
	if o.path == "" {
		return o.pos.String()
	}
	return o.pos.String() + " (" + o.path + ")"
}

// Bytes returns the text of the file with the recorded changes. Documents without changes are byte for byte as they were. If a change cannot
// be brought into the text, its object is left as it was and the error, a join of *yamldoc.Error, says which; the bytes are valid in that case too.
//
// The bytes must not be modified.
func (f *File) Bytes() ([]byte, error) {
	if !f.bom && !f.Changed() {
		return f.data, nil
	}
	results := make([]result, len(f.documents))
	forEach(len(f.documents), func(i int) {
		results[i] = f.documents[i].write(f.data)
	})
	var out bytes.Buffer
	out.Grow(len(f.data) + len(f.data)/16)
	if f.bom {
		out.Write(utf8BOM)
	}
	at := 0
	var errs []error
	for i, d := range f.documents {
		start, end := d.source.Span()
		if results[i].text != nil {
			out.Write(f.data[at:start])
			out.Write(results[i].text)
			at = end
		}
		errs = append(errs, results[i].errs...)
	}
	out.Write(f.data[at:])
	return out.Bytes(), joinErrors(errs)
}

// Warnings are about what can be read but is hardly meant so, in the order of the file.
func (f *File) Warnings() []*yamldoc.Error { return f.warnings }
