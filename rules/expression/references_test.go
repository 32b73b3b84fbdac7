package expression

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReferences(t *testing.T) {
	type refs []Reference
	for _, tc := range []struct {
		name, source string
		names        refs
		unknown      refs
	}{
		{"a path", `object.metadata.name == ''`, refs{{"object", []string{"metadata", "name"}, 0}}, nil},
		{"keys and optionals are part of a path", `object.?metadata["labels"][?'a/b'].orValue('')`, refs{{"object", []string{"metadata", "labels", "a/b"}, 0}}, nil},
		{"has", `!has(oldObject.spec)`, refs{{"oldObject", []string{"spec"}, 5}}, nil},
		{"an index ends the path", `object.l[variables.i].x`, refs{{"object", []string{"l"}, 0}, {"variables", []string{"i"}, 9}}, nil},
		{"bound names", `object.l.all(x, x.y.all(z, z == x && w))`, refs{{"object", []string{"l"}, 0}, {"w", nil, 37}}, nil},
		{"a bound name hides", `object.l.exists(request, request.a) || request.b`, refs{{"object", []string{"l"}, 0}, {"request", []string{"b"}, 39}}, nil},
		{"the range is not in the scope", `x.exists(x, x > 0)`, refs{{"x", nil, 0}}, nil},
		{"two variables", `object.m.transformMap(k, v, k + v + u)`, refs{{"object", []string{"m"}, 0}, {"u", nil, 36}}, nil},
		{"an optional binds", `object.?a.optMap(x, x + y)`, refs{{"object", []string{"a"}, 0}, {"y", nil, 24}}, nil},
		{"types", `type(a) == int || type(a) == google.protobuf.Timestamp`, refs{{"a", nil, 5}, {"a", nil, 23}}, nil},
		{"namespaces of functions", `sets.contains(a, [1]) && optional.none().hasValue() && jsonpatch.escapeKey('a') == ''`, refs{{"a", nil, 14}}, nil},
		{"objects and lists", `Object{a: Object.a{b: x}, l: [{y: z}]}`, refs{{"x", nil, 22}, {"y", nil, 31}, {"z", nil, 34}}, nil},
		{"unknown functions", `f(a.g( 1 ), 'f(') + resource.Get('x')`, refs{{"a", nil, 2}, {"resource", nil, 20}}, refs{{"f", nil, 0}, {"g", nil, 4}, {"Get", nil, 29}}},
		{"offsets are in bytes", "'ä€' ==\n\tu", refs{{"u", nil, 12}}, nil},
		{"comments and strings", "// request\n'oldObject' == \"\"\"params\"\"\"", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, issues := FindReferences(tc.source)
			if issues != nil {
				t.Fatal(issues[0])
			}
			if diff := cmp.Diff(References{Names: tc.names, Unknown: tc.unknown}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, ref := range append(got.Names, got.Unknown...) {
				if !strings.HasPrefix(tc.source[ref.Offset:], ref.Name) {
					t.Errorf("%s is not at %d", ref.Name, ref.Offset)
				}
			}
		})
	}
}

func TestReferencesOfWhatDoesNotParse(t *testing.T) {
	for _, source := range []string{"", "  ", "object.", "has(object)"} {
		got, issues := FindReferences(source)
		if len(issues) == 0 || got.Names != nil {
			t.Errorf("%q: %v, %v", source, got, issues)
		}
	}
}

func TestWrites(t *testing.T) {
	for source, want := range map[string][]string{
		`Object{}`: {""},
		`Object{metadata: Object.metadata{labels: Object.metadata.labels{a: "1"}}, spec: Object.spec{replicas: 3, l: [Object.spec.l{x: 1}]}}`: {
			"metadata.labels.a", "spec.l", "spec.replicas"},
		`Object{metadata: Object.metadata{labels: {"a": "1"}}}`:                                {"metadata.labels"},
		`object.x ? Object{a: 1} : Object{?b: object.?b}`:                                      {"a", "b"},
		`[JSONPatch{op: "add", path: "/a/b~1c/0/d", value: 1}]`:                                {"a.b/c"},
		`[JSONPatch{op: "move", path: "/a/-", from: "/b/x"}]`:                                  {"a", "b.x"},
		`object.l.map(i, JSONPatch{op: "add", path: "/spec/l/" + string(i) + "/x", value: 1})`: {"spec.l"},
		`[JSONPatch{op: "add", path: "/spec/l" + object.x, value: 1}]`:                         {"spec"},
		`[JSONPatch{op: "add", path: object.x, value: 1}]`:                                     {""},
		`variables.patch`: {""},
		`not( an`:         nil,
	} {
		var got []string
		for _, path := range Writes(source) {
			got = append(got, strings.Join(path, "."))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}
