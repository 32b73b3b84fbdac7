package rules_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// These tests hold Set.Fields to its promise: whatever the rules and the objects,
// and whatever is odd about them, evaluation of objects reduced to the fields gives
// what evaluation of whole ones gives.
//
// RECTIFIER_FIELDS=10m lets them try for so long.

// identity is what a cache keeps in any case.
var identity = fieldset.Empty().Union(
	fieldset.Of("apiVersion"), fieldset.Of("kind"), fieldset.Of("metadata", "name"), fieldset.Of("metadata", "namespace"),
	fieldset.Of("metadata", "uid"), fieldset.Of("metadata", "resourceVersion"))

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// aside answers lookups from a world, or says that it is not known.
type aside struct {
	rules.World
	unknown bool
}

func (a aside) Find(q rules.Query) ([]map[string]any, error) {
	if a.unknown {
		return nil, errors.New("not synced")
	}
	return a.World.Find(q)
}

// projecting compares evaluations of rules on whole and on reduced objects.
type projecting struct {
	testing.TB
	*chooser

	met      tally
	compared int
	dropped  int // values that the reduced objects do not have
	unstable int
	skipped  int // too late
}

// reduced is an input with all objects reduced to what the rules need.
func reduced(set *rules.Set, in rules.Input, fields *fieldset.Set) rules.Input {
	in.Object = fields.Union(identity).Project(in.Object)
	if in.NamespaceObject != nil {
		in.NamespaceObject = set.Fields(namespaceResource, nil).Union(identity).Project(in.NamespaceObject)
	}
	if a, ok := in.Lookups.(aside); ok {
		world := rules.World{}
		for resource, objects := range a.World {
			needed := set.Fields(resource, nil).Union(identity)
			for _, o := range objects {
				world[resource] = append(world[resource], needed.Project(o))
			}
		}
		in.Lookups = aside{world, a.unknown}
	}
	return in
}

// compare evaluates rules of a set on an input, whole and reduced.
func (p *projecting) compare(set *rules.Set, in rules.Input) {
	p.Helper()
	all := set.For(in.Resource)
	fields := set.Fields(in.Resource, in.ReplicasPath)
	less := reduced(set, in, fields)
	p.dropped += size(in.Object) - size(less.Object)
	whole := rules.Evaluate(all, in)
	if late(whole) {
		p.skipped++
		return
	}
	p.count(whole)
	p.same("Evaluate", set, in, less, fields, func(in rules.Input) rules.Result { return rules.Evaluate(all, in) })
	if len(whole.Requests) == 0 || p.Failed() {
		return
	}
	p.same("Settle", set, in, less, fields, func(in rules.Input) rules.Result { return rules.Settle(all, in) })
	// What a controller sees next is the result, and a cache reduces that.
	in.Object = whole.Object
	p.same("Evaluate the result", set, in, reduced(set, in, fields), fields, func(in rules.Input) rules.Result { return rules.Evaluate(all, in) })
	one := all[p.IntN(len(all))]
	fields = one.Fields(in.Resource, in.ReplicasPath)
	p.same("Evaluate one rule on the result", set, in, reduced(set, in, fields), fields, func(in rules.Input) rules.Result {
		return rules.Evaluate([]*rules.Rule{one}, in)
	})
}

func (p *projecting) count(res rules.Result) {
	p.compared++
	p.met.requests += len(res.Requests)
	for _, v := range res.Verdicts {
		switch v.Outcome {
		case rules.Patch:
			p.met.patches++
		case rules.Error:
			p.met.errors++
			if errors.As(v.Err, new(*rules.NotConvergingError)) {
				p.met.fights++
			}
		}
	}
}

