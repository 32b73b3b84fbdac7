package engine

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

const anEvent = `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: %s}, eventTime: "2024-01-01T00:00:00.000000Z", type: Normal,
reportingController: %s, reportingInstance: x, action: a, reason: R, regarding: {kind: ConfigMap, namespace: %s, name: c}}`

// The engine's own Events are matched by no rule, on whatever way they come to be
// looked at: an informer's event, new rules, Once or a Preview.
func TestOwnEventsAreNeverMatched(t *testing.T) {
	for name, resource := range map[string]string{"core": "{version: v1, resource: events}", "events.k8s.io": "{group: events.k8s.io, version: v1, resource: events}"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.create(eventsGVR, anEvent, "own", ReportingController, f.ns)
			f.create(eventsGVR, anEvent, "other", "example.io/other", f.ns)
			team := func(v string) string {
				return rule("team", "resource: "+resource+`
condition: object.metadata.?labels.?team.orValue('') != '`+v+`'
patch: {merge: {metadata: {labels: {team: "`+v+`"}}}}`)
			}
			untouched := func() {
				t.Helper()
				if labels := f.get(eventsGVR, "own").GetLabels(); len(labels) > 0 {
					t.Errorf("the own Event has been changed: %v", labels)
				}
			}
			f.start(team("a"))
			f.eventually(soon, eventsGVR, "other", "a", "metadata", "labels", "team")
			f.reload(team("b"))
			f.eventually(soon, eventsGVR, "other", "b", "metadata", "labels", "team")
			f.stop() // when all that is queued has been looked at
			untouched()

			config, err := f.cp.User(f.user, "system:masters")
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(f.options(config, Options{}, team("c")))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // each fix could be told by one more Event
			defer cancel()
			if _, err := e.Once(ctx); err != nil {
				t.Error(err)
			}
			f.eventually(soon, eventsGVR, "other", "c", "metadata", "labels", "team")
			untouched()

			got, err := f.preview(PreviewOptions{}, nil, team("d"))
			if diff := cmp.Diff([]string{"Event other: team Patch"}, got); err != nil || diff != "" {
				t.Errorf("the preview: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// So is the Lease by which the engine leads; others are objects like any.
func TestTheOwnLeaseIsNeverMatched(t *testing.T) {
	f := newFixture(t)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.create(leasesGVR, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: other}}`)
	team := func(v string) string {
		return rule("team", `
resource: {group: coordination.k8s.io, version: v1, resource: leases}
patch: {merge: {metadata: {labels: {team: "`+v+`"}}}}`)
	}
	f.startAs(config, Options{Lease: types.NamespacedName{Namespace: f.ns, Name: "own"}}, team("a"))
	f.eventually(soon, leasesGVR, "other", "a", "metadata", "labels", "team")
	f.reload(team("b"))
	f.eventually(soon, leasesGVR, "other", "b", "metadata", "labels", "team")
	if subjects := f.engine.subjects(leasesGVR, PreviewOptions{}); len(subjects) == 0 {
		t.Error("a preview shows nothing")
	} else {
		for _, s := range subjects {
			if s.key.Namespace == f.ns && s.key.Name != "other" {
				t.Errorf("a preview shows %s", s.key.Name)
			}
		}
	}
	f.stop()
	if labels := f.get(leasesGVR, "own").GetLabels(); len(labels) > 0 {
		t.Errorf("the own Lease has been changed: %v", labels)
	}
}
