package rules

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world answers lookups by comparing every object with the query, without the
// keys of an index.
type world struct {
	objects []map[string]any // of whatever is looked up
	err     error
	queries []Query
}

func (w *world) Find(q Query) ([]map[string]any, error) {
	w.queries = append(w.queries, q)
	if w.err != nil {
		return nil, w.err
	}
	var out []map[string]any
	for _, o := range w.objects {
		if fits(&q, o) && q.Selects(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b map[string]any) int { return strings.Compare(whereIs(a), whereIs(b)) })
	return out, nil
}

// fits is what a query means, but for its selector.
func fits(q *Query, o map[string]any) bool {
	if namespace, _ := fieldAt(o, []string{"metadata", "namespace"}).(string); q.Namespaced && namespace != q.Namespace {
		return false
	}
	for i, path := range q.Where {
		if !slices.Contains(q.Values[i], scalarText(fieldAt(o, strings.Split(path, ".")))) {
			return false
		}
	}
	return true
}

func whereIs(o map[string]any) string {
	namespace, _ := fieldAt(o, []string{"metadata", "namespace"}).(string)
	name, _ := fieldAt(o, []string{"metadata", "name"}).(string)
	return namespace + "/" + name
}

// items are several objects in one YAML list.
func items(t testing.TB, text string) []map[string]any {
	t.Helper()
	list := object(t, "{items: ["+text+"]}")["items"].([]any)
	out := make([]map[string]any, len(list))
	for i, o := range list {
		out[i] = o.(map[string]any)
	}
	return out
}

func seeing(w *world) func(*Input) { return func(in *Input) { in.Lookups = w } }

// finds is a rule that writes down what a lookup finds.
func finds(lookup string) string {
	return rule("r", "lookups: [{name: found, resource: {version: v1, resource: services}"+lookup+"}]\n\t"+
		`patch: {merge: {spec: {out: "${lookups.found.map(o, o.metadata.?namespace.orValue('') + '/' + o.metadata.name)}"}}}`)
}

const services = `
	{metadata: {name: web, namespace: b, labels: {app: web, tier: front}}, spec: {port: 80, open: true, target: {name: web}}},
	{metadata: {name: db, namespace: b, labels: {app: db}}, spec: {port: "80", target: {name: db}}},
	{metadata: {name: web, namespace: a, labels: {app: web}}, spec: {port: 8080.5, target: {name: web}}},
	{metadata: {name: global}, spec: {target: [web]}}`

