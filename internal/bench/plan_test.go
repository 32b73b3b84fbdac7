package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A pattern is of whole names, and one that matches none is refused.
func TestPatternOfScenarios(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		wanted  []string // nil: refused
		refusal string
	}{
		{pattern: "churn", wanted: []string{"churn"}},
		{pattern: "sync|large", wanted: []string{"sync", "large"}},
		{pattern: "e.*", wanted: []string{"empty", "events"}},
		{pattern: "nonsense", refusal: `no scenario is called "nonsense"; there are offline, empty, start, `},
		{pattern: "syn", refusal: `no scenario is called "syn"`},
		{pattern: "(", refusal: "read the pattern of scenarios"},
	} {
		t.Run(tc.pattern, func(t *testing.T) {
			p, err := newPlan("", false, 5, tc.pattern)
			if tc.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refusal) {
					t.Fatalf("got the error %v, want %q", err, tc.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var wanted []string
			for _, s := range scenarios {
				if p.wants(s.name) {
					wanted = append(wanted, s.name)
				}
			}
			if diff := cmp.Diff(tc.wanted, wanted); diff != "" {
				t.Errorf("scenarios (-want +got):\n%s", diff)
			}
			if p.complete() {
				t.Error("it counts as complete")
			}
		})
	}
}

func TestCompletePlans(t *testing.T) {
	for _, tc := range []struct {
		name     string
		quick    bool
		runs     int
		complete bool
	}{
		{"five rounds", false, 5, true},
		{"four rounds", false, 4, false},
		{"a quick look", true, 5, false},
	} {
		p, err := newPlan("", tc.quick, tc.runs, "")
		if err != nil || p.complete() != tc.complete {
			t.Errorf("%s: complete %v, %v", tc.name, p.complete(), err)
		}
	}
	for size, runs := range map[string]int{"small": 5, "": 0} {
		if _, err := newPlan(size, false, runs, ""); err == nil {
			t.Errorf("size %q in %d rounds is not refused", size, runs)
		}
	}
}

// Help lists the scenarios, and no flag but the program's own.
func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if _, err := parse([]string{"-h"}, &out); err == nil {
		t.Error("-h goes on")
	}
	for _, s := range scenarios {
		if !strings.Contains(out.String(), "  "+s.name+" ") {
			t.Errorf("%s is not listed", s.name)
		}
	}
	if strings.Contains(out.String(), "kubeconfig") {
		t.Errorf("there is a flag of some library:\n%s", &out)
	}
}

func TestCommandLine(t *testing.T) {
	for line, refusal := range map[string]string{
		"-runs 3 -bench churn -quick": "",
		"-keep 500 -churn 250":        "",
		"-churn 250":                  "-churn is for -keep",
		"-keep -1":                    "not negative",
		"-keep 5 -churn 100001":       "at most 100000",
		"churn":                       `"churn" is no flag`,
		"-nosuch":                     "not defined",
	} {
		var out bytes.Buffer
		_, err := parse(strings.Fields(line), &out)
		if (err != nil) != (refusal != "") || !strings.Contains(out.String(), refusal) {
			t.Errorf("%s: got %v, told %q, want %q", line, err, &out, refusal)
		}
	}
}

// What is run is listed, and the other way round.
func TestScenariosAreListed(t *testing.T) {
	run := append([]string{scenarioOffline, scenarioCustom, scenarioPods, scenarioLarge}, smallScenarios...)
	var listed []string
	for _, s := range scenarios {
		listed = append(listed, s.name)
	}
	slices.Sort(run)
	slices.Sort(listed)
	if diff := cmp.Diff(run, listed); diff != "" {
		t.Errorf("scenarios (-run +listed):\n%s", diff)
	}
}

// What -keep says can be typed as it stands: with profiles, and with an end.
func TestHowToProfile(t *testing.T) {
	text := howToProfile("/tmp/kubeconfig", 250)
	for _, want := range []string{"run --profiling --qps=-1 --kubeconfig /tmp/kubeconfig\n", "250 updates of a status a second", "profile?seconds=20", "Ctrl-C"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if text := howToProfile("/tmp/kubeconfig", 0); !strings.Contains(text, "-churn RATE") {
		t.Errorf("nothing says how to make work:\n%s", text)
	}
}
