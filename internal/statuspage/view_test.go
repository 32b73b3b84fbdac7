package statuspage

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
)

func TestHeadlines(t *testing.T) {
	fine := func() engine.Status {
		s := example()
		s.UnreadRules, s.InvalidRules, s.Contentions, s.Recent = "", nil, nil, nil
		s.Resources, s.Rules = s.Resources[:1], s.Rules[:1]
		s.Rules[0].On = s.Rules[0].On[:1]
		s.Rules[0].On[0].Contended = 0
		return s
	}
	for _, tc := range []struct {
		name     string
		change   func(*engine.Status)
		headline string
		tone     tone
		summary  string
	}{
		{"all is well", func(*engine.Status) {}, "All is well", toneOK, ""},
		{"dry run", func(s *engine.Status) { s.DryRun = true }, "All is well", toneOK, "Dry run"},
		{"standby", func(s *engine.Status) {
			s.Leadership = engine.Leadership{Role: engine.Standby, Leader: "rectifier-1_2"}
			s.Resources = nil
		}, "Standing by", toneOK, "The leader is rectifier-1_2"},
		{"standby, nobody leads", func(s *engine.Status) { s.Leadership = engine.Leadership{Role: engine.Standby} }, "Standing by", toneOK, "no leader"},
		{"standby that does not see the lease", func(s *engine.Status) {
			s.Ready = false
			s.Leadership = engine.Leadership{Role: engine.Standby, Trouble: "cannot get it: timeout"}
		}, "1 thing needs attention", toneWarn, ""},
		{"starting", func(s *engine.Status) { s.Ready, s.WaitingFor = false, []string{"v1/secrets: syncing"} }, "Starting", toneWait, "waits"},
		{"lost", func(s *engine.Status) {
			s.Ready, s.Leadership = false, engine.Leadership{Role: engine.Lost, Trouble: "the lease is lost"}
		}, "Lease lost: this instance ends", toneBad, "the lease is lost"},
		{"no rules", func(s *engine.Status) { s.Rules = nil }, "1 thing needs attention", toneWarn, ""},
		{"everything at once", func(s *engine.Status) { *s = example() }, "6 things need attention", toneWarn, ""},
		{"not served, looked up only", func(s *engine.Status) {
			s.Resources = append(s.Resources, engine.ResourceStatus{Resource: "v1/namespaces", State: gvr.Forbidden, Consequence: "opt-outs on Namespaces are not seen"})
		}, "All is well", toneOK, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fine()
			tc.change(&s)
			p := newPage(s, false, true)
			if p.Headline != tc.headline || p.Tone != tc.tone || !strings.Contains(p.Summary, tc.summary) {
				t.Errorf("%q (%s), %q", p.Headline, p.Tone, p.Summary)
			}
			if !strings.HasPrefix(p.Title, tc.headline) {
				t.Errorf("the title is %q", p.Title)
			}
		})
	}
}

