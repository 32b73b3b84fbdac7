package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/gallery"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

const examplesFolder = "../../examples"

// There is one evaluator: fix, test, diff and run make the same of each object
// of the examples, the last on a real API server.
func TestExamplesComeOutTheSameEverywhere(t *testing.T) {
	examples := gallery.Read(t, examplesFolder)
	for _, x := range examples {
		t.Run(x.Name, func(t *testing.T) {
			e := &offlineExample{T: t, dir: x.Dir, name: x.Name, before: manifestObjects(t, x.Dir+"/before.yaml"), after: manifestObjects(t, x.Dir+"/after.yaml")}
			if len(e.before) == 0 || len(e.before) != len(e.after) {
				t.Fatalf("%d objects before and %d after", len(e.before), len(e.after))
			}
			t.Run("fix", func(t *testing.T) { e.in(t).fix() })
			t.Run("diff", func(t *testing.T) { e.in(t).diff() })
			t.Run("test", func(t *testing.T) { e.in(t).test() })
		})
	}
	t.Run("live", func(t *testing.T) { liveExamples(t, examples) })
}

// offlineExample is an example as the commands without a cluster read it.
type offlineExample struct {
	*testing.T
	dir, name     string
	before, after []map[string]any
}

func (e *offlineExample) in(t *testing.T) *offlineExample {
	out := *e
	out.T = t
	return &out
}

// args are the arguments that give an example's rule and all that it needs.
func (e *offlineExample) args(command string, more ...string) []string {
	args := []string{command, "--builtin", "none", "--rules", e.dir + "/rule.yaml"}
	if !exists(e.dir + "/rule.yaml") {
		args = []string{command, "--builtin", e.name}
	}
	if exists(e.dir + "/crd.yaml") {
		args = append(args, "--crds", e.dir+"/crd.yaml")
	}
	if exists(e.dir + "/objects.yaml") {
		args = append(args, "--objects", e.dir+"/objects.yaml")
	}
	if now := e.now(); now != "" {
		args = append(args, "--now", now)
	}
	return append(args, more...)
}

func (e *offlineExample) now() string {
	now, _ := os.ReadFile(e.dir + "/now") // most have none
	return strings.TrimSpace(string(now))
}

func (e *offlineExample) fix() {
	want, err := os.ReadFile(e.dir + "/after.yaml")
	if err != nil {
		e.Fatal(err)
	}
	code, out, told := invoke(e.T, e.args("fix", e.dir+"/before.yaml")...)
	if diff := cmp.Diff(string(want), out); code != exitFine || diff != "" {
		e.Errorf("exit code %d (-after.yaml +fix):\n%s\n%s", code, diff, told)
	}
}

// diff tells of the objects that differ and no others, and its operations lead
// from one state to the other.
func (e *offlineExample) diff() {
	code, out, told := invoke(e.T, e.args("diff", "-o", "json", e.dir+"/before.yaml")...)
	if code != exitFindings {
		e.Fatalf("exit code %d\n%s", code, told)
	}
	changes := readChanges(e.T, out)
	for i, o := range e.before {
		got := o
		if c := changes[objectName(o)]; c != nil {
			got = c.apply(e.T, o)
			delete(changes, objectName(o))
		}
		if diff := cmp.Diff(e.after[i], got); diff != "" {
			e.Errorf("%s (-after.yaml +diff):\n%s", objectName(o), diff)
		}
	}
	for name := range changes {
		e.Errorf("%s is not in before.yaml", name)
	}
	if code, out, told := invoke(e.T, e.args("diff", e.dir+"/after.yaml")...); code != exitFine || out != "" {
		e.Errorf("after.yaml: exit code %d, %s\n%s", code, out, told)
	}
}

