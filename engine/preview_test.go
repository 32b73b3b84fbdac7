package engine

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules"
)

// preview returns what an engine of the administrator would do, an object a
// line, and the error.
func (f *fixture) preview(opts PreviewOptions, wrap func(http.RoundTripper) http.RoundTripper, ruleYAML ...string) (out []string, err error) {
	f.Helper()
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		f.Fatal(err)
	}
	if wrap != nil {
		config.Wrap(wrap)
	}
	e, err := New(f.options(config, Options{}, ruleYAML...))
	if err != nil {
		f.Fatal(err)
	}
	err = e.Preview(f.Context(), opts, func(p Preview) {
		if p.Object.GetNamespace() != f.ns {
			return // of other tests
		}
		line := p.Object.GetKind() + " " + p.Object.GetName() + ":"
		for _, v := range p.Result.Verdicts {
			if v.Outcome != rules.Skip {
				line += fmt.Sprintf(" %s %s", v.Rule.Name, v.Outcome)
			}
		}
		if p.Unknown != "" {
			line += " " + p.Unknown
		}
		out = append(out, line)
	})
	return out, err
}

const chainRules = `
resource: {version: v1, resource: configmaps}
condition: "!has(object.data.b)"
patch: {merge: {data: {b: x}}}`

func TestPreviewShowsTheChainAndWritesNothing(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"b", "a", "right"} {
		data := "{a: x}"
		if name == "right" {
			data = "{b: x, c: x}"
		}
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: %s}`, name, data)
	}
	got, err := f.preview(PreviewOptions{}, nil, rule("one", chainRules), rule("two", `
resource: {version: v1, resource: configmaps}
condition: has(object.data.b) && !has(object.data.c)
patch: {merge: {data: {c: x}}}`))
	want := []string{"ConfigMap a: one Patch two Patch", "ConfigMap b: one Patch two Patch", "ConfigMap right: one Pass two Pass"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, all := f.writes("configmaps"); all != 0 {
		t.Errorf("%d requests", all)
	}
}

// failing answers requests about a resource with an error of the server.
type failing struct {
	next     http.RoundTripper
	resource string
}

func (f failing) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/"+f.resource) {
		return nil, errors.New("connection refused")
	}
	return f.next.RoundTrip(req)
}

// One resource that cannot be read keeps nobody from seeing the others.
func TestPreviewOfWhatCanBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`)
	got, err := f.preview(PreviewOptions{}, func(next http.RoundTripper) http.RoundTripper { return failing{next, "services"} },
		rule("one", "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {b: x}}}"),
		rule("services", "resource: {version: v1, resource: services}\npatch: {merge: {metadata: {labels: {a: b}}}}"))
	if diff := cmp.Diff([]string{"ConfigMap a: one Patch", "ConfigMap b: one Patch"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "v1/services: list services: connection refused") {
		t.Errorf("the error is: %v", err)
	}
}
