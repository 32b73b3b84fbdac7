package engine

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

// marker is a value of objects, which is to be nowhere in the log.
const marker = "m4rker"

// What objects hold is not in the log of a running engine, whatever becomes of
// them: fixed, failed on, contended, refused with a message that quotes them. From
// verbosity 4 on it may be.
func TestValuesOfObjectsAreNotLogged(t *testing.T) {
	f := newFixture(t)
	f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		if r.Name == "refused" {
			return testwebhook.Deny(422, "it has "+marker)
		}
		return testwebhook.Answer{}
	})
	on := func(name, spec string) string {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, annotations: {rectifier.dev/skip-until: %s}, labels: {a: %s}}, data: {number: %s, other: x}}`,
			name, map[bool]string{true: marker, false: `"2020-01-01T00:00:00Z"`}[name == "bad-opt-out"], marker, marker)
		return rule(name, "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS], names: ["+name+"]}\n"+spec)
	}
	set := []string{
		on("fixed", `patch: {merge: {data: {copy: "${object.data.number}"}}}`),
		on("fails", "condition: object.data[object.data.number] == 'x'\npatch: {merge: {data: {a: b}}}"),
		on("patch-fails", `patch: {merge: {data: {copy: "${object.data[object.data.number]}"}}}`),
		on("message-fails", "mode: Audit\npatch: {merge: {data: {a: b}}}\nevent: {message: \"${object.data[object.data.number]}\"}"),
		on("refused", `patch: {merge: {data: {copy: "${object.data.number}"}}}`),
		on("invalid", `patch: {merge: {data: {"bad key": "${object.data.number}"}}}`),
		on("bad-opt-out", `patch: {merge: {data: {copy: "${object.data.number}"}}}`),
	}
	logs := captureAllAt(t, valuesAt-1)
	f.startAs(f.everything(), Options{}, set...)
	for name, want := range map[string]string{
		"fixed": "Normal Rectified", "fails": "Warning EvaluationFailed: rule fails: evaluate the condition: ", "patch-fails": "Warning EvaluationFailed",
		"refused": "Warning PatchRefused", "invalid": "Warning PatchRefused", "bad-opt-out": "Warning BadOptOut",
	} {
		f.wantEventWithin(soon, name, want)
	}
	f.wantLogged(logs, "Would be fixed (mode Audit)")
	f.stop()
	for _, line := range logs.matching(marker) {
		t.Errorf("a value is in the log: %s", line)
	}
	if got := strings.Join(f.eventsOn("fails"), ""); !strings.Contains(got, marker) {
		t.Errorf("the Event does not tell why: %s", got)
	}

	logs = captureAllAt(t, valuesAt)
	f.startAs(f.everything(), Options{}, set...)
	f.wantLogged(logs, marker)
}

// What a dry run would do is told in the words of the rule, and not in those of an
// error.
func TestValuesOfObjectsAreNotLoggedInADryRun(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {number: %s}}`, marker)
	logs := captureLogs(t)
	f.startAs(f.everything(), Options{DryRun: true},
		rule("told", "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {a: b}}}\nevent: {message: chosen words}"),
		rule("untold", "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {c: d}}}\nevent: {message: \"${object.data[object.data.number]}\"}"))
	f.wantLogged(logs, `message="chosen words"`)
	f.wantLogged(logs, "an expression failed on the object")
	f.stop()
	for _, line := range logs.matching(marker) {
		t.Errorf("a value is in the log: %s", line)
	}
}

// captureAllAt is captureLogsAt with klog's own verbosity, which counts where no
// logger is handed on.
func captureAllAt(t *testing.T, verbosity int) *lines {
	t.Helper()
	var level klog.Level
	if err := level.Set(strconv.Itoa(verbosity)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = level.Set("0") })
	return captureLogsAt(t, verbosity)
}

func (f *fixture) wantLogged(logs *lines, text string) {
	f.Helper()
	testcluster.Eventually(f, soon, func() error {
		if len(logs.matching(text)) == 0 {
			return errNot{"not logged", text}
		}
		return nil
	})
}
