package engine

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A replicas path that becomes known late makes objects be read again: --once waits
// for that, too.
func TestOnceWaitsForFieldsThatAreReadLate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.crd(group, `    subresources:
      scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}`)
	f.create(widgets, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {copies: 1}}`, group)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	var widgetReads atomic.Int32
	begin := time.Now()
	until := func(d time.Duration) { time.Sleep(time.Until(begin.Add(d))) }
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		switch {
		case r.Method != http.MethodGet:
		case strings.HasSuffix(r.URL.Path, "/"+crds.Resource):
			until(1500 * time.Millisecond) // many CRDs with large schemas
		case strings.HasSuffix(r.URL.Path, "/configmaps"):
			until(2500 * time.Millisecond)
		case strings.HasSuffix(r.URL.Path, "/widgets"):
			if n := widgetReads.Add(1); n > 1 {
				time.Sleep(3 * time.Second) // many widgets
			}
		}
		return next.RoundTrip(r)
	})
	e, err := New(f.options(config, Options{}, rule("scale", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
patch: {subresource: scale, merge: {spec: {replicas: 4}}}`, group)), rule("label", `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {a: "1"}}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	summary, err := e.Once(t.Context())
	if err != nil || summary.Fixed != 2 {
		t.Errorf("%+v after %d reads of the widgets, want 2 fixed: %v", summary, widgetReads.Load(), err)
	}
}
