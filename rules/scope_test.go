package rules

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inNamespace evaluates an object in a Namespace.
func inNamespace(t testing.TB, text string) func(*Input) {
	ns := object(t, text)
	return func(in *Input) { in.NamespaceObject = ns }
}

// at evaluates an object at a time.
func at(text string) func(*Input) {
	now, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return func(in *Input) { in.Now = now }
}

func TestNamespaceSelector(t *testing.T) {
	const prod = `{metadata: {name: shop, labels: {env: prod, team: a}}}`
	for _, tc := range []struct {
		name, selector, namespace string
		want                      bool
	}{
		{"a label", `matchLabels: {env: prod}`, prod, true},
		{"another label", `matchLabels: {env: dev}`, prod, false},
		{"In", `matchExpressions: [{key: env, operator: In, values: [dev, prod]}]`, prod, true},
		{"NotIn", `matchExpressions: [{key: env, operator: NotIn, values: [prod]}]`, prod, false},
		{"SEL-02 NotIn on an absent label", `matchExpressions: [{key: tier, operator: NotIn, values: [prod]}]`, prod, true},
		{"SEL-02 NotIn on no labels at all", `matchExpressions: [{key: env, operator: NotIn, values: [prod]}]`, `{metadata: {name: shop}}`, true},
		{"a label that is absent", `matchLabels: {env: prod}`, `{metadata: {name: shop}}`, false},
		{"the name that every Namespace has as a label", `matchLabels: {kubernetes.io/metadata.name: shop}`, `{metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop}}}`, true},
		{"all must hold", `matchLabels: {env: prod}, matchExpressions: [{key: team, operator: In, values: [b]}]`, prod, false},
		{"an empty selector", ``, `{metadata: {name: shop}}`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := load(t, rule("r", "match: {namespaceSelector: {"+tc.selector+"}}\n\t"+addsLabel))
			v := onlyVerdict(t, evaluate(t, set, `{metadata: {name: a, namespace: shop, labels: {env: own}}}`, explain, inNamespace(t, tc.namespace)))
			if (v.Outcome == Patch) != tc.want || (v.Outcome == Skip) == tc.want {
				t.Errorf("%s (%s), want a match: %v", v.Outcome, v.Reason, tc.want)
			}
		})
	}
}

// As in admission: a Namespace counts as in itself, and other cluster-scoped
// objects are not excluded.
func TestNamespaceSelectorOnClusterScopedObjects(t *testing.T) {
	selector := "match: {namespaceSelector: {matchLabels: {env: prod}}}\n\t" + addsLabel
	set := load(t, rule("r", selector))
	for _, tc := range []struct {
		name, object string
		on           func(*Input)
		want         Outcome
	}{
		{"a Namespace that has the label", `{metadata: {name: shop, labels: {env: prod}}}`, on("", "v1", "namespaces"), Patch},
		{"a Namespace that has not", `{metadata: {name: shop}}`, on("", "v1", "namespaces"), Skip},
		{"a PersistentVolume", `{metadata: {name: pv}}`, on("", "v1", "persistentvolumes"), Patch},
		{"namespaces of another group are no Namespaces", `{metadata: {name: x}}`, on("example.io", "v1", "namespaces"), Patch},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if v := onlyVerdict(t, evaluate(t, set, tc.object, explain, tc.on)); v.Outcome != tc.want {
				t.Errorf("%s (%s), want %s", v.Outcome, v.Reason, tc.want)
			}
		})
	}
}

func TestUnknownNamespaceDecidesNothing(t *testing.T) {
	selects := "match: {namespaceSelector: {matchLabels: {env: prod}}}\n\t"
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{"namespaceSelector", selects + addsLabel, []string{`r Error: the Namespace "shop" is not known`}},
		{"namespaceObject", `patch: {merge: {metadata: {labels: {team: "${namespaceObject.metadata.name}"}}}}`, []string{`r Error: the Namespace "shop" is not known`}},
		{"namespaceObject in a lookup", "lookups: [{name: l, resource: {version: v1, resource: services}, namespace: \"${namespaceObject.metadata.name}\"}]\n\t" + addsLabel, []string{`r Error: the Namespace "shop" is not known`}},
		{"a rule that does not need it", addsLabel, []string{"r Patch"}},
		{"a rule that does not match anyway", "match: {names: [other], namespaceSelector: {}}\n\t" + addsLabel, []string{"r Skip: its name is not among match.names"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, rule("r", tc.spec)), `{metadata: {name: a, namespace: shop}}`, explain)
			if diff := cmp.Diff(tc.want, outcomes(res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if v := res.Verdicts[0]; v.Outcome == Error && !errors.As(v.Err, new(*UnknownError)) {
				t.Errorf("%T", v.Err)
			}
		})
	}
}