func TestLookups(t *testing.T) {
	const web = `{metadata: {name: web, namespace: b}, spec: {want: web, port: 80, both: [web, db, web], none: [], selector: {matchLabels: {app: web}}, exprs: [{key: app, operator: In, values: [db]}], any: {}, nil: null}}`
	for _, tc := range []struct {
		name, lookup string
		want         string
	}{
		{"everything, sorted by namespace and name", ``, "/global a/web b/db b/web"},
		{"one value", `, where: {spec.target.name: web}`, "a/web b/web"},
		{"a computed value", `, where: {spec.target.name: "${object.metadata.name}"}`, "a/web b/web"},
		{"text with a template in it", `, where: {spec.target.name: "w${'e'}b"}`, "a/web b/web"},
		{"a number is its text", `, where: {spec.port: "${object.spec.port}"}`, "b/db b/web"},
		{"a constant number", `, where: {spec.port: 80}`, "b/db b/web"},
		{"a fraction", `, where: {spec.port: 8080.5}`, "a/web"},
		{"a bool", `, where: {spec.open: true}`, "b/web"},
		{"metadata.name is a path", `, where: {metadata.name: web}`, "a/web b/web"},
		{"what is absent, or no scalar, is the empty text", `, where: {spec.target.name: ""}`, "/global"},
		{"two paths", `, where: {metadata.name: web, spec.port: 80}`, "b/web"},
		{"a list is any of them", `, where: {metadata.name: [global, db]}`, "/global b/db"},
		{"a computed list, with duplicates", `, where: {metadata.name: "${object.spec.both}"}`, "a/web b/db b/web"},
		{"a list of templates", `, where: {metadata.name: ["${object.spec.want}", global]}`, "/global a/web b/web"},
		{"absent elements of a list", `, where: {metadata.name: ["${object.spec.?gone}", db]}`, "b/db"},
		{"only absent elements", `, where: {metadata.name: ["${object.spec.?gone}"]}`, ""},
		{"an empty list", `, where: {metadata.name: "${object.spec.none}"}`, ""},
		{"an absent value", `, where: {metadata.name: "${object.spec.?gone}"}`, ""},
		{"an absent value beside another", `, where: {spec.port: 80, metadata.name: "${object.spec.?gone}"}`, ""},
		{"two lists are all combinations", `, where: {metadata.name: [web, db], spec.port: [80, "x"]}`, "b/db b/web"},
		{"a constant namespace", `, namespace: b`, "b/db b/web"},
		{"a computed namespace", `, namespace: "${object.metadata.namespace}"`, "b/db b/web"},
		{"an absent namespace", `, namespace: "${object.metadata.?gone}"`, ""},
		{"an empty namespace is that of cluster-scoped objects", `, namespace: "${''}"`, "/global"},
		{"a namespace and a value", `, namespace: a, where: {metadata.name: web}`, "a/web"},
		{"labels", `, labelSelector: {matchLabels: {app: web}}`, "a/web b/web"},
		{"a computed label", `, labelSelector: {matchLabels: {app: "${object.spec.want}", tier: front}}`, "b/web"},
		{"a computed label key", `, labelSelector: {matchLabels: {"${'a'}pp": web}}`, "a/web b/web"},
		{"computed matchLabels", `, labelSelector: {matchLabels: "${object.spec.selector.matchLabels}"}`, "a/web b/web"},
		{"a computed selector", `, labelSelector: "${object.spec.selector}"`, "a/web b/web"},
		{"matchExpressions", `, labelSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}`, "/global a/web b/db"},
		{"computed matchExpressions", `, labelSelector: {matchExpressions: "${object.spec.exprs}"}`, "b/db"},
		{"a computed value in matchExpressions", `, labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: ["${object.spec.want}"]}]}`, "/global b/db"},
		{"an empty selector", `, labelSelector: {}`, "/global a/web b/db b/web"},
		{"a computed empty selector", `, labelSelector: "${object.spec.any}"`, "/global a/web b/db b/web"},
		{"a computed null selects nothing, as in Kubernetes", `, labelSelector: "${object.spec.nil}"`, ""},
		{"an absent selector", `, labelSelector: "${object.spec.?gone}"`, ""},
		{"absent matchLabels", `, labelSelector: {matchLabels: "${object.spec.?gone}"}`, ""},
		{"an absent label does not widen the selection", `, labelSelector: {matchLabels: {app: "${object.spec.?gone}"}}`, ""},
		{"an absent value in matchExpressions does neither", `, labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: ["${object.spec.?gone}", db]}]}`, ""},
		{"all at once", `, namespace: b, where: {spec.port: 80}, labelSelector: {matchLabels: {tier: front}}`, "b/web"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, finds(tc.lookup)), web, seeing(&world{objects: items(t, services)}))
			var got []string
			out, ok := fieldAt(res.Object, []string{"spec", "out"}).([]any)
			if !ok {
				t.Fatalf("%v", outcomes(res))
			}
			for _, name := range out {
				got = append(got, name.(string))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupsThatFail(t *testing.T) {
	for _, tc := range []struct{ name, lookup, want string }{
		{"a mapping", `, where: {spec.a: "${object.spec}"}`, "where spec.a: must be a string, number or bool, or a list of them, not a mapping"},
		{"null", `, where: {spec.a: "${object.spec.nil}"}`, "where spec.a: must be a string, number or bool, or a list of them, not null"},
		{"a list in a list", `, where: {spec.a: "${[[1]]}"}`, "where spec.a: must be a string, number or bool, or a list of them, not a list"},
		{"a missing key", `, where: {spec.a: "${object.spec.gone}"}`, "where spec.a: no such key: gone"},
		{"a namespace that is a number", `, namespace: "${object.spec.count}"`, "namespace: must be a string, not a number"},
		{"a namespace that fails", `, namespace: "${object.spec.gone}"`, "namespace: no such key: gone"},
		{"a selector that is a text", `, labelSelector: "${object.metadata.name}"`, "labelSelector: must be a mapping, not a string"},
		{"a selector that is none", `, labelSelector: "${object.spec}"`, `labelSelector: unknown field "count"`},
		{"matchLabels that are a list", `, labelSelector: {matchLabels: "${[object.spec.count]}"}`, "labelSelector: matchLabels must be a mapping, not a list"},
		{"a label that is a number", `, labelSelector: {matchLabels: {a: "${object.spec.count}"}}`, "labelSelector: matchLabels.a must be a string, but the expression gives a number: use string()"},
		{"a label of a map that is a number", `, labelSelector: {matchLabels: "${{'a': object.spec.count}}"}`, "labelSelector: matchLabels.a must be a string, not a number"},
		{"matchExpressions that are a text", `, labelSelector: {matchExpressions: "${object.metadata.name}"}`, "labelSelector: matchExpressions must be a list, not a string"},
		{"a value that is a number", `, labelSelector: {matchExpressions: [{key: a, operator: In, values: "${[object.spec.count]}"}]}`, "labelSelector: a value of matchExpressions must be a string, not a number"},
		{"an operator that does not exist", `, labelSelector: {matchExpressions: [{key: a, operator: "${'Has'}"}]}`, `labelSelector: "Has" is not a valid label selector operator`},
		{"SEL-05 In without values never is a match of all", `, labelSelector: {matchExpressions: "${[{'key': 'a', 'operator': 'In'}]}"}`, "labelSelector: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{objects: items(t, services)}
			res := evaluate(t, load(t, finds(tc.lookup)), `{metadata: {name: web}, spec: {count: 3, nil: null}}`, seeing(w))
			if diff := cmp.Diff([]string{"r Error: evaluate the patch: lookup found: " + tc.want}, outcomes(res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(w.queries) > 0 {
				t.Error("it was looked up all the same")
			}
		})
	}
}

// What is not known decides nothing, in whatever part of the rule it is read.
func TestUnknownLookupsDecideNothing(t *testing.T) {
	const lookups = "lookups: [{name: found, resource: {group: apps, version: v1, resource: daemonsets}}]\n\t"
	denied := errors.New("no right to list")
	for name, spec := range map[string]string{
		"condition": "condition: lookups.found.size() == 0\n\t" + addsLabel,
		"variable":  "variables: [{name: size, expression: lookups.found.size()}]\n\tcondition: variables.size == 0\n\t" + addsLabel,
		"patch":     `patch: {merge: {spec: {size: "${lookups.found.size()}"}}}`,
	} {
		set := load(t, rule("r", lookups+spec), rule("s", addsLabel))
		for _, tc := range []struct {
			lookups Lookups
			want    string
		}{
			{&world{err: denied}, "r Error: lookup found of apps/v1/daemonsets is not known: no right to list"},
			{nil, "r Error: lookup found of apps/v1/daemonsets is not known"},
		} {
			res := evaluate(t, set, `{metadata: {name: a}}`, func(in *Input) { in.Lookups = tc.lookups })
			if diff := cmp.Diff([]string{tc.want, "s Patch"}, outcomes(res)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			var unknown *UnknownError
			var evaluation *EvaluationError
			err := res.Verdicts[0].Err
			if !errors.As(err, &unknown) || errors.As(err, &evaluation) || tc.lookups != nil && !errors.Is(err, denied) {
				t.Errorf("%s: %v is a %T", name, err, err)
			}
		}
	}
}

// A lookup that nobody reads costs nothing and cannot fail, and one that is
// read twice is made once.
func TestLookupsAreLazyAndMadeOnce(t *testing.T) {
	set := load(t, rule("r", `
	lookups:
	- {name: read, resource: {version: v1, resource: services}}
	- {name: broken, resource: {version: v1, resource: services}, namespace: "${object.gone}"}
	variables: [{name: size, expression: lookups.read.size()}]
	condition: variables.size == 0 || lookups.broken.size() > 0
	patch: {merge: {spec: {size: "${lookups.read.size() + variables.size}"}}}`))
	w := &world{}
	in := &Input{Object: object(t, `{metadata: {name: a}, spec: {}}`), Lookups: w}
	s := &scope{in: in, rule: set.All()[0], object: in.Object, start: in.Object}
	v, changes := s.evaluate(&evaluation{name: "a"}, false)
	if v.Outcome != Patch || len(changes) != 1 {
		t.Fatalf("%+v", v)
	}
	if len(w.queries) != 1 || w.queries[0].Name != "read" {
		t.Errorf("%d queries: %v", len(w.queries), w.queries)
	}
	w.err = errors.New("asked again")
	if list, err := s.Resolve("lookups.read"); err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := s.Resolve("lookups.broken"); err == nil {
		t.Error("a lookup that fails does not")
	}
}

// Lookups look at the object as it was before the rule's patches, like
// variables: what they find does not depend on who reads them when.
func TestLookupsDoNotDependOnWhenTheyAreRead(t *testing.T) {
	for _, condition := range []string{"lookups.found.size() == 1", "\"true\""} {
		set := load(t, rule("r", `
	lookups: [{name: found, resource: {version: v1, resource: services}, where: {metadata.name: "${object.spec.want}"}}]
	condition: `+condition+`
	patches:
	- merge: {spec: {want: db}}
	- merge: {spec: {found: "${lookups.found[0].metadata.name}"}}`))
		in := Input{Object: object(t, `{metadata: {name: a}, spec: {want: global}}`), Lookups: &world{objects: items(t, services)}}
		got := runChain(set.All(), in).object // Evaluate would say that this does not converge
		if diff := cmp.Diff(object(t, `{metadata: {name: a}, spec: {want: db, found: global}}`), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", condition, diff)
		}
	}
}

func TestSeveralLookups(t *testing.T) {
	set := load(t, rule("r", `
	recheckAfter: 1h
	lookups:
	- {name: ofNamespace, resource: {version: v1, resource: services}, where: {metadata.name: "${namespaceObject.metadata.labels.app}"}}
	- {name: ofTime, resource: {version: v1, resource: services}, where: {metadata.name: "${now.getFullYear() == 2026 ? 'db' : 'x'}"}}
	patch: {merge: {spec: {out: "${(lookups.ofNamespace + lookups.ofTime).map(o, o.metadata.name)}"}}}`))
	res := evaluate(t, set, `{metadata: {name: a, namespace: b}}`, seeing(&world{objects: items(t, services)}), inNamespace(t, `{metadata: {name: b, labels: {app: global}}}`), at("2026-05-01T00:00:00Z"))
	if diff := cmp.Diff([]any{"global", "db"}, fieldAt(res.Object, []string{"spec", "out"})); diff != "" {
		t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
	}
}

// An index serves a lookup if every object that the query means stands under
// one of its keys, and no other does: what is found through the keys is found
// by looking at each object, and the other way round.
func TestObjectsAreFoundByKeyAsByLookingAtAll(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	paths := []string{"spec.a", "spec.b", "spec.a.b", "metadata.name", "metadata.labels.a"}
	texts := []string{"", "x", "3", "true", "a\x00b", "b", "\x00", "\x01", "\x01\x02", "a", "0.5"}
	text := func() string { return texts[r.IntN(len(texts))] }
	found := 0
	for range 5000 {
		q := Query{Lookup: &Lookup{Namespaced: r.IntN(2) == 0}, Namespace: text()}
		for _, i := range r.Perm(len(paths))[:r.IntN(4)] {
			q.Where = append(q.Where, paths[i])
			var values []string
			for range r.IntN(4) {
				values = append(values, text())
			}
			q.Values = append(q.Values, values)
		}
		keys := q.Keys()
		if !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
			t.Fatalf("keys %q", keys)
		}
		// The index is filled by another lookup that has its name.
		index := &Lookup{Namespaced: q.Namespaced, Where: slices.Clone(q.Where)}
		if index.Index() != q.Index() {
			t.Fatalf("%q is not %q", index.Index(), q.Index())
		}
		o := map[string]any{
			"metadata": map[string]any{"namespace": text(), "name": text(), "labels": map[string]any{"a": text()}},
			"spec":     map[string]any{"a": []any{text(), int64(3), true, 0.5, nil, map[string]any{"b": text()}}[r.IntN(6)], "b": text()},
		}
		byKey := slices.Contains(keys, index.Key(o))
		if byKey != fits(&q, o) {
			t.Fatalf("where %q is %q in namespace %q (%v): found by key %v, by looking %v\n%q among %q", q.Where, q.Values, q.Namespace, q.Namespaced, byKey, !byKey, index.Key(o), keys)
		}
		if byKey {
			found++
		}
	}
	if found < 200 {
		t.Errorf("only %d were found: this tests too little", found)
	}
}

// Values may hold anything, also what keys are put together with.
func TestKeysOfDifferentValuesDiffer(t *testing.T) {
	texts := []string{""}
	for range 3 {
		for _, s := range slices.Clone(texts) {
			for _, c := range []string{"\x00", "\x01", "\x02", "a"} {
				texts = append(texts, s+c)
			}
		}
		slices.Sort(texts)
		texts = slices.Compact(texts)
	}
	l := &Lookup{Where: []string{"a", "b"}}
	seen := map[string][2]string{}
	for _, a := range texts {
		for _, b := range texts {
			key := l.Key(map[string]any{"a": a, "b": b})
			if other, twice := seen[key]; twice {
				t.Fatalf("%q and %q have one key", other, [2]string{a, b})
			}
			seen[key] = [2]string{a, b}
		}
	}
}

func TestIndexesOfDifferentLookupsHaveDifferentNames(t *testing.T) {
	names := map[string]bool{}
	all := []Lookup{{}, {Namespaced: true}, {Where: []string{"a"}}, {Where: []string{"a"}, Namespaced: true}, {Where: []string{"a", "b"}}, {Where: []string{"a.b"}}}
	for _, l := range all {
		names[l.Index()] = true
	}
	if len(names) != len(all) {
		t.Errorf("%d lookups have %d indexes: %v", len(all), len(names), names)
	}
}

const autoscalers = `
	lookups:
	- name: autoscalers
	  resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}
	  namespace: ${object.metadata.namespace}
	  where: {spec.scaleTargetRef.kind: Deployment, spec.scaleTargetRef.name: "${object.metadata.name}"}
	`

// A heartbeat in a status that no expression reads is no change to those that
// look the object up.
func TestSameFor(t *testing.T) {
	sizeOnly := load(t, rule("r", autoscalers+"condition: lookups.autoscalers.size() == 0\n\t"+addsLabel)).Lookups()[0]
	reading := load(t, rule("r", autoscalers+`patch: {merge: {spec: {max: "${lookups.autoscalers[0].spec.maxReplicas}"}}}`)).Lookups()[0]
	const before = `{metadata: {name: h, namespace: n, resourceVersion: "1", labels: {a: x}, annotations: {b: x}}, spec: {maxReplicas: 5, scaleTargetRef: {kind: Deployment, name: web}}, status: {currentReplicas: 1}}`
	for _, tc := range []struct {
		name, from, to  string
		sizeOnly, reads bool
	}{
		{"a heartbeat", "currentReplicas: 1", "currentReplicas: 2", true, true},
		{"another version", `resourceVersion: "1"`, `resourceVersion: "2"`, true, true},
		{"an annotation", "{b: x}", "{b: y}", true, true},
		{"a field that one reads", "maxReplicas: 5", "maxReplicas: 6", true, false},
		{"a field that one reads goes", "maxReplicas: 5", "minReplicas: 5", true, false},
		{"the target", "name: web", "name: db", false, false},
		{"the namespace", "namespace: n", "namespace: m", false, false},
		{"a label, which selectors read", "{a: x}", "{a: y}", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, changed := object(t, before), object(t, strings.Replace(before, tc.from, tc.to, 1))
			if got := sizeOnly.SameFor(old, changed); got != tc.sizeOnly {
				t.Errorf("same to one that counts: %v, want %v", got, tc.sizeOnly)
			}
			if got := reading.SameFor(old, changed); got != tc.reads {
				t.Errorf("same to one that reads: %v, want %v", got, tc.reads)
			}
		})
	}
}

// Rules that use one index share an entry, and what one of them reads counts.
func TestLookupsOfASet(t *testing.T) {
	other := strings.Replace(autoscalers, "name: autoscalers", "name: hpas", 1)
	set := load(t,
		rule("a", autoscalers+"condition: lookups.autoscalers.size() == 0\n\t"+addsLabel),
		rule("b", other+`patch: {merge: {spec: {max: "${lookups.hpas[0].spec.maxReplicas}"}}}`),
		rule("c", other+`patch: {merge: {spec: {min: "${lookups.hpas[0].spec.minReplicas}"}}}`),
		rule("d", "lookups: [{name: all, resource: {version: v1, resource: services}}]\n\t"+addsLabel))
	got := set.Lookups()
	if len(got) != 2 || ResourceName(got[0].Resource) != "autoscaling/v2/horizontalpodautoscalers" || ResourceName(got[1].Resource) != "v1/services" {
		t.Fatalf("%+v", got)
	}
	if want := []string{"spec.scaleTargetRef.kind", "spec.scaleTargetRef.name"}; !slices.Equal(got[0].Where, want) || !got[0].Namespaced || got[1].Namespaced {
		t.Errorf("%+v", got[0])
	}
	base := object(t, `{spec: {maxReplicas: 1, minReplicas: 1, more: 1}}`)
	for text, same := range map[string]bool{`{spec: {maxReplicas: 2, minReplicas: 1, more: 1}}`: false, `{spec: {maxReplicas: 1, minReplicas: 2, more: 1}}`: false, `{spec: {maxReplicas: 1, minReplicas: 1, more: 2}}`: true} {
		if got[0].SameFor(base, object(t, text)) != same {
			t.Errorf("%s: want same %v", text, same)
		}
	}
	// The rule's own entry is its own.
	if own := set.All()[0].Lookups[0]; !own.SameFor(base, object(t, `{spec: {maxReplicas: 2}}`)) {
		t.Error("the lookup of a rule reads what another one does")
	}
}

func TestSharedLookupIsOptionalIfItIsForAll(t *testing.T) {
	lookup := func(name, optional string) string {
		return rule(name, "lookups: [{name: l, resource: {version: v1, resource: services}"+optional+"}]\n\t"+addsLabel)
	}
	const yes = ", optional: true"
	for _, tc := range []struct {
		a, b string
		want bool
	}{{yes, yes, true}, {yes, "", false}, {"", yes, false}, {"", "", false}} {
		set := load(t, lookup("a", tc.a), lookup("b", tc.b))
		if got := set.Lookups()[0].Optional; got != tc.want {
			t.Errorf("%q and %q: %v", tc.a, tc.b, got)
		}
		if own := set.All()[0].Lookups[0].Optional; own != (tc.a == yes) {
			t.Errorf("%q: %v", tc.a, own)
		}
	}
}
