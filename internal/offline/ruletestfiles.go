package offline

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
	"github.com/rectifier-dev/rectifier/rules/ruletest"
)

// What a test names: rules, CRDs, objects. All that is wrong with them is a
// problem at the place where they are named.

func (b *bench) fail(at ruletest.Ref, format string, args ...any) {
	b.problems = append(b.problems, b.test.RefProblem(at, format, args...))
}

func (b *bench) loadRules() {
	var paths []string
	var sources []rules.Source
	for _, ref := range b.test.Rules {
		name, isBuiltin := strings.CutPrefix(ref.Name, ruletest.Builtin)
		if isBuiltin {
			source, err := builtin.Source(name)
			if err != nil {
				b.fail(ref, "%v", err)
				continue
			}
			sources = append(sources, source)
			continue
		}
		path := b.path(ref)
		files, err := rules.Read([]string{path}, nil)
		switch {
		case err != nil:
			b.unreadable(ref, err)
		case len(files) == 0:
			b.fail(ref, "there is no rule in %s", path)
		default:
			paths = append(paths, path)
		}
	}
	files, err := rules.Read(paths, nil) // once more, all at once: each file counts once
	if err != nil {
		b.fail(b.test.Rules[0], "%v", err)
	}
	set, problems := rules.Load(append(sources, files...)...)
	b.rules = set
	b.problems = append(b.problems, problems...)
	if len(set.All()) == 0 && len(b.problems) == 0 {
		b.fail(b.test.Rules[0], "there is no rule in what spec.rules names")
	}
}

// checkNames reports expectations about rules that do not exist.
func (b *bench) checkNames(refs []ruletest.Ref) {
	var known []string
	for _, r := range b.rules.All() {
		known = append(known, r.Name)
	}
	for _, ref := range refs {
		if !slices.Contains(known, ref.Name) {
			b.fail(ref, "unknown rule %s%s", ref.Name, suggest.DidYouMean(ref.Name, known))
		}
	}
}

func (b *bench) loadCRDs() {
	var all []*manifest.File
	for _, ref := range b.test.CRDs {
		files := b.manifests(ref)
		_, _, found, err := NewCatalog(files...)
		switch {
		case err != nil:
			b.fail(ref, "%v", err)
		case found == 0 && files != nil:
			b.fail(ref, "there is no CustomResourceDefinition in %s", b.path(ref))
		default:
			all = append(all, files...)
		}
	}
	var err error
	if b.catalog, b.types, _, err = NewCatalog(all...); err != nil {
		b.fail(b.test.CRDs[0], "%v", err)
	}
}

func (b *bench) path(ref ruletest.Ref) string {
	if filepath.IsAbs(ref.Name) {
		return ref.Name
	}
	return filepath.Join(b.file.Dir, ref.Name)
}

// unreadable reports a path that cannot be read, with what may be meant.
func (b *bench) unreadable(ref ruletest.Ref, err error) {
	hint := ""
	if errors.Is(err, fs.ErrNotExist) {
		path := b.path(ref)
		var beside []string
		entries, _ := os.ReadDir(filepath.Dir(path)) // without it, there is no hint
		for _, e := range entries {
			beside = append(beside, e.Name())
		}
		hint = suggest.DidYouMean(filepath.Base(path), beside)
	}
	b.fail(ref, "%v%s", err, hint)
}

// manifests reads the manifests at a path; nil if that is a problem.
func (b *bench) manifests(ref ruletest.Ref) []*manifest.File {
	files, err := input.Read([]string{b.path(ref)}, nil, yamldoc.ManifestLimits.MaxBytes)
	if err != nil {
		b.unreadable(ref, err)
		return nil
	}
	out := []*manifest.File{}
	for _, in := range files {
		file, err := manifest.Parse(in.Name, in.Data)
		if err != nil {
			b.fail(ref, "%v", err)
			return nil
		}
		out = append(out, file)
	}
	return out
}

// objects are those that stand in the test or in a file, as a cluster would
// have them: without nulls. None: there is a problem.
func (b *bench) objects(o ruletest.Object) []map[string]any {
	var files []*manifest.File
	if o.Value != nil {
		// As a manifest of its own, so that it is read as one in a file is.
		text, err := json.Marshal(o.Value)
		if err == nil {
			var file *manifest.File
			file, err = manifest.Parse(b.file.Name, text)
			files = append(files, file)
		}
		if err != nil {
			var at *yamldoc.Error
			if errors.As(err, &at) {
				err = errors.New(at.Msg) // its position is in text
			}
			b.problems = append(b.problems, b.test.ObjectProblem(o, "%v", err))
			return nil
		}
	} else if files = b.manifests(o.File); files == nil {
		return nil
	}
	var out []map[string]any
	for _, file := range files {
		for _, object := range file.Objects() {
			out = append(out, object.Value())
		}
	}
	if len(out) == 0 {
		what := "this list"
		if o.Value == nil {
			what = b.path(o.File)
		}
		b.problems = append(b.problems, b.test.ObjectProblem(o, "there is no object in %s", what))
	}
	return out
}

// one is the object of a case; nil if there is a problem.
func (b *bench) one(o ruletest.Object) map[string]any {
	all := b.objects(o)
	if len(all) == 0 {
		return nil
	}
	if o.Name.Name == "" {
		if len(all) > 1 {
			b.problems = append(b.problems, b.test.ObjectProblem(o, "a case is about one object, and these are %d: %s; select one with objectName", len(all), list(all)))
			return nil
		}
		return all[0]
	}
	var fit []map[string]any
	var known []string
	for _, object := range all {
		known = append(known, nameOf(object))
		if slices.Contains(spellings(object), o.Name.Name) {
			fit = append(fit, object)
		}
	}
	switch len(fit) {
	case 0:
		b.fail(o.Name, "there is no object %s in %s%s: there is %s", o.Name.Name, b.path(o.File), suggest.DidYouMean(o.Name.Name, known), list(all))
	case 1:
		return fit[0]
	default:
		b.fail(o.Name, "%s fits several objects: %s; say KIND/NAME or KIND/NAMESPACE/NAME", o.Name.Name, list(fit))
	}
	return nil
}

// spellings are the ways to name an object in a file.
func spellings(object map[string]any) []string {
	name, namespace, kind := nameOf(object), namespaceOf(object), kindOf(object).Kind
	out := []string{name, kind + "/" + name}
	if namespace != "" {
		out = append(out, namespace+"/"+name, kind+"/"+namespace+"/"+name)
	}
	return out
}

// maxListed is how many objects a message names.
const maxListed = 10

func list(objects []map[string]any) string {
	var out []string
	for i, o := range objects {
		if i == maxListed {
			out = append(out, "…")
			break
		}
		out = append(out, describe(o))
	}
	return strings.Join(out, ", ")
}