func TestNamespaceObject(t *testing.T) {
	reads := load(t, rule("r", `patch: {merge: {spec: {out: "${namespaceObject == null ? 'none' : namespaceObject.metadata.labels.team}"}}}`))
	shop := inNamespace(t, `{metadata: {name: shop, labels: {team: a}}}`)
	for _, tc := range []struct {
		name, object string
		options      []func(*Input)
		want         any
	}{
		{"of an object in a Namespace", `{metadata: {name: a, namespace: shop}}`, []func(*Input){shop}, "a"},
		{"of a cluster-scoped object", `{metadata: {name: a}}`, nil, "none"},
		{"of a Namespace", `{metadata: {name: shop, labels: {team: a}}}`, []func(*Input){on("", "v1", "namespaces")}, "none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, reads, tc.object, tc.options...)
			if diff := cmp.Diff(tc.want, fieldAt(res.Object, []string{"spec", "out"})); diff != "" {
				t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
			}
		})
	}
	if !reads.All()[0].NeedsNamespace || load(t, rule("r", addsLabel)).All()[0].NeedsNamespace {
		t.Error("NeedsNamespace")
	}
}

// Two states of a Namespace are the same as long as nothing that rules read of
// it changes.
func TestSameNamespace(t *testing.T) {
	const before = `{metadata: {name: n, resourceVersion: "1", labels: {a: x}, annotations: {team: x}}, status: {phase: Active}}`
	skipped := `{metadata: {name: n, labels: {a: x}, annotations: {team: x, rectifier.dev/skip: "*"}}}`
	until := `{metadata: {name: n, labels: {a: x}, annotations: {team: x, rectifier.dev/skip-until: x}}}`
	labelled := `{metadata: {name: n, labels: {a: "y"}, annotations: {team: x}}}`
	team := `{metadata: {name: n, labels: {a: x}, annotations: {team: "y"}}}`
	phase := `{metadata: {name: n, resourceVersion: "2", labels: {a: x}, annotations: {team: x}}, status: {phase: Terminating}}`
	for _, tc := range []struct {
		name, spec string
		same       map[string]bool
	}{
		{"a rule that reads nothing of it", addsLabel, map[string]bool{skipped: false, until: false, labelled: true, team: true, phase: true}},
		{"a rule without opt-outs", "optOut: Forbidden\n\t" + addsLabel, map[string]bool{skipped: true, until: true, labelled: true, team: true, phase: true}},
		{"a selector", "match: {namespaceSelector: {matchLabels: {a: x}}}\n\t" + addsLabel, map[string]bool{skipped: false, labelled: false, team: true, phase: true}},
		{"an expression", "condition: namespaceObject.metadata.annotations.team == 'x'\n\t" + addsLabel, map[string]bool{labelled: true, team: false, phase: true}},
	} {
		set := load(t, rule("r", tc.spec))
		for text, want := range tc.same {
			if got := set.SameNamespace(object(t, before), object(t, text)); got != want {
				t.Errorf("%s: %s is the same: %v, want %v", tc.name, text, got, want)
			}
		}
	}
}

const (
	noon   = "2026-06-01T12:00:00Z"
	past   = "2026-06-01T11:59:59Z"
	future = "2026-06-01T13:00:00Z"
)

