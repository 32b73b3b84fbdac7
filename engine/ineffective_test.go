package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

// FGT-03: a quantity that the API server stores in another form is written once,
// and told.
func TestQuantitiesInAnotherForm(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	var set []string
	quantities := map[string]struct{ resource, written, stored string }{
		"whole-cpu": {"cpu", "1000m", "1"},
		"half-cpu":  {"cpu", "0.5", "500m"},
		"memory":    {"memory", "1000M", "1G"},
	}
	for name, q := range quantities {
		f.create(deployments, deploymentYAML, name, "3", 3)
		set = append(set, rule(name, fmt.Sprintf(`
resource: {group: apps, version: v1, resource: deployments}
match: {namespaces: [NS], names: [%[1]s]}
condition: object.spec.template.spec.containers[0].?resources.?requests[?'%[2]s'].orValue('') != '%[3]s'
patch: {json: [{op: add, path: /spec/template/spec/containers/0/resources, value: {requests: {%[2]s: "%[3]s"}}}]}`, name, q.resource, q.written)))
	}
	f.start(set...)
	for name := range quantities {
		f.wantEvent(name, "Warning Ineffective: rule "+name)
	}
	f.settle("deployments")
	for name, q := range quantities {
		f.wantTold(logs, name, "Warning Ineffective")
		if got := f.requestsAbout("deployments", name); len(got) != 1 {
			t.Errorf("%d requests to %s, want 1", len(got), name)
		}
		stored := fmt.Sprint(f.get(deployments, name).Object["spec"])
		if want := fmt.Sprintf("requests:map[%s:%s]", q.resource, q.stored); !strings.Contains(stored, want) {
			t.Errorf("%s: %s is not stored as %s: %s", name, q.written, want, stored)
		}
	}
}

// What has no effect is seen again at a resync: the webhook that sets it back may
// have gone, and nothing on the object tells of it.
func TestAResyncEndsAHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	w := f.webhook(testwebhook.Mutating, func(r *testwebhook.Request) testwebhook.Answer {
		if r.Wants("fixed") {
			return r.SetBack("fixed", true)
		}
		return testwebhook.Answer{}
	})
	f.configMap("web")
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.startAs(config, Options{Resync: 500 * time.Millisecond}, sets("mark", "fixed", "merge", "web"))
	testcluster.Eventually(t, soon, func() error {
		if got := len(f.requestsTo("web")); got < 3 {
			return fmt.Errorf("%d attempts", got)
		}
		return nil
	})
	f.wantTold(logs, "web", "Warning Ineffective: rule mark")
	w.Judge(admit)
	f.eventually(soon, configmaps, "web", "yes", "data", "fixed")
	f.wantTold(logs, "web", "Warning Ineffective: rule mark", "Normal Rectified")
	f.wantPaced("configmaps", "web", 0)
}
