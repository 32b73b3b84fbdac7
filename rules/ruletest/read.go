package ruletest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// MaxFileBytes is the largest test file that is read.
const MaxFileBytes = 1 << 20

// limits: objects in a test file may be nested as deep as in a manifest.
var limits = yamldoc.Limits{MaxBytes: MaxFileBytes, MaxDepth: yamldoc.ManifestLimits.MaxDepth}

// File is a file that holds tests, or should.
type File struct {
	Name string // as shown in messages
	// Dir is the folder that paths in its tests are relative to.
	Dir   string
	Tests []*Test
	// Problems keep out the tests that they are about.
	Problems []*rules.Problem
}

// Read reads the test files that PATH arguments name, see package input. In
// folders, files without a RuleTest are passed over, and so are other documents
// beside one; a file that was named must hold one. An error means that a path
// cannot be read at all.
func Read(paths []string, stdin io.Reader) ([]*File, error) {
	inputs, err := input.Read(paths, stdin, MaxFileBytes)
	if err != nil {
		return nil, err
	}
	var out []*File
	for _, in := range inputs {
		if f := parse(in); len(f.Tests) > 0 || len(f.Problems) > 0 {
			out = append(out, f)
		}
	}
	return out, nil
}

// parse reads the tests of a file.
func parse(in input.File) *File {
	f := &File{Name: in.Name, Dir: "."}
	if in.Name != input.Stdin {
		f.Dir = filepath.Dir(in.Name)
	}
	if in.Listed && !bytes.Contains(in.Data, []byte(domain)) {
		return f
	}
	docs, err := yamldoc.Parse(in.Name, in.Data, limits)
	if err != nil {
		// What cannot be read may be anything, a template of manifests for one.
		if !in.Listed || bytes.Contains(in.Data, []byte(Kind)) {
			f.Problems = append(f.Problems, unreadable(in, err))
		}
		return f
	}
	names := map[string]yamldoc.Position{}
	for _, doc := range docs {
		f.document(doc, in.Listed, names)
	}
	if !in.Listed && len(f.Tests) == 0 && len(f.Problems) == 0 {
		f.Problems = append(f.Problems, &rules.Problem{Pos: yamldoc.Position{File: in.Name, Line: 1, Column: 1},
			Msg: fmt.Sprintf("there is no test in this file: a test has apiVersion %s and kind %s", rules.APIVersion, Kind)})
	}
	return f
}

// domain is the group of our formats, with the slash of an apiVersion.
const domain = "rectifier.dev/"

// unreadable turns an error of the YAML parser into a problem of the file.
func unreadable(in input.File, err error) *rules.Problem {
	p := &rules.Problem{Pos: yamldoc.Position{File: in.Name, Line: 1, Column: 1}, Msg: err.Error()}
	var at *yamldoc.Error
	if errors.As(err, &at) {
		p.Pos, p.Msg = at.Pos, at.Msg
	}
	if lines := strings.Split(string(in.Data), "\n"); p.Pos.Line >= 1 && p.Pos.Line <= len(lines) {
		p.Line = strings.TrimSuffix(lines[p.Pos.Line-1], "\r")
	}
	return p
}

// document reads a document of a file, if it is a test.
func (f *File) document(doc *yamldoc.Document, listed bool, names map[string]yamldoc.Position) {
	d := &decoder{doc: doc}
	defer func() { f.Problems = append(f.Problems, d.problems...) }()
	version, kind := scalar(doc.Root, "apiVersion"), scalar(doc.Root, "kind")
	switch {
	case version == rules.APIVersion && kind == Kind:
	case kind == Kind && strings.HasPrefix(version, domain), kind == Kind && !listed:
		d.fail(doc.Root, "a %s has apiVersion %s, this has %s", Kind, rules.APIVersion, orNone(version))
		return
	case version == rules.APIVersion && !slices.Contains(kinds, kind):
		d.fail(doc.Root, "there is no kind %s of %s%s", orNone(kind), rules.APIVersion, suggest.DidYouMean(kind, kinds))
		return
	default:
		return // rules and manifests may stand beside tests
	}
	test := d.test(doc.Root)
	if test == nil {
		return
	}
	if other, again := names[test.Name]; again {
		d.problems = append(d.problems, &rules.Problem{Pos: test.Pos, Line: doc.Line(test.Pos.Line),
			Msg: fmt.Sprintf("there is another test of this name at %s", other)})
		return
	}
	names[test.Name] = test.Pos
	f.Tests = append(f.Tests, test)
}

// kinds are those of our formats.
var kinds = []string{rules.Kind, rules.Kind + "List", Kind}

func scalar(n *yaml.Node, key string) string {
	if _, v := yamldoc.Field(n, key); v != nil && v.Kind == yaml.ScalarNode && !strictyaml.IsNull(v) {
		return v.Value
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