func (p *projecting) same(what string, set *rules.Set, whole, less rules.Input, fields *fieldset.Set, f func(rules.Input) rules.Result) {
	p.Helper()
	a, b := p.observed(f(whole), fields), p.observed(f(less), fields)
	if slices.Equal(a, b) {
		return
	}
	if outOfTime(a) || outOfTime(b) {
		p.skipped++
		return
	}
	// What depends on the order of a map comes out one way or the other.
	seen := map[string]bool{}
	for range 50 {
		again := p.observed(f(whole), fields)
		if outOfTime(again) {
			p.skipped++
			return
		}
		seen[fmt.Sprintf("%q", again)] = true
	}
	if len(seen) > 1 {
		p.unstable++
		return
	}
	text := func(v any) string { data, _ := json.Marshal(v); return string(data) }
	var about []string
	for _, r := range set.All() {
		about = append(about, fmt.Sprintf("%s %s", r.Pos, r.Name))
	}
	p.Errorf("%s of %v, %v:\nwhole   %s\nreduced %s\nfields %s\nobject  %s\nreduced %s\nnamespace %s\nlookups %v\nand %v", what, whole.Resource, about,
		strings.Join(a, "\n        "), strings.Join(b, "\n        "), fields, text(whole.Object), text(less.Object), text(whole.NamespaceObject), whole.Lookups, less.Lookups)
}

// outOfTime reports whether something took too long on this machine, an event's
// message included.
func outOfTime(observed []string) bool {
	return slices.ContainsFunc(observed, func(line string) bool { return strings.Contains(line, expression.ErrDeadline.Error()) })
}

// quotedLength is what an error of a JSON patch says of a list that is in its way.
var quotedLength = regexp.MustCompile(`list of length \d+`)

// observed is all that can be seen of a result, in words.
func (p *projecting) observed(res rules.Result, fields *fieldset.Set) []string {
	var out []string
	for _, v := range res.Verdicts {
		line := fmt.Sprintf("%s: %s, %q, %v, %v %v, %v", v.Rule.Name, v.Outcome, v.Reason, v.OptedOut, v.Event, v.EventQuotes, reflect.TypeOf(v.Err))
		if v.Err != nil {
			line += " " + v.Err.Error()
		}
		var failed *rules.EvaluationError
		if errors.As(v.Err, &failed) {
			line += " " + failed.Err.Error()
		}
		if v.Change != nil {
			line += fmt.Sprintf(" %x %v", v.Change.Digest(), v.Change.Fields())
		}
		out = append(out, quotedLength.ReplaceAllString(line, "list"))
	}
	for i := range res.Requests {
		r := &res.Requests[i]
		var by []string
		for _, rule := range r.Rules {
			by = append(by, rule.Name)
		}
		body, err := r.Body("u", "7")
		out = append(out, fmt.Sprintf("%v to %q by %v: %s %v", r.Type(), r.Subresource, by, body, err))
	}
	for _, r := range res.Unmatched {
		out = append(out, "unmatched "+r.Name)
	}
	object, err := json.Marshal(fields.Project(res.Object))
	return append(out, res.Recheck.String(), fmt.Sprintf("%s %v", object, err))
}

// size is how many values there are.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			n += size(x)
		}
	case []any:
		for _, x := range v {
			n += size(x)
		}
	}
	return n
}

// replicasPaths are where objects may keep their replica count.
var replicasPaths = [][]string{{"spec", "replicas"}, {"spec", "replicas"}, {"spec", "replicas"}, {"spec", "scale", "size"}, {"count"}, nil}

