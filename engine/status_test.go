package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
)

// What /readyz tells is in the status, too: rules that are parked for each kind of
// reason, with counts and positions.
func TestStatusOfAnEngineWithProblems(t *testing.T) {
	f := newFixture(t)
	got := f.statusWithProblems()
	f.wantParked(got)
	wantProblem := []InvalidRule{{Rule: "bad", File: "bad.yaml", Line: 7, Column: 14, Check: "cel-compile"}}
	if diff := cmp.Diff(wantProblem, got.InvalidRules, cmpopts.IgnoreFields(InvalidRule{}, "Message", "Excerpt")); diff != "" {
		t.Errorf("invalid rules (-want +got):\n%s", diff)
	}
	if e := got.InvalidRules[0].Excerpt; !strings.Contains(e, "objct.x") || !strings.HasSuffix(e, "^") {
		t.Errorf("the excerpt is %q", e)
	}
	_, readyz := f.readyz()
	for _, r := range got.Resources {
		if mark := r.Resource + ": " + strings.ToLower(string(r.State)); r.State == gvr.Synced && !strings.Contains(readyz, mark) {
			t.Errorf("readyz has no %q:\n%s", mark, readyz)
		}
		if r.Consequence != "" && !strings.Contains(readyz, r.Consequence) {
			t.Errorf("readyz has no %q:\n%s", r.Consequence, readyz)
		}
	}
	if got.Leadership.Role != Alone || !got.Discovery.Done || got.ReadySince.IsZero() || got.RulesLoaded.IsZero() || len(got.ExcludedNamespaces) != 1 {
		t.Errorf("the status is %+v", got)
	}
	f.engine.KeepRules(fmt.Errorf("read /rules: it is gone"))
	if got := f.engine.Status(); got.UnreadRules != "read /rules: it is gone" || got.RulesLoaded.IsZero() {
		t.Errorf("after rules could not be read: %q, loaded %v", got.UnreadRules, got.RulesLoaded)
	}
}

