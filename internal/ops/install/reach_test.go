package install

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// forwards are the commands of a text that forward the port of the status page.
func forwards(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.Trim(strings.TrimSpace(line), "`"); strings.HasPrefix(line, "kubectl ") && strings.Contains(line, " port-forward ") {
			out = append(out, line)
		}
	}
	return out
}

// pages are all documents.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{root + "/README.md"}
	for _, pattern := range []string{"/docs/*.md", "/docs/*/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: nothing is found: %v", pattern, err)
		}
		out = append(out, found...)
	}
	return out
}

// Where there are metrics, and so alerts, the commands of the documents and of the
// notes lead to the instance that leads, and its status page is there, for a browser
// without a token. The way to it is all that is missing here: it needs a node.
func TestDocsLeadToTheLeader(t *testing.T) {
	i := newInstallation(t, release)
	i.uninstallAfter()
	i.helm("metrics: {enabled: true}", "")
	leader := i.leader()
	for path, want := range map[string]string{"/": "<html", "/readyz": "[+] rules"} {
		if code, body := i.fetch("http", leader.ports[8080], path, ""); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	told := map[string]string{"the notes of helm": i.must("helm get notes " + release + " --namespace " + i.namespace)}
	for _, page := range pages(t) {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		told[filepath.Base(page)] = string(content)
	}
	if !i.canNameHosts() {
		t.Skip("the Lease names this machine, and not the pod: the system lets nobody name a host (unshare --uts)")
	}
	for _, page := range []string{"the notes of helm", "install.md", "alerts.md", "status-page.md", "troubleshooting.md"} {
		if len(forwards(told[page])) == 0 {
			t.Errorf("%s has no command that leads to the status page", page)
		}
	}
	for page, text := range told {
		for _, line := range forwards(text) {
			// The port that is forwarded is that of the pod which the command names.
			if got, want := i.must("set -u; kubectl() { if [[ $* == *port-forward* ]]; then echo \"$*\"; else command kubectl \"$@\"; fi; }; "+line), fmt.Sprintf("-n %s port-forward pod/%s 8080\n", i.namespace, leader.name); got != want {
				t.Errorf("%s: %s: forwards %q, not %q", page, line, got, want)
			}
		}
	}
}

// canNameHosts reports whether pods have hosts of their own here.
func (i *installation) canNameHosts() bool {
	_, _, ok := i.run("unshare --uts --map-root-user hostname x", "")
	return ok
}

var command = regexp.MustCompile("`(kubectl -n rectifier debug POD [^`]*)`")

// A namespace of the level "restricted" takes the container that docs/alerts.md
// debugs with.
func TestDocsDebug(t *testing.T) {
	i := newInstallation(t, "install-debug")
	i.uninstallAfter()
	i.helm("replicaCount: 1", "")
	content, err := os.ReadFile(root + "/docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	m := command.FindStringSubmatch(string(content))
	if m == nil {
		t.Fatal("docs/alerts.md has no such command")
	}
	i.must(strings.NewReplacer("-n rectifier", "-n "+i.namespace, "POD", i.podNames()[0]).Replace(m[1]))
}

var serverName = regexp.MustCompile(`server_name: (\S+)`)

// deploy/prometheus/scrape.yaml names the Service that the chart makes, which the
// ports of the chart fit: from the container's to the ServiceMonitor's.
func TestServiceOfMetrics(t *testing.T) {
	got := render(t, everything, "")
	var service corev1.Service
	got.into(t, "Service/rectifier", &service)
	content, err := os.ReadFile(root + "/deploy/prometheus/scrape.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := serverName.FindSubmatch(content)
	if want := service.Name + "." + service.Namespace + ".svc"; m == nil || string(m[1]) != want {
		t.Errorf("the server name is %s, and that of the Service %s", m, want)
	}
	var scrape struct {
		Endpoints []struct{ Port, Path, Scheme string }
	}
	text, err := yaml.Marshal(got["ServiceMonitor/rectifier"].Object["spec"])
	if err == nil {
		err = yaml.Unmarshal(text, &scrape)
	}
	if err != nil {
		t.Fatal(err)
	}
	port := service.Spec.Ports[0]
	if e := scrape.Endpoints[0]; e.Port != port.Name || port.Port != 8443 || port.TargetPort.StrVal != "metrics" || e.Scheme != "https" || e.Path != "/metrics" {
		t.Errorf("ServiceMonitor %+v, Service %+v", scrape.Endpoints, service.Spec.Ports)
	}
	args := strings.Join(got.args(t), " ")
	if !strings.Contains(args, "--bind-address=127.0.0.1:8080 --metrics-address=:8443 --authorize") {
		t.Errorf("args: %s", args)
	}
}
