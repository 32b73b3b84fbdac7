package engine

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

// SEC-01: at the highest verbosity, whatever the API server quotes of a Secret
// when it refuses or fails, nothing of it is in the log, in Events, in metrics or
// in readiness detail.
//
// The test's own client logs what it does, too: it reads and writes no Secret
// while logs are captured.
func TestRedactionAtTheHighestVerbosity(t *testing.T) {
	f := newFixture(t)
	quotes := func(r *testwebhook.Request) string {
		return fmt.Sprint("s3cr3t and ", r.New.Object["data"])
	}
	f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		var code int32
		if _, err := fmt.Sscanf(r.Name, "code-%d", &code); err == nil {
			out := testwebhook.Deny(code, quotes(r))
			out.Denied.Details = &metav1.StatusDetails{Name: r.Name, Kind: quotes(r), Causes: []metav1.StatusCause{{Type: "Weak", Field: quotes(r), Message: quotes(r)}}}
			return out
		}
		if r.Name == "garbage" {
			return testwebhook.Answer{Body: quotes(r)}
		}
		return testwebhook.Answer{}
	})
	refusals := map[string]string{ // by the Secret's name, which is its rule's too
		"unknown-field": `{merge: {dta: {x: eA==}}}`,
		"not-base64":    `{merge: {data: {x: "%%%"}}}`,
		"immutable":     `{merge: {type: other}}`,
		"does-not-fit":  `{json: [{op: replace, path: /metadata/labels/x, value: "1"}]}`,
		"garbage":       `{merge: {metadata: {labels: {x: "1"}}}}`,
	}
	for _, code := range []int{400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503} {
		refusals[fmt.Sprintf("code-%d", code)] = `{merge: {metadata: {labels: {x: "1"}}}}`
	}
	var set []string
	for name, patch := range refusals {
		f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: %s}, data: {password: czNjcjN0}}`, name)
		set = append(set, rule(name, "resource: {version: v1, resource: secrets}\nmatch: {namespaces: [NS], names: ["+name+"]}\npatch: "+patch))
	}
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	// client-go asks the verbosity of klog, too, when it makes a client.
	var level klog.Level
	if err := level.Set("10"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = level.Set("0") })
	logs := captureLogsAt(t, 10)
	f.startAs(config, Options{Registerer: prometheus.NewRegistry()}, set...)
	for name := range refusals {
		f.wantEvent(name, "Warning ")
	}
	list, err := f.client.Resource(eventsGVR).Namespace(f.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	metrics := httptest.NewRecorder()
	f.engine.Handler().ServeHTTP(metrics, httptest.NewRequest("GET", "/metrics", nil))
	_, readyz := f.readyz()
	f.stop()
	if len(logs.matching(`"Response Body"`)) == 0 {
		t.Error("no body is logged, not even of the test's own requests: this is not the highest verbosity")
	}
	for output, text := range map[string]string{
		"the log": strings.Join(logs.matching(""), ""), "Events": string(events), "metrics": metrics.Body.String(), "readyz": readyz,
	} {
		if len(text) == 0 {
			t.Errorf("there is nothing in %s", output)
		}
		for _, secret := range []string{"czNjcjN0", "s3cr3t"} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s: …%s…", output, text[max(0, i-300):min(len(text), i+100)])
			}
		}
	}
}
