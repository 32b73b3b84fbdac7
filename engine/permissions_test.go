package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var patchConfigMaps = permission{resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace: "a"}

func TestPermissions(t *testing.T) {
	var p permissions
	to := patchConfigMaps
	if w := p.wait(to, now); w != 0 {
		t.Error("missing from the start")
	}
	if w, news := p.forbidden(to, "c", now); w != firstParking || !news {
		t.Errorf("the first wait is %v, news: %v", w, news)
	}
	if w, news := p.forbidden(to, "c", now.Add(time.Second)); w != firstParking-time.Second || news {
		t.Errorf("a second 403 within the wait makes it %v, news: %v", w, news)
	}
	for _, other := range []permission{{to.resource, "scale", "a"}, {to.resource, "", "b"}} {
		if w := p.wait(other, now); w != 0 {
			t.Errorf("%+v is missing too", other)
		}
	}
	if w, _ := p.forbidden(to, "c", now.Add(firstParking+1)); w != 2*firstParking {
		t.Errorf("the second wait is %v", w)
	}
	p.granted(to)
	if w := p.wait(to, now); w != 0 || len(p.list()) != 0 {
		t.Error("still missing after a write")
	}
}

// The server is asked for a permission that no write tries any more, more and
// more seldom, and what nobody needs is forgotten. No write waits for that.
func TestPermissionsThatNobodyNeeds(t *testing.T) {
	var p permissions
	p.forbidden(patchConfigMaps, "first", now)
	p.forbidden(patchConfigMaps, "last", now)
	asked := 0
	for at := now; at.Before(now.Add(forgetParking)); at = at.Add(time.Second) {
		due := p.due(at)
		if at.Before(now.Add(firstParking)) && len(due) != 0 {
			t.Fatalf("asked for after %v, before a write may be tried", at.Sub(now))
		}
		if at.After(now.Add(firstParking)) && p.wait(patchConfigMaps, at) != 0 {
			t.Fatalf("a write has to wait after %v, although none was forbidden again", at.Sub(now))
		}
		if name, ok := due[patchConfigMaps]; ok {
			asked++
			if name != "last" {
				t.Errorf("asked for %q", name)
			}
		}
	}
	if asked < 3 || asked > 10 || len(p.list()) != 1 {
		t.Errorf("asked %d times; %d are missing", asked, len(p.list()))
	}
	// Writes that try it themselves leave nothing to ask for.
	for at := now.Add(forgetParking); at.Before(now.Add(2 * forgetParking)); at = at.Add(time.Second) {
		if p.wait(patchConfigMaps, at) == 0 {
			p.forbidden(patchConfigMaps, "last", at)
		}
		if n := len(p.due(at)); n != 0 {
			t.Fatalf("%d are asked for", n)
		}
	}
	if p.due(now.Add(4 * forgetParking)); len(p.list()) != 0 {
		t.Error("not forgotten")
	}
}

// A permission that comes when nothing is left to write is not called missing any
// more.
func TestAPermissionThatNobodyNeedsAnyMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.grant("namespaces", "list", "watch")
	f.grant("configmaps", "list", "watch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	f.configMap("c")
	registry := prometheus.NewRegistry()
	f.startAs(config, Options{Registerer: registry}, sets("r", "k", "merge", "c"))
	f.wantReadyz(soon, "forbidden: patch")
	f.merge(configmaps, "c", `{"data":{"k":"yes"}}`)
	f.grant("configmaps", "patch")
	testcluster.Eventually(t, 30*time.Second, func() error {
		if _, body := f.readyz(); strings.Contains(body, "forbidden") {
			return fmt.Errorf("still missing:\n%s", body)
		}
		return nil
	})
	if v := metric(t, registry, "rectifier_rule_parked", "r"); v != 0 {
		t.Errorf("rectifier_rule_parked is %v", v)
	}
}
