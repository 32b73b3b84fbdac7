package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestDryRunAndAuditWriteNothing(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	label := `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {a: "1"}}}}`
	e, err := New(f.options(config, Options{DryRun: true}, rule("label", label)))
	if err != nil {
		t.Fatal(err)
	}
	summary, err := e.Once(t.Context())
	if err != nil || summary != (Summary{WouldBe: 1}) {
		t.Errorf("dry run: %+v, %v", summary, err)
	}
	// CLI-08: what an Audit rule would do is not seen by the rules behind it.
	e, err = New(f.options(config, Options{}, rule("label", label+"\nmode: Audit"), rule("later", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?labels.?a.orValue('') == '1'
patch: {merge: {metadata: {labels: {b: "1"}}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if summary, err = e.Once(t.Context()); err != nil || summary != (Summary{Audit: 1}) {
		t.Errorf("audit: %+v, %v", summary, err)
	}
	if _, all := f.writes("configmaps"); all != 0 {
		t.Errorf("%d requests, want none", all)
	}
}

func TestOnceFixesEverythingAndEnds(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		f.create(deployments, deploymentYAML, fmt.Sprintf("web-%d", i), "5", 3)
	}
	f.create(deployments, deploymentYAML, "odd", "abc", 3)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(f.options(config, Options{}, expectedReplicas(t)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	summary, err := e.Once(ctx)
	if err != nil || summary != (Summary{Fixed: 20, Failed: 1}) {
		t.Errorf("got %+v, %v; want 20 fixed and 1 failed", summary, err)
	}
	for i := range 20 {
		f.eventually(0, deployments, fmt.Sprintf("web-%d", i), int64(5), "spec", "replicas")
	}
	if got := f.eventsOn("web-19"); len(got) != 1 {
		t.Errorf("the events were not written before the end: %q", got)
	}
}

func TestOnceMissesNothing(t *testing.T) {
	f := newFixture(t)
	const n = 300
	for i := range n {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		e, err := New(f.options(config, Options{DryRun: true}, rule("mark", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: ["c-*"]}
patch: {merge: {data: {fixed: "yes"}}}`), rule("apply", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [c-1]}
patch: {applyConfiguration: {metadata: {labels: {a: "1"}}}}`)))
		if err != nil {
			t.Fatal(err)
		}
		if summary, err := e.Once(t.Context()); err != nil || summary != (Summary{WouldBe: n}) {
			t.Errorf("got %+v, %v; want %d", summary, err, n)
		}
	}
}

func TestOnceTellsWhatItCouldNotDo(t *testing.T) {
	f := newFixture(t)
	f.grant("configmaps", "list", "watch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	mark := rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`)
	absent := rule("absent", `
resource: {group: nowhere.example.io, version: v1, resource: gadgets}
patch: {merge: {data: {fixed: "yes"}}}`)
	for _, tc := range []struct {
		name  string
		rules []string
		opts  Options
		want  error
		says  string
	}{
		{"no right to write", []string{mark}, Options{}, ErrUnreachable, "forbidden: patch configmaps in namespace " + f.ns + "; parked: mark"},
		{"nothing served", []string{absent}, Options{}, ErrParked, "nowhere.example.io/v1/gadgets: not served by the cluster; parked: absent"},
		{"only the right to see Namespaces is missing", []string{mark}, Options{DryRun: true}, nil, ""},
		{"limited to a Namespace", []string{mark}, Options{DryRun: true, Namespaces: []string{f.ns}}, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := New(f.options(config, tc.opts, tc.rules...))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err = e.Once(ctx)
			if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v; want %v with %q", err, tc.want, tc.says)
			}
		})
	}
}