// skips is how often opt-outs say something: for ever, until future, or not.
func TestOptOuts(t *testing.T) {
	const forever, ends, no, broken = "skip", "skip until the end", "no", "skip and tell"
	for _, tc := range []struct {
		name, annotations string
		want              string
	}{
		{"none", `{}`, no},
		{"by name", `{rectifier.dev/skip: r}`, forever},
		{"a list", `{rectifier.dev/skip: "a,r,b"}`, forever},
		{"a list with spaces", `{rectifier.dev/skip: " a , r "}`, forever},
		{"all", `{rectifier.dev/skip: "*"}`, forever},
		{"all in a list", `{rectifier.dev/skip: "a, *"}`, forever},
		{"other rules", `{rectifier.dev/skip: "a,b"}`, no},
		{"part of a name", `{rectifier.dev/skip: "r1"}`, no},
		{"a pattern is no name", `{rectifier.dev/skip: "r*"}`, no},
		{"nothing", `{rectifier.dev/skip: ""}`, no},
		{"what is surely meant so", `{rectifier.dev/skip: "true"}`, broken},
		{"with an end in the future", `{rectifier.dev/skip: r, rectifier.dev/skip-until: "` + future + `"}`, ends},
		{"with an end in the future, in another zone", `{rectifier.dev/skip: r, rectifier.dev/skip-until: "2026-06-01T15:00:00+02:00"}`, ends},
		{"with an end in the past", `{rectifier.dev/skip: r, rectifier.dev/skip-until: "` + past + `"}`, no},
		{"with an end right now", `{rectifier.dev/skip: r, rectifier.dev/skip-until: "` + noon + `"}`, no},
		{"an end alone", `{rectifier.dev/skip-until: "` + future + `"}`, ends},
		{"an end alone in the past", `{rectifier.dev/skip-until: "` + past + `"}`, no},
		{"an end of other rules", `{rectifier.dev/skip: a, rectifier.dev/skip-until: "` + future + `"}`, no},
		{"an end that is malformed", `{rectifier.dev/skip: r, rectifier.dev/skip-until: tomorrow}`, broken},
		{"an end that is a date only", `{rectifier.dev/skip-until: "2026-12-31"}`, broken},
		{"a malformed end of other rules", `{rectifier.dev/skip: a, rectifier.dev/skip-until: tomorrow}`, no},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, strict := load(t, rule("r", addsLabel)), load(t, rule("r", "optOut: Forbidden\n\t"+addsLabel))
			for where, options := range map[string][]func(*Input){
				"the object":    {},
				"its Namespace": {inNamespace(t, `{metadata: {name: n, annotations: `+tc.annotations+`}}`)},
			} {
				text := `{metadata: {name: a, namespace: n}}`
				if where == "the object" {
					text = `{metadata: {name: a, namespace: n, annotations: ` + tc.annotations + `}}`
				}
				options = append(options, explain, at(noon))
				res := evaluate(t, set, text, options...)
				v := onlyVerdict(t, res)
				got := no
				switch {
				case v.Outcome == Skip && v.Err != nil:
					got = broken
				case v.Outcome == Skip && res.Recheck.Format(time.RFC3339) == future,
					v.Outcome == Skip && res.Recheck.UTC().Format(time.RFC3339) == future:
					got = ends
				case v.Outcome == Skip && res.Recheck.IsZero():
					got = forever
				case v.Outcome != Patch || !res.Recheck.IsZero():
					got = string(v.Outcome) + " " + res.Recheck.String()
				}
				if got != tc.want {
					t.Errorf("on %s: %s (%s, %v), want %s", where, got, v.Reason, v.Err, tc.want)
				}
				if res := evaluate(t, strict, text, options...); onlyVerdict(t, res).Outcome != Patch || !res.Recheck.IsZero() {
					t.Errorf("on %s, with optOut: Forbidden: %v", where, outcomes(res))
				}
			}
		})
	}
}