// try compares a set of rules on inputs that are made for it.
func (p *projecting) try(repo *repository, set *rules.Set, rounds int) {
	p.Helper()
	for _, resource := range set.Resources() {
		invention := rules.NewInvention(set.For(resource), uint64(p.IntN(1<<30)))
		samples := repo.samples[resource]
		for range rounds {
			trial := rules.Trial{
				Resource: resource, Kind: repo.kinds[resource].Kind, Namespaced: p.chance(80),
				Schema: repo.schemaOf(resource), ReplicasPath: pick(p.chooser, replicasPaths...),
			}
			in := invention.Input(trial)
			if len(samples) > 0 && p.chance(50) {
				in.Object = pick(p.chooser, samples...)
				in.NamespaceObject, in.Lookups = nil, nil
				namespace, found := invention.Around(in)
				if in.Lookups = found; trial.Namespaced {
					in.NamespaceObject = namespace
				}
			}
			in.Now = pick(p.chooser, in.Now, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
			late := p.skipped
			p.compare(set, p.disturb(in))
			if p.Failed() || p.skipped > late { // it will be late again
				return
			}
		}
	}
}

func (p *projecting) report(least int) {
	p.Helper()
	p.Logf("%d evaluations compared, %d values left out, %d unstable, %d late: %+v", p.compared, p.dropped, p.unstable, p.skipped, p.met)
	if p.compared < least || p.met.patches < least/10 || p.met.errors < least/50 || p.met.fights == 0 || p.dropped < least || p.unstable > p.compared/100 {
		p.Error("it compares too little")
	}
}

// patience is until when to go on beyond the ordinary run.
func patience(t testing.TB) time.Time {
	d, err := time.ParseDuration(os.Getenv("RECTIFIER_FIELDS"))
	if err != nil && os.Getenv("RECTIFIER_FIELDS") != "" {
		t.Fatal(err)
	}
	return time.Now().Add(d)
}

func stillPatient(until time.Time) bool { return time.Now().Before(until) }

func TestUnracedFieldsSufficeForTheRulesOfTheRepository(t *testing.T) {
	repo := collect(t)
	until := patience(t)
	covered := map[schema.GroupVersionResource]bool{}
	for _, r := range repo.rules {
		for _, resource := range r.Resources {
			covered[resource] = len(repo.samples[resource]) > 0
		}
	}
	t.Logf("%d rules in %d texts, on %d resources, of which %d have samples", len(repo.rules), len(repo.files), len(covered), len(slices.DeleteFunc(slices.Collect(maps.Values(covered)), func(b bool) bool { return !b })))
	if len(repo.rules) < 300 || len(covered) < 40 {
		t.Error("too few are found")
	}
	for seed := uint64(1); ; seed++ {
		p := &projecting{TB: t, chooser: seeded(seed)}
		for _, set := range repo.files {
			p.try(repo, set, 5)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		// Rules that were not made for each other, on one resource.
		for range len(repo.rules) / 2 {
			first := pick(p.chooser, repo.rules...)
			resource := pick(p.chooser, first.Resources...)
			together := []*rules.Rule{first.About(resource)}
			for range 1 + p.IntN(4) {
				together = append(together, pick(p.chooser, repo.rules...).About(resource))
			}
			p.try(repo, rules.Together(together...), 3)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		p.report(1000)
		if !stillPatient(until) {
			break
		}
	}
}

func TestUnracedFieldsSufficeForInventedRules(t *testing.T) {
	repo := &repository{kinds: map[schema.GroupVersionResource]schema.GroupVersionKind{deployments: {Group: "apps", Version: "v1", Kind: "Deployment"}}, types: builtinTypes()}
	until := patience(t)
	p := &projecting{TB: t}
	for seed := uint64(1); seed <= 400 || stillPatient(until); seed++ {
		p.chooser = seeded(seed)
		p.inventedFile(repo)
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, ruleMaker{seeded(seed)}.file())
		}
	}
	p.report(1000)
}

// inventedFile makes a rule file by the grammar, and objects by both of those who
// know how.
func (p *projecting) inventedFile(repo *repository) {
	set, _ := loadText(ruleMaker{p.chooser}.file())
	p.try(repo, set, 2)
	for range 3 {
		in := inventInput(p, p.chooser)
		in.Lookups = rules.World{
			{Version: "v1", Resource: "configmaps"}: {{"metadata": map[string]any{"name": "x", "namespace": "shop"}, "data": map[string]any{"a": "1"}}},
		}
		if len(set.All()) > 0 && !p.Failed() {
			p.compare(set, p.disturb(in))
		}
	}
}

func FuzzFields(f *testing.F) {
	for seed := range uint64(20) {
		c := seeded(seed)
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(c.IntN(256))
		}
		f.Add(data)
	}
	repo := &repository{types: builtinTypes()}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &projecting{TB: t, chooser: &chooser{bytes: data}}
		p.inventedFile(repo)
		if t.Failed() {
			t.Log(ruleMaker{&chooser{bytes: data}}.file())
		}
	})
}