// statusWithProblems starts an engine that lacks a bit of everything, and returns its
// status when it has found out.
func (f *fixture) statusWithProblems() (got Status) {
	f.Helper()
	f.grant("configmaps", "list", "watch")
	f.grant("services", "list", "watch", "patch")
	config, err := f.cp.User(f.user)
	if err != nil {
		f.Fatal(err)
	}
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {want: a}}`)
	opts := f.options(config, Options{ExcludeNamespaces: []string{"kube-*"}},
		rule("forbidden", "resource: {version: v1, resource: secrets}\nmatch: {namespaces: [NS], names: [x]}\npatch: {merge: {metadata: {labels: {a: b}}}}"),
		rule("patch-forbidden", "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS], names: [c]}\npatch: {merge: {data: {fixed: b}}}"),
		rule("waiting", "resource: {group: none.example.io, version: v1, resource: things}\nmatch: {namespaces: [NS], names: [x]}\npatch: {merge: {spec: {a: b}}}"),
		rule("runs", "mode: Audit\nresource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS], names: [c]}\npatch: {merge: {data: {audited: b}}}"))
	_, opts.Problems = rules.Load(rules.Source{Name: "bad.yaml", Data: []byte(rule("bad", "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS], names: [x]}\ncondition: objct.x\npatch: {merge: {a: b}}"))})
	f.run(opts)
	testcluster.Eventually(f, soon, func() error {
		got = f.engine.Status()
		if !got.Ready || len(got.Rules[1].On[0].Parked) == 0 || got.Rules[2].On[0].Audit == 0 {
			return fmt.Errorf("the status is %+v", got)
		}
		return nil
	})
	return got
}

// wantParked compares why rules are parked with what is so in statusWithProblems.
func (f *fixture) wantParked(got Status) {
	f.Helper()
	type line struct{ Rule, Resource, State, Parked string }
	var lines []line
	for _, r := range got.Rules {
		if r.File == "" || r.Line != 3 || r.Column == 0 {
			f.Errorf("rule %s stands at %s:%d:%d", r.Name, r.File, r.Line, r.Column)
		}
		for _, on := range r.On {
			var parked []string
			for _, p := range on.Parked {
				parked = append(parked, p.Reason+"|"+p.Message)
			}
			lines = append(lines, line{r.Name, on.Resource, string(on.State), strings.Join(parked, "; ")})
		}
	}
	want := []line{
		{"forbidden", "v1/secrets", "Parked", "forbidden|forbidden: list secrets at cluster scope"},
		{"patch-forbidden", "v1/configmaps", "Parked", "patch_forbidden|forbidden: patch configmaps in namespace " + f.ns},
		{"runs", "v1/configmaps", "Running", ""},
		{"waiting", "none.example.io/v1/things", "Parked", "waiting|not served by the cluster"},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		f.Errorf("rules (-want +got):\n%s", diff)
	}
}

// Before anything is known, and without a cluster, there is a status.
func TestStatusBeforeTheStart(t *testing.T) {
	set, problems := rules.Load(rules.Source{Name: "r.yaml", Data: []byte(rule("r", "resource: {version: v1, resource: configmaps}\nmatch: {names: [c]}\npatch: {merge: {data: {fixed: b}}}"))})
	e, err := New(Options{Config: offlineConfig, Rules: set, Problems: problems, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	got := e.Status()
	if got.Ready || len(got.WaitingFor) != 1 || got.WaitingFor[0] != "discovery: has not succeeded yet" || !got.DryRun || got.Rules[0].On[0].State != RuleWaiting {
		t.Errorf("the status is %+v", got)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "null") {
		t.Errorf("something is null: %s", text)
	}
}

// A standby says who leads, and that its rules wait.
func TestStatusOfAStandby(t *testing.T) {
	f := newFixture(t)
	leader := f.candidate(quick)
	testcluster.Eventually(t, soon, func() error {
		if s := leader.engine.Status(); !s.Ready || s.Leadership.Role != Leader {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	standby := f.candidate(quick)
	testcluster.Eventually(t, soon, func() error {
		s, l := standby.engine.Status(), leader.engine.Status().Leadership
		if !s.Ready || s.Leadership.Role != Standby || s.Leadership.Leader != l.Identity || s.Rules[0].On[0].State != RuleWaiting {
			return fmt.Errorf("the standby's status is %+v; the leader is %s", s, l.Identity)
		}
		if l.Since.IsZero() || s.Leadership.Lease != f.ns+"/rectifier" || s.Leadership.Identity == l.Identity {
			return fmt.Errorf("the leader: %+v; the standby: %+v", l, s.Leadership)
		}
		return nil
	})
}

// Dry runs and failures are remembered, and what a fix changed; the status can be
// asked for while the workers work.
func TestStatusWhileItWorks(t *testing.T) {
	f := newFixture(t)
	f.start(
		rule("follow", followRule),
		rule("bad-value", "resource: {version: v1, resource: configmaps}\ncondition: object.metadata.name == 'c-3'\npatch: {merge: {metadata: {labels: {a: \"not a label!\"}}}}"))
	ended := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					if s := f.engine.Status(); len(s.Recent) > maxActivity {
						t.Errorf("%d activities", len(s.Recent))
					}
				}
			}
		})
	}
	const objects = 150
	for i := range objects {
		f.create(configmaps, followed, fmt.Sprintf("c-%d", i), "v")
	}
	f.eventually(soon, configmaps, fmt.Sprintf("c-%d", objects-1), "v", "data", "is")
	f.wantEvent("c-3", "PatchRefused")
	close(ended)
	asking.Wait()
	s := f.engine.Status()
	if n := s.Rules[1].On[0].Fixed; n < objects-1 {
		t.Errorf("%d fixes are counted, want %d", n, objects)
	}
	last := s.Recent[0]
	if last.Kind != Fixed || last.Resource != "v1/configmaps" || last.Namespace != f.ns || !strings.HasPrefix(last.Name, "c-") {
		t.Errorf("the last activity is %+v", last)
	}
	if diff := cmp.Diff([]FieldChange{{Field: "data.is", After: "v"}}, last.Changes); diff != "" {
		t.Errorf("what it changed (-want +got):\n%s", diff)
	}
	if s.Rules[1].On[0].LastFix.IsZero() || s.Rules[1].On[0].LastEvaluation.IsZero() {
		t.Errorf("rule follow: %+v", s.Rules[1].On[0])
	}
}

func TestReadySince(t *testing.T) {
	at := time.Now()
	after := func(d time.Duration) time.Time { return at.Add(d * time.Second) }
	var r readySince
	none := func() time.Time { return time.Time{} }
	r.observe(false, after(0), none)
	r.observe(false, after(5), none)
	if got := r.get(); !got.Equal(after(0)) {
		t.Errorf("not ready since %v", got.Sub(at))
	}
	r.observe(true, after(60), func() time.Time { return after(30) })
	if got := r.get(); !got.Equal(after(30)) {
		t.Errorf("ready since %v, want when the last resource synced", got.Sub(at))
	}
	r.observe(true, after(90), func() time.Time { return after(80) })
	r.observe(false, after(100), none)
	r.observe(true, after(120), func() time.Time { return after(10) })
	if got := r.get(); !got.Equal(after(100)) {
		t.Errorf("ready since %v, before it was seen to be not", got.Sub(at))
	}
}