// test makes a RuleTest of the example: each object of it is a case.
func (e *offlineExample) test() {
	ruleTest := ruleTestOf(e)
	text, err := yaml.Marshal(ruleTest)
	if err != nil {
		e.Fatal(err)
	}
	dir := e.TempDir()
	for _, name := range []string{"rule.yaml", "crd.yaml"} {
		if data, err := os.ReadFile(filepath.Join(e.dir, name)); err == nil {
			write(e.T, filepath.Join(dir, name), data)
		}
	}
	write(e.T, filepath.Join(dir, "test.yaml"), text)
	if code, out, told := invoke(e.T, "test", filepath.Join(dir, "test.yaml")); code != exitFine || !strings.Contains(told, fmt.Sprintf("%d case", len(e.before))) {
		e.Errorf("exit code %d\n%s%s", code, out, told)
	}
}

// outcome is what fix makes of an object: of one that stays as it is, whether a
// rule is about it.
func (e *offlineExample) outcome(i int) string {
	if !patch.Equal(e.before[i], e.after[i]) {
		return "Patch"
	}
	text, err := yaml.Marshal(e.before[i])
	if err != nil {
		e.Fatal(err)
	}
	path := filepath.Join(e.TempDir(), "object.yaml")
	write(e.T, path, text)
	switch code, _, told := invoke(e.T, e.args("fix", "--check", "--require-match", path)...); {
	case code == exitFine:
		return "Pass"
	case code == exitFindings && strings.Contains(told, " 0 matched, 0 changed, 0 failures"):
		return "Skip"
	default:
		e.Fatalf("fix of %s alone: exit code %d\n%s", objectName(e.before[i]), code, told)
		return ""
	}
}

func ruleTestOf(e *offlineExample) map[string]any {
	spec := map[string]any{"rules": []any{"rule.yaml"}}
	if !exists(e.dir + "/rule.yaml") {
		spec["rules"] = []any{"builtin:" + e.name}
	}
	if exists(e.dir + "/crd.yaml") {
		spec["crds"] = []any{"crd.yaml"}
	}
	if now := e.now(); now != "" {
		spec["now"] = now
	}
	var context, cases []any
	if exists(e.dir + "/objects.yaml") {
		for _, o := range manifestObjects(e.T, e.dir+"/objects.yaml") {
			context = append(context, o)
		}
	}
	for i, o := range e.before {
		expect := map[string]any{"exactObject": e.after[i], "outcome": e.outcome(i)}
		cases = append(cases, map[string]any{"name": fmt.Sprintf("%d: %s", i, objectName(o)), "object": o, "expect": expect})
	}
	if context != nil {
		spec["context"] = context
	}
	spec["cases"] = cases
	return map[string]any{"apiVersion": "rectifier.dev/v1alpha1", "kind": "RuleTest", "metadata": map[string]any{"name": e.name}, "spec": spec}
}

// liveExamples puts the objects of all examples onto the API server: diff tells
// what run then does, and nothing after it.
func liveExamples(t *testing.T, examples []*gallery.Example) {
	cp := testcluster.Start(t)
	c := gallery.NewCluster(t, testcluster.Dynamic(t), examples)
	dir := t.TempDir()
	wrong := map[string]bool{}
	for _, x := range examples {
		c.Create(x)
		write(t, filepath.Join(dir, "rules", x.Name+".yaml"), []byte(x.LimitedRule(t, c.Catalog)))
		for i, o := range x.Before {
			wrong[objectName(o)] = c.Check(o, x.After[i]) != nil
		}
	}
	args := []string{"--builtin", "none", "--rules", filepath.Join(dir, "rules"), "--kubeconfig", cp.KubeconfigFile()}
	diff := func(more ...string) (int, map[string]*jsonChange) {
		code, out, told := invoke(t, slices.Concat([]string{"diff", "--cluster", "-o", "json"}, args, more)...)
		if code != exitFine && code != exitFindings {
			t.Fatalf("diff ends with %d\n%s", code, told)
		}
		return code, readChanges(t, out)
	}

	var changes map[string]*jsonChange
	testcluster.Eventually(t, 20*time.Second, func() error { // some must be a second old
		_, changes = diff()
		return sameObjects(wrong, changes)
	})
	for _, x := range examples {
		for i, o := range x.Before {
			checkPrediction(c, x.Name, changes[objectName(o)], o, x.After[i])
		}
	}
	_, tried := diff("--server-dry-run")
	if err := sameObjects(wrong, tried); err != nil {
		t.Errorf("with --server-dry-run: %v", err)
	}
	for _, x := range examples {
		for i, o := range x.Before {
			change := tried[objectName(o)]
			if change != nil && len(change.Server) > 0 {
				t.Errorf("%s: the server adds %v", objectName(o), change.Server)
			}
			checkPrediction(c, x.Name, change, o, x.After[i])
		}
	}

	code, out, told := invoke(t, slices.Concat([]string{"run", "--once"}, args)...)
	if code != exitFine {
		t.Fatalf("run --once ends with %d: %s\n%s", code, out, told)
	}
	for _, x := range examples {
		for i, o := range x.Before {
			if err := c.Check(o, x.After[i]); err != nil {
				t.Errorf("example %s after run: %v", x.Name, err)
			}
		}
	}
	if code, changes := diff(); code != exitFine || len(changes) > 0 {
		t.Errorf("after run, diff ends with %d and shows %v", code, changes)
	}
}

