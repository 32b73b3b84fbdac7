package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// controller is a `rectifier run` under way.
type controller struct {
	*testing.T
	log    syncBuffer
	client dynamic.ResourceInterface // of ConfigMaps
}

// syncBuffer can be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startController runs `rectifier run` in a namespace until the test ends.
func startController(t *testing.T, args ...string) *controller {
	cluster, namespace := testcluster.Start(t), testcluster.Namespace(t)
	c := &controller{T: t, client: testcluster.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)}
	args = append([]string{"run", "--kubeconfig", cluster.KubeconfigFile(), "--namespace", namespace, "--bind-address", "127.0.0.1:0"}, args...)
	cmd := exec.Command("rectifier", args...) // TestMain makes it
	cmd.Stderr = &c.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if strings.Contains(c.log.String(), "DATA RACE") {
			t.Error("there is a data race")
		}
		if t.Failed() {
			t.Log(c.log.String())
		}
	})
	return c
}

func (c *controller) create(names ...string) {
	c.Helper()
	for _, name := range names {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		if _, err := c.client.Create(c.Context(), u, metav1.CreateOptions{}); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *controller) drift(name string) {
	c.Helper()
	if _, err := c.client.Patch(c.Context(), name, types.MergePatchType, []byte(`{"data":{"value":"drifted"}}`), metav1.PatchOptions{}); err != nil {
		c.Fatal(err)
	}
}

// allHave waits until all ConfigMaps have a value, and nothing else.
func (c *controller) allHave(value string) {
	c.Helper()
	testcluster.Eventually(c, 30*time.Second, func() error {
		list, err := c.client.List(c.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, u := range list.Items {
			if data := u.Object["data"]; fmt.Sprint(data) != fmt.Sprint(map[string]any{"value": value}) {
				return fmt.Errorf("%s has %v, not the value %s", u.GetName(), data, value)
			}
		}
		return nil
	})
}

func (c *controller) wantLog(part string) {
	c.Helper()
	testcluster.Eventually(c, 30*time.Second, func() error {
		if !strings.Contains(c.log.String(), part) {
			return fmt.Errorf("the log has no %q", part)
		}
		return nil
	})
}

var served = regexp.MustCompile(`Serving status, metrics and health checks" address="([^"]+)"`)

func (c *controller) readyz() string {
	c.Helper()
	m := served.FindStringSubmatch(c.log.String())
	if m == nil {
		c.Fatal("the log does not tell where health checks are served")
	}
	resp, err := http.Get("http://" + m[1] + "/readyz")
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return string(body)
}

// mount replaces what a folder holds, as the kubelet does for a ConfigMap.
type mount struct {
	*testing.T
	path    string
	version int
}

func (m *mount) swap(files map[string]string) {
	m.Helper()
	m.version++
	before, _ := os.Readlink(filepath.Join(m.path, "..data"))
	folder := fmt.Sprintf("..2026_%d", m.version)
	m.must(os.Mkdir(filepath.Join(m.path, folder), 0o755))
	for name, content := range files {
		m.must(os.WriteFile(filepath.Join(m.path, folder, name), []byte(content), 0o644))
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(m.path, name)); err != nil && !os.IsExist(err) {
			m.Fatal(err)
		}
	}
	m.must(os.Symlink(folder, filepath.Join(m.path, "..data_tmp")))
	m.must(os.Rename(filepath.Join(m.path, "..data_tmp"), filepath.Join(m.path, "..data")))
	if before != "" {
		m.must(os.RemoveAll(filepath.Join(m.path, before)))
	}
	links, err := filepath.Glob(filepath.Join(m.path, "*.yaml"))
	m.must(err)
	for _, link := range links {
		if _, ok := files[filepath.Base(link)]; !ok {
			m.must(os.Remove(link))
		}
	}
}

func (m *mount) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func configMapRule(name, key, value string) string {
	return "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n" +
		"  resource: {version: v1, resource: configmaps}\n  patch: {merge: {data: {" + key + ": " + value + "}}}\n"
}

// WCH-07, SEC-06: a controller follows a mounted ConfigMap with its rules: an
// edit, a mistake, its repair, the end of all rules, a new begin. --rule chooses
// among what is loaded anew as it did at the start.
func TestRunReloadsTheRules(t *testing.T) {
	rules := &mount{T: t, path: t.TempDir()}
	good, other := configMapRule("value", "value", "one"), configMapRule("other", "other", "yes")
	rules.swap(map[string]string{"value.yaml": good, "other.yaml": other})
	c := startController(t, "--rules", rules.path, "--builtin", "none", "--rule", "value")
	c.create("a", "b", "c")
	c.allHave("one")

	rules.swap(map[string]string{"value.yaml": configMapRule("value", "value", "two"), "other.yaml": other})
	c.allHave("two")
	c.wantLog(`"Reloaded the rules" rules=1 invalid=0 added=0 changed=1 removed=0`)

	// A mistake, two times: the old version works on, and it is told once.
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(map[bool]string{true: "*a,", false: fmt.Sprintf("*a%d,", i-1)}[i == 0], 9), ","))
	}
	for _, also := range []string{other, other + "# edited\n"} {
		rules.swap(map[string]string{"value.yaml": bomb, "other.yaml": also})
		testcluster.Eventually(t, 30*time.Second, func() error {
			if body := c.readyz(); !strings.Contains(body, "rules: 1 loaded, 1 invalid") || !strings.Contains(body, "value.yaml:10:42: document contains excessive aliasing; the file's rules keep their last good version") {
				return fmt.Errorf("readyz does not tell of the mistake:\n%s", body)
			}
			return nil
		})
		c.drift("b")
		c.allHave("two")
	}
	testcluster.Eventually(t, 30*time.Second, func() error {
		if n := strings.Count(c.log.String(), `"Reloaded the rules" rules=1 invalid=1 added=0 changed=0 removed=0`); n != 2 {
			return fmt.Errorf("%d reloads with a mistake, want 2", n)
		}
		return nil
	})
	if n := strings.Count(c.log.String(), `"Rule not loaded" problem=`); n != 1 {
		t.Errorf("a mistake that stays is told %d times", n)
	}

	rules.swap(map[string]string{"value.yaml": configMapRule("value", "value", "three"), "other.yaml": other})
	c.allHave("three")
	rules.swap(map[string]string{"other.yaml": other})
	c.wantLog("There is no rule any more")
	c.drift("b")
	rules.swap(map[string]string{"new.yaml": configMapRule("value", "value", "four"), "other.yaml": other})
	c.allHave("four")
}

// A folder that cannot be read for a while keeps the rules; when it can be
// again, that is told.
func TestRunKeepsTheRulesWhileTheyCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	rules := &mount{T: t, path: path}
	rules.must(os.Mkdir(path, 0o755))
	rules.swap(map[string]string{"value.yaml": configMapRule("value", "value", "one")})
	c := startController(t, "--rules", path, "--builtin", "none")
	c.create("a")
	c.allHave("one")
	rules.must(os.Rename(path, path+".away"))
	c.wantLog("Rules not reloaded; those that were loaded before stay in force")
	if body := c.readyz(); !strings.Contains(body, "[!] rules: not loaded anew: read the rules: stat ") || !strings.HasSuffix(body, "\nready\n") {
		t.Errorf("readyz: %s", body)
	}
	c.drift("a")
	c.allHave("one")
	rules.must(os.Rename(path+".away", path))
	c.wantLog(`"Reloaded the rules" rules=1 invalid=0 added=0 changed=0 removed=0`)
	if body := c.readyz(); strings.Contains(body, "not loaded anew") {
		t.Errorf("readyz: %s", body)
	}
}
