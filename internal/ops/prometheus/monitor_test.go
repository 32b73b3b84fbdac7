package prometheus

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// monitor is a real Prometheus, on a port of this machine, with its data in a
// folder of the test. It is safe for concurrent use.
type monitor struct {
	url     string
	targets string // the folder in which it looks for targets
}

// What becomes of the alerts for the test, which scrapes and evaluates every
// second: all that takes minutes takes seconds. Windows are still ten scrapes
// long. The real times are those of the cases for promtool.
const (
	scrapeInterval = time.Second
	shortFor       = 5 * time.Second
	shortWindow    = 10 * time.Second
)

var (
	longFor    = regexp.MustCompile(`(?m)^    for: \w+$`)
	longWindow = regexp.MustCompile(`\[\d+[mh]\]`)
	longOffset = regexp.MustCompile(`offset \d+[mh]\b`)
)

// shorten puts short times into a file of alerts, or an expression.
func shorten(content string) string {
	content = longFor.ReplaceAllString(content, "    for: "+shortFor.String())
	content = longWindow.ReplaceAllString(content, "["+shortWindow.String()+"]")
	return longOffset.ReplaceAllString(content, "offset "+shortWindow.String())
}

// Nothing is left that would take minutes.
func TestShorten(t *testing.T) {
	for _, a := range parseAlerts(t, shorten(readFile(t, alertsFile))) {
		if a.For != "" && a.For != shortFor.String() {
			t.Errorf("%s: for: %s", a.Alert, a.For)
		}
		if longWindow.MatchString(a.Expr) || longOffset.MatchString(a.Expr) {
			t.Errorf("%s: %s", a.Alert, a.Expr)
		}
	}
}

// startMonitor starts Prometheus; it is killed when the test ends.
func startMonitor(t *testing.T) *monitor {
	t.Helper()
	dir := t.TempDir()
	m := &monitor{targets: filepath.Join(dir, "targets")}
	if err := os.Mkdir(m.targets, 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}
rule_files: [%[2]s/alerts.yaml]
scrape_configs:
- job_name: targets # each names its own job
  file_sd_configs: [{files: ["%[3]s/*.json"], refresh_interval: %[1]s}]
`, scrapeInterval, dir, m.targets)
	for name, content := range map[string]string{"prometheus.yml": config, "alerts.yaml": shorten(readFile(t, alertsFile))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	m.url = "http://" + address
	log := &lines{}
	cmd := exec.Command("prometheus", "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", address, "--log.level", "warn")
	start(t, cmd, log)
	testcluster.Eventually(t, time.Minute, func() error {
		_, err := m.get("/-/ready", nil)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, log)
		}
		return err
	})
	return m
}

// start starts a process that is killed when the test ends.
func start(t *testing.T, cmd *exec.Cmd, log io.Writer) (kill func()) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = log, log
	endWithTests(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // harmless if it has ended
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	return kill
}

// freeAddress is one where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// watch has a job scraped at these addresses, and nowhere else from now on.
func (m *monitor) watch(t *testing.T, job string, addresses ...string) {
	t.Helper()
	groups, err := json.Marshal([]map[string]any{{"targets": slices.Concat([]string{}, addresses), "labels": map[string]string{"job": job, "namespace": "ops"}}})
	if err != nil {
		t.Fatal(err)
	}
	// Put there whole: Prometheus must not read a half.
	file := filepath.Join(m.targets, job)
	if err := os.WriteFile(file, groups, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+".json"); err != nil {
		t.Fatal(err)
	}
}

func (m *monitor) get(path string, query url.Values) ([]byte, error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(m.url + path + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

// series are the labels of what an expression gives.
type series []map[string]string

// query evaluates an expression now.
func (m *monitor) query(expr string) (series, error) {
	return m.ask("/api/v1/query", url.Values{"query": {expr}})
}

// over evaluates an expression at each second of some time until now.
func (m *monitor) over(expr string, since time.Time) (series, error) {
	at := func(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000) }
	return m.ask("/api/v1/query_range", url.Values{"query": {expr}, "start": {at(since)}, "end": {at(time.Now())}, "step": {"1"}})
}

func (m *monitor) ask(path string, query url.Values) (series, error) {
	body, err := m.get(path, query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query.Get("query"), err)
	}
	var answer struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", query.Get("query"), err)
	}
	out := series{}
	for _, r := range answer.Data.Result {
		out = append(out, r.Metric)
	}
	return out, nil
}

// alertsNow are the names of the alerts of a job that fire.
func (m *monitor) alertsNow(job string) ([]string, error) {
	return m.names(fmt.Sprintf(`ALERTS{job=%q, alertstate="firing"}`, job))
}

// alertsSince are the names of the alerts of a job that were in some state
// ("firing", or a pattern) at any time since then.
func (m *monitor) alertsSince(job, state string, since time.Time) ([]string, error) {
	return m.names(fmt.Sprintf(`count_over_time(ALERTS{job=%q, alertstate=~%q}[%dms])`, job, state, max(time.Since(since).Milliseconds(), 1)))
}

func (m *monitor) names(expr string) ([]string, error) {
	found, err := m.query(expr)
	var names []string
	for _, labels := range found {
		names = append(names, labels["alertname"])
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// labelValues are those that a label has anywhere.
func (m *monitor) labelValues(label string) ([]string, error) {
	body, err := m.get("/api/v1/label/"+label+"/values", nil)
	if err != nil {
		return nil, err
	}
	var answer struct{ Data []string }
	err = json.Unmarshal(body, &answer)
	return answer.Data, err
}

// annotations are those of an alert of a job that fires, as people read them.
func (m *monitor) annotations(job, name string) (map[string]string, error) {
	body, err := m.get("/api/v1/alerts", nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Alerts []struct{ Labels, Annotations map[string]string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	for _, a := range answer.Data.Alerts {
		if a.Labels["alertname"] == name && a.Labels["job"] == job {
			return a.Annotations, nil
		}
	}
	return nil, fmt.Errorf("%s is not there", name)
}

// lines is what a process says. It is safe for concurrent use.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
