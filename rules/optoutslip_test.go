package rules

import (
	"slices"
	"testing"
	"time"
)

// A name in the skip annotation that is nearly that of a rule is told of, unless it
// may well be the rule of somebody else.
func TestMisspeltOptOut(t *testing.T) {
	const patch = "patch: {merge: {metadata: {labels: {a: b}}}}"
	var sources []string
	for _, name := range []string{"dev-queues-small", "limits-a", "10-quota", "team", "web", "default-team", "pod-labels"} {
		sources = append(sources, rule(name, patch))
	}
	sources = append(sources, rule("guard-dogs", "optOut: Forbidden\n\t"+patch))
	set := load(t, sources...)
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	matched := func() []*Rule {
		return slices.DeleteFunc(slices.Clone(set.All()), func(r *Rule) bool { return r.Name == "pod-labels" })
	}
	object := func(annotations ...string) map[string]any {
		all := map[string]any{}
		for i := 0; i < len(annotations); i += 2 {
			all[annotations[i]] = annotations[i+1]
		}
		return map[string]any{"metadata": map[string]any{"name": "x", "annotations": all}}
	}
	for _, tc := range []struct {
		name, skip, until string
		meant             string
	}{
		{name: "a letter is missing", skip: "dev-queue-small", meant: "dev-queues-small"},
		{name: "beside others", skip: "team, default-taem ,*", meant: "default-team"},
		{name: "two slips in a long name", skip: "defalt-teams", meant: "default-team"},
		{name: "one in a short name", skip: "taem", meant: "team"},
		{name: "capital letters", skip: "Default-Team", meant: "default-team"},
		{name: "in force", skip: "dev-queue-small", until: "2026-06-02T00:00:00Z", meant: "dev-queues-small"},
		{name: "an end that is no time", skip: "dev-queue-small", until: "soon", meant: "dev-queues-small"},

		{name: "right", skip: "dev-queues-small,limits-a,10-quota"},
		{name: "far off", skip: "cost-center"},
		{name: "not a slip in a short name", skip: "teeth"},
		{name: "one of a family", skip: "limits-b,20-quota,9-quota,wob"},
		{name: "no longer in force", skip: "dev-queue-small", until: "2026-05-02T00:00:00Z"},
		{name: "a rule that does not ask", skip: "guard-dog"},
		{name: "a rule that does not look at the object", skip: "pod-label"},
		{name: "nothing", skip: " , "},
		{name: "all", skip: "*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			annotations := []string{SkipAnnotation, tc.skip}
			if tc.until != "" {
				annotations = append(annotations, SkipUntilAnnotation, tc.until)
			}
			for where, objects := range map[string][2]map[string]any{"the object": {object(annotations...), nil}, "its Namespace": {object(), object(annotations...)}} {
				meant, err := MisspeltOptOut(objects[0], objects[1], matched, set, now)
				got := ""
				if meant != nil {
					got = meant.Name
				}
				if got != tc.meant || (err == nil) != (meant == nil) {
					t.Errorf("%s: meant is %q with %v, not %q", where, got, err, tc.meant)
				}
			}
		})
	}
	_, err := MisspeltOptOut(object(SkipAnnotation, "dev-queue-small"), nil, matched, set, now)
	want := `the annotation rectifier.dev/skip on the object names "dev-queue-small", which is no rule (did you mean "dev-queues-small"?): this rule does not leave the object alone`
	if err == nil || err.Error() != want {
		t.Errorf("it says %v", err)
	}
}