func TestOptOutsSayWhy(t *testing.T) {
	set := load(t, rule("r", addsLabel))
	for _, tc := range []struct{ object, namespace, want string }{
		{`{metadata: {name: a, annotations: {rectifier.dev/skip: r}}}`, `{}`, "r Skip: the object has the annotation rectifier.dev/skip"},
		{`{metadata: {name: a, annotations: {rectifier.dev/skip-until: "2027-01-01T00:00:00Z"}}}`, `{}`, "r Skip: the object has the annotation rectifier.dev/skip-until"},
		{`{metadata: {name: a}}`, `{metadata: {annotations: {rectifier.dev/skip: "*"}}}`, "r Skip: its Namespace has the annotation rectifier.dev/skip"},
		{`{metadata: {name: a, annotations: {rectifier.dev/skip-until: soon}}}`, `{}`, "r Skip: the annotation rectifier.dev/skip-until on the object is not a time such as 2026-12-31T00:00:00Z: the object is left alone"},
	} {
		// Also without Explain, a malformed end is told.
		res := evaluate(t, set, tc.object, explain, at(noon), inNamespace(t, tc.namespace))
		if diff := cmp.Diff([]string{tc.want}, outcomes(res)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if res := evaluate(t, set, `{metadata: {annotations: {rectifier.dev/skip-until: soon}}}`, at(noon)); len(res.Verdicts) != 1 || res.Verdicts[0].Err == nil {
		t.Errorf("a malformed end is not told: %v", outcomes(res))
	}
}

// A Namespace is in itself: its own annotations keep rules about Namespaces
// away, once.
func TestNamespaceThatOptsOut(t *testing.T) {
	set := load(t, rule("r", addsLabel))
	res := evaluate(t, set, `{metadata: {name: n, annotations: {rectifier.dev/skip: "*"}}}`, on("", "v1", "namespaces"), explain)
	if diff := cmp.Diff([]string{"r Skip: the object has the annotation rectifier.dev/skip"}, outcomes(res)); diff != "" {
		t.Error(diff)
	}
}

// Objects that a rule leaves alone for another reason are not asked for again
// when their opt-out ends.
func TestOptOutOfAnObjectThatIsNotMatched(t *testing.T) {
	set := load(t, rule("r", "match: {names: [other]}\n\trecheckAfter: 1m\n\t"+addsLabel))
	res := evaluate(t, set, `{metadata: {name: a, annotations: {rectifier.dev/skip-until: "`+future+`"}}}`, at(noon))
	if !res.Recheck.IsZero() || len(res.Verdicts) > 0 {
		t.Errorf("recheck at %v, %v", res.Recheck, outcomes(res))
	}
}

func TestRecheckAfter(t *testing.T) {
	every := func(name, after, spec string) string {
		return rule(name, "recheckAfter: "+after+"\n\t"+spec)
	}
	const never = "condition: \"false\"\n\t" + addsLabel
	for _, tc := range []struct {
		name   string
		rules  []string
		object string
		want   string // after noon; empty: never
	}{
		{"none", []string{rule("r", addsLabel)}, `{metadata: {name: a}}`, ""},
		{"of a rule that changes the object", []string{every("r", "1h", addsLabel)}, `{metadata: {name: a}}`, "1h0m0s"},
		{"of a rule whose condition is false", []string{every("r", "90s", never)}, `{metadata: {name: a}}`, "1m30s"},
		{"of a rule that fails", []string{every("r", "1h", "condition: object.gone\n\t"+addsLabel)}, `{metadata: {name: a}}`, "1h0m0s"},
		{"of a rule that does not converge", []string{every("r", "1h", `patch: {merge: {spec: {count: "${object.spec.count + 1}"}}}`)}, `{metadata: {name: a}, spec: {count: 1}}`, "1h0m0s"},
		{"of an audit rule", []string{every("r", "1h", "mode: Audit\n\t"+addsLabel)}, `{metadata: {name: a}}`, "1h0m0s"},
		{"the earliest of several", []string{every("a", "1h", never), every("b", "1m", never), every("c", "10m", never), rule("d", never)}, `{metadata: {name: a}}`, "1m0s"},
		{"not of a rule that does not match", []string{every("r", "1h", "match: {names: [other]}\n\t"+never)}, `{metadata: {name: a}}`, ""},
		{"not of a rule that is opted out of", []string{every("r", "1m", never)}, `{metadata: {name: a, annotations: {rectifier.dev/skip: r}}}`, ""},
		{"the end of the opt-out instead", []string{every("r", "1m", never)}, `{metadata: {name: a, annotations: {rectifier.dev/skip: r, rectifier.dev/skip-until: "` + future + `"}}}`, "1h0m0s"},
		{"whichever is earlier", []string{every("r", "1m", never), every("s", "2h", never)}, `{metadata: {name: a, annotations: {rectifier.dev/skip: r, rectifier.dev/skip-until: "` + future + `"}}}`, "1h0m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var now time.Time
			res := evaluate(t, load(t, tc.rules...), tc.object, at(noon), func(in *Input) { now = in.Now })
			got := ""
			if !res.Recheck.IsZero() {
				got = res.Recheck.Sub(now).String()
			}
			if got != tc.want {
				t.Errorf("recheck after %q, want %q: %v", got, tc.want, outcomes(res))
			}
		})
	}
}

// A rule that waits for one that comes after it takes a round more, and an hour
// may begin in the next second: that is no fight.
func TestHourThatBeginsWhileRulesWaitForOneAnother(t *testing.T) {
	set := load(t,
		rule("a", "condition: has(object.spec.b)\n\tpatch: {merge: {spec: {a: 1}}}"),
		rule("b", "patch: {merge: {spec: {b: 1}}}"),
		rule("c", "recheckAfter: 1h\n\tpatch: {merge: {spec: {hour: \"${now.getHours()}\"}}}"))
	res := evaluate(t, set, `{metadata: {name: x}, spec: {}}`, at("2026-06-01T12:59:58Z"))
	if diff := cmp.Diff([]string{"b Patch", "c Patch"}, outcomes(res)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An expression that reads the time twice reads one time, and so do the rules
// of one evaluation.
func TestNowIsOneMoment(t *testing.T) {
	reads := `condition: "!has(object.spec.KEY)"
	recheckAfter: 1h
	variables: [{name: t, expression: now}]
	patch: {merge: {spec: {KEY: "${now == variables.t ? string(now) : 'two'}"}}}`
	set := load(t, rule("a", strings.ReplaceAll(reads, "KEY", "a")), rule("b", strings.ReplaceAll(reads, "KEY", "b")))
	res := evaluate(t, set, `{metadata: {name: x}, spec: {}}`, at(noon))
	if diff := cmp.Diff(map[string]any{"a": noon, "b": noon}, res.Object["spec"]); diff != "" {
		t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
	}
}

// FGT-09: what depends on the very moment is written anew in every one.
func TestTimestampsThatAreAlwaysWrittenDoNotConverge(t *testing.T) {
	const endless = "r Error: the rule does not converge: it would change its own result again"
	hourly := `patch: {merge: {metadata: {annotations: {hour: "${now.getHours()}h"}}}}`
	for _, tc := range []struct {
		name, spec, at string
		want           string
	}{
		{"always", `patch: {merge: {metadata: {annotations: {last-checked: "${string(now)}"}}}}`, noon, endless},
		{"by a JSON patch", `patch: {json: [{op: add, path: /spec/checked, value: "${now}"}]}`, noon, endless},
		{"once", "condition: \"!has(object.spec.checked)\"\n\t" + `patch: {merge: {spec: {checked: "${now}"}}}`, noon, "r Patch"},
		{"when it is old", "condition: now - timestamp(object.spec.?checked.orValue('2026-05-01T00:00:00Z')) > duration('24h')\n\tpatch: {merge: {spec: {checked: \"${now}\"}}}", noon, "r Patch"},
		{"the hour", hourly, noon, "r Patch"},
		{"the hour, a second before the next", hourly, "2026-06-01T12:59:59Z", "r Patch"},
		{"the hour, two seconds before the next", hourly, "2026-06-01T12:59:58Z", "r Patch"},
		{"the hour, three seconds before the next", hourly, "2026-06-01T12:59:57Z", "r Patch"},
		{"an age that is reached in a second", "condition: now > timestamp('2026-06-01T12:00:00Z')\n\tpatch: {merge: {spec: {old: true}}}", noon, ""},
		{"an age that has just been reached", "patches: [{merge: {spec: {always: true}}}, {merge: {spec: {old: \"${now > timestamp('2026-06-01T12:00:00Z')}\"}}}]", noon, "r Patch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, rule("r", "recheckAfter: 1h\n\t"+tc.spec)), `{metadata: {name: a}, spec: {}}`, at(tc.at))
			want := []string{}
			if tc.want != "" {
				want = append(want, tc.want)
			}
			if diff := cmp.Diff(want, outcomes(res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if res.Recheck.IsZero() {
				t.Error("it is not asked again")
			}
		})
	}
}