// checkPrediction applies what diff tells of a live object to it.
func checkPrediction(c *gallery.Cluster, example string, change *jsonChange, before, after map[string]any) {
	c.Helper()
	u := &unstructured.Unstructured{Object: before}
	client, _ := c.Resource(u)
	live, err := client.Get(c.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	predicted := live.Object
	if change != nil {
		predicted = change.apply(c.T, live.Object)
	}
	if err := gallery.Holds(predicted, before, after); err != nil {
		c.Errorf("example %s: %s as diff tells: %v", example, objectName(before), err)
	}
}

// sameObjects compares the objects that are wrong with those that diff tells of.
func sameObjects(wrong map[string]bool, changes map[string]*jsonChange) error {
	var want, got []string
	for name, is := range wrong {
		if is {
			want = append(want, name)
		}
	}
	for name, c := range changes {
		if c.Error != "" {
			return fmt.Errorf("%s: %s", name, c.Error)
		}
		for _, r := range c.Rules {
			if r["outcome"] != outcomePatch {
				return fmt.Errorf("%s: %v", name, r)
			}
		}
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("other objects (-wrong +diff):\n%s", diff)
	}
	return nil
}

// jsonChange is an object of diff's JSON output.
type jsonChange struct {
	Rules         []map[string]any
	Patch, Server []any
	Error         string
}

func (c *jsonChange) apply(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	ops, err := patch.ParseOps(c.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.ApplyOps(object, ops)
	if err != nil {
		t.Fatalf("apply the patch to %s: %v", objectName(object), err)
	}
	return out
}

// readChanges reads diff's JSON output: the objects by name.
func readChanges(t *testing.T, out string) map[string]*jsonChange {
	t.Helper()
	var report map[string]any
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("read the output of diff: %v\n%s", err, out)
	}
	changes := map[string]*jsonChange{}
	objects, _ := report["objects"].([]any)
	for _, o := range objects {
		m, _ := o.(map[string]any)
		c := &jsonChange{}
		c.Error, _ = m["error"].(string)
		c.Patch, _ = m["patch"].([]any)
		c.Server, _ = m["server"].([]any)
		rules, _ := m["rules"].([]any)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			c.Rules = append(c.Rules, rule)
		}
		name := fmt.Sprintf("%v %v/%v", m["kind"], m["namespace"], m["name"])
		if changes[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		changes[name] = c
	}
	return changes
}

func objectName(o map[string]any) string {
	meta, _ := o["metadata"].(map[string]any)
	return fmt.Sprintf("%v %v/%v", o["kind"], meta["namespace"], meta["name"])
}

func manifestObjects(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := manifest.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, o := range file.Objects() {
		out = append(out, o.Value())
	}
	return out
}

// invoke runs a command line.
func invoke(t *testing.T, args ...string) (code int, out, told string) {
	t.Helper()
	var stdout, stderr lockedBuffer
	code = execute(t.Context(), args, streams{strings.NewReader(""), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
