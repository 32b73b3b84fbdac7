package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// The log says which fields were put right, for as many as can be read, and what
// they hold stays with the object.
func TestTheLogSaysWhatWasFixed(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	about := func(name, spec string) string {
		return rule(name, "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS], names: ["+name+"]}\n"+spec)
	}
	key := strings.Repeat("k", 200)
	f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {token: hiddenkey}}`)
	f.start(
		about("one", "patch: {merge: {metadata: {labels: {team: '${object.metadata.annotations.private}'}}}}\nevent: {message: 'it is ${object.metadata.annotations.private}'}"),
		about("many", "patch: {merge: {data: {e: x, d: x, c: x, b: x, a: x}}}"),
		about("long", "patch: {merge: {data: {a"+key+": x, b"+key+": x}}}"),
		about("copied", "lookups: [{name: s, resource: {version: v1, resource: secrets}, namespace: NS}]\ncondition: 'object.?data.orValue({}).size() == 0'\n"+
			"patch: {merge: {data: \"${{string(lookups.s[0].data.token): 'x'}}\"}}"),
	)
	for _, name := range []string{"one", "many", "long", "copied"} {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, annotations: {private: hidden-value}}}`, name)
	}
	for name, want := range map[string]string{
		"one":    `fields="metadata.labels.team"`,
		"many":   `fields="data.a, data.b, data.c and 2 more"`,
		"copied": `fields="data"`,
		"long":   `fields="data.a` + key + ", data.b" + key[:83] + `…"`,
	} {
		testcluster.Eventually(t, soon, func() error {
			told := logs.matching(`"Fixed"`)
			if !slices.ContainsFunc(told, func(line string) bool {
				return strings.Contains(line, `rules=["`+name+`"]`) && strings.Contains(line, want)
			}) {
				return fmt.Errorf("%s: the log has no %s:\n%s", name, want, strings.Join(told, ""))
			}
			return nil
		})
	}
	for _, hidden := range []string{"hidden-value", "aGlkZGVua2V5"} {
		if told := logs.matching(hidden); len(told) > 0 {
			t.Errorf("the log holds data of objects: %q", told)
		}
	}
}
