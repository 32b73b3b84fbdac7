package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rectifier-dev/rectifier/internal/gallery"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

// example is a folder of examples: its rules, and a Fixer over all that is
// beside them.
type example struct {
	rules   *rules.Set
	objects []map[string]any
	fixer   *offline.Fixer
}

func readExample(t *testing.T, folder string) example {
	t.Helper()
	var files []*manifest.File
	for _, name := range []string{"before.yaml", "after.yaml", "objects.yaml", "crd.yaml"} {
		path := filepath.Join(folder, name)
		if !exists(path) {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := manifest.Parse(path, data)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var sources []rules.Source
	if path := filepath.Join(folder, "rule.yaml"); exists(path) {
		read, err := rules.Read([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sources = read
	} else {
		source, err := builtin.Source(filepath.Base(folder))
		if err != nil {
			t.Fatal(err)
		}
		sources = []rules.Source{source}
	}
	e := example{}
	set, problems := rules.Load(sources...)
	for _, p := range problems {
		t.Fatal(p.Detail())
	}
	e.rules = set
	catalog, types, _, err := offline.NewCatalog(files...)
	if err != nil {
		t.Fatal(err)
	}
	e.fixer = &offline.Fixer{Rules: set, Catalog: catalog, Namespace: "default", World: offline.NewWorld(catalog, "default"), Types: types, Now: time.Now()}
	if path := filepath.Join(folder, "now"); exists(path) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if e.fixer.Now, err = time.Parse(time.RFC3339, strings.TrimSpace(string(data))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		if filepath.Base(file.Name()) != "after.yaml" {
			e.fixer.World.Add(file)
		}
		for _, o := range file.Objects() {
			e.objects = append(e.objects, o.Value())
		}
	}
	return e
}

// decided is what an evaluation decided, without the traces.
func decided(e offline.Evaluation, ok bool) map[string]any {
	if !ok {
		return nil
	}
	var verdicts, requests []string
	for _, v := range e.Verdicts {
		verdicts = append(verdicts, fmt.Sprintf("%s %s %s %v %v %v", v.Rule.Name, v.Outcome, v.Reason, v.OptedOut, v.Err, v.Event))
	}
	for i := range e.Requests {
		body, err := e.Requests[i].Body("uid", "1")
		requests = append(requests, fmt.Sprintf("%s %s %s %v", e.Requests[i].Subresource, e.Requests[i].Type(), body, err))
	}
	return map[string]any{"verdicts": verdicts, "requests": requests, "object": e.Result.Object, "recheck": e.Recheck.String()}
}

// disturb changes some of the values of an object.
func disturb(r *rand.Rand, v any) any {
	if r.IntN(12) == 0 {
		return []any{nil, "", "x", int64(0), int64(7), 0.5, true, map[string]any{}, []any{}, []any{"x"}}[r.IntN(10)]
	}
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if r.IntN(15) == 0 {
				delete(v, key)
				continue
			}
			v[key] = disturb(r, v[key])
		}
	case []any:
		for i := range v {
			v[i] = disturb(r, v[i])
		}
	}
	return v
}

// A trace changes nothing of what is decided: for all examples, before and
// after, and with all sorts of things wrong in them. And whatever comes, it can
// be printed.
func TestExplainDecidesAsFixDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	outcomes := map[rules.Outcome]int{}
	for _, x := range gallery.Read(t, examplesFolder) {
		folder := x.Dir
		e := readExample(t, folder)
		tracing := *e.fixer
		tracing.Trace = true
		var objects []map[string]any
		for _, o := range e.objects {
			objects = append(objects, o)
			for range 4 {
				other := runtime.DeepCopyJSON(o)
				for _, part := range []string{"metadata", "spec", "data", "status"} {
					if v, ok := other[part]; ok {
						if changed := disturb(r, v); part != "metadata" || changed != nil {
							other[part] = changed
						}
					}
				}
				objects = append(objects, other)
			}
		}
		for _, o := range objects {
			before := runtime.DeepCopyJSON(o)
			plain, ok := e.fixer.Evaluate(o)
			traced, tracedOK := tracing.Evaluate(o)
			if diff := cmp.Diff(decided(plain, ok), decided(traced, tracedOK)); diff != "" {
				t.Errorf("%s: %v\n(-fix +explain)\n%s", folder, o, diff)
			}
			if diff := cmp.Diff(before, o); diff != "" {
				t.Errorf("%s: the object was modified:\n%s", folder, diff)
			}
			report := explainReport{Objects: []explainedObject{{objectRef: refOf(o)}}}
			for _, v := range traced.Verdicts {
				outcomes[v.Outcome]++
				report.Objects[0].Rules = append(report.Objects[0].Rules, writtenRules{}.rule(v, "", whatToGive))
			}
			if _, err := json.Marshal(report); err != nil {
				t.Errorf("%s: %v", folder, err)
			}
			if err := printExplanations(&strings.Builder{}, report); err != nil {
				t.Errorf("%s: %v", folder, err)
			}
		}
	}
	for _, o := range []rules.Outcome{rules.Patch, rules.Pass, rules.Error} {
		if outcomes[o] < 20 {
			t.Errorf("%d times %s: this tests too little", outcomes[o], o)
		}
	}
}

// Each example can be explained, by the flags that fix takes, and always alike.
func TestExplainExamples(t *testing.T) {
	for _, x := range gallery.Read(t, examplesFolder) {
		e := &offlineExample{T: t, dir: x.Dir, name: x.Name}
		args := e.args("explain", "-f", x.Dir+"/before.yaml")
		code, out, told := invoke(t, args...)
		if code != exitFine || told != "" || !strings.Contains(out, "   Patch\n") {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, told)
		}
		code, again, _ := invoke(t, append(args, "-o", "json")...)
		if _, other, _ := invoke(t, append(args, "-o", "json")...); code != exitFine || again != other {
			t.Errorf("%q -o json: exit code %d, or two outputs that differ", args, code)
		}
	}
}