// Each problem says what to do next.
func TestProblems(t *testing.T) {
	s := example()
	got := [][3]string{}
	for _, p := range problemsOf(&s) {
		got = append(got, [3]string{p.Kind, p.Title, p.Detail})
		if p.Next == "" {
			t.Errorf("%s: nothing is said of what to do", p.Title)
		}
	}
	want := [][3]string{
		{"Rules not read", "The rules cannot be read anew", "read /rules: permission denied"},
		{"Invalid rule", "Rule broken: undeclared reference to 'objct'", "/rules/b.yaml:7:14"},
		{"Forbidden", "v1/secrets", "Not allowed: list secrets at cluster scope. Keeps from running: look."},
		{"Not served", "example.io/v1/widgets", "Not served by the cluster. Keeps from running: label."},
		{"Contention", "label gives way on shop/web", "deployments.apps: metadata.labels.team is set back by argocd-controller."},
		{"Failed", "label on shop/web", "The API server refuses the change: Invalid (spec)."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With several namespaces, a resource may be there in one and not in another: what
// else keeps its rules from running is told nevertheless, and nothing twice.
func TestProblemsInSomeNamespaces(t *testing.T) {
	parked := []engine.Parking{
		{Reason: "forbidden", Message: "in namespace b: forbidden: list configmaps"},
		{Reason: "patch_forbidden", Message: "forbidden: patch configmaps in namespace a"},
	}
	for _, tc := range []struct {
		name   string
		a, b   gvr.State
		parked []engine.Parking
		want   []string // kind and title
	}{
		{"in both", gvr.Synced, gvr.Synced, parked[1:], []string{"Forbidden: r on v1/configmaps"}},
		{"in one", gvr.Synced, gvr.Forbidden, parked, []string{"Forbidden: v1/configmaps in namespace b", "Forbidden: r on v1/configmaps"}},
		{"in one, which syncs", gvr.Syncing, gvr.Forbidden, parked, []string{"Forbidden: v1/configmaps in namespace b", "Forbidden: r on v1/configmaps"}},
		{"in none", gvr.Failing, gvr.Forbidden, parked, []string{"Failing: v1/configmaps in namespace a", "Forbidden: v1/configmaps in namespace b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := engine.Status{
				Rules: []engine.RuleStatus{{Name: "r", On: []engine.RuleOnResource{{Resource: "v1/configmaps", State: engine.RuleParked, Parked: tc.parked}}}},
				Resources: []engine.ResourceStatus{
					{Resource: "v1/configmaps", Namespace: "a", State: tc.a, Rules: []string{"r"}},
					{Resource: "v1/configmaps", Namespace: "b", State: tc.b, Rules: []string{"r"}},
				},
			}
			var got []string
			for _, p := range problemsOf(&s) {
				got = append(got, p.Kind+": "+p.Title)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A failure is no problem any more when the rule has put the object right since,
// or when it is long ago.
func TestFailuresPass(t *testing.T) {
	s := example()
	failed := s.Recent[1]
	for name, tc := range map[string]struct {
		recent []engine.Activity
		want   int
	}{
		"just now":          {[]engine.Activity{failed}, 1},
		"long ago":          {[]engine.Activity{{Kind: engine.Failed, Rules: failed.Rules, Time: noon.Add(-2 * time.Hour)}}, 0},
		"fixed since":       {[]engine.Activity{{Kind: engine.Fixed, Rules: []string{"label", "other"}, Resource: failed.Resource, Namespace: "shop", Name: "web", Time: noon}, failed}, 0},
		"fixed before":      {[]engine.Activity{failed, {Kind: engine.Fixed, Rules: failed.Rules, Resource: failed.Resource, Namespace: "shop", Name: "web", Time: noon.Add(-time.Hour)}}, 1},
		"another was fixed": {[]engine.Activity{{Kind: engine.Fixed, Rules: failed.Rules, Resource: failed.Resource, Namespace: "shop", Name: "cart", Time: noon}, failed}, 1},
	} {
		s.Recent = tc.recent
		if got := failureProblems(&s); len(got) != tc.want {
			t.Errorf("%s: %d problems, want %d", name, len(got), tc.want)
		}
	}
}

func TestChangeLines(t *testing.T) {
	got := newChangeLine(engine.FieldChange{Field: "spec", Before: "a: 1\nb: 2\nc: 3", After: "a: 1\nb: 5\nc: 3"})
	want := []diffLine{{" ", "same", "a: 1"}, {"−", "old", "b: 2"}, {"+", "new", "b: 5"}, {" ", "same", "c: 3"}}
	if diff := cmp.Diff(want, got.Diff); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A value that looks like a part of a diff is a value.
	got = newChangeLine(engine.FieldChange{Field: "spec", After: "@@ -1 +1 @@\n--- x\n+++ y"})
	want = []diffLine{{"+", "new", "@@ -1 +1 @@"}, {"+", "new", "--- x"}, {"+", "new", "+++ y"}}
	if diff := cmp.Diff(want, got.Diff); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if one := newChangeLine(engine.FieldChange{Field: "spec.replicas", Before: "3", After: "5"}); one.Diff != nil {
		t.Errorf("one line is a diff: %+v", one)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min", 3 * time.Hour: "3 h", 47 * time.Hour: "47 h", 50 * time.Hour: "2 d",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1\u202f000", 1234567: "1\u202f234\u202f567", -1000: "-1\u202f000"} {
		if got := number(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := strings.Join(parts("networking.k8s.io/v1/x[0].y"), "|"); got != "networking.|k8s.|io/|v1/|x[|0].|y" {
		t.Errorf("the parts are %s", got)
	}
	if m := ago(time.Time{}, noon); !m.Zero() {
		t.Errorf("no time is %q", m.Text)
	}
}
