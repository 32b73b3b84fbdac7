package engine

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/clientmetrics"
	"github.com/rectifier-dev/rectifier/internal/processmetrics"
	"github.com/rectifier-dev/rectifier/rules"
)

const metricsPage = "../docs/metrics.md"

// description is what the code says of a metric.
type description struct {
	name, kind, help string
	labels           []string
}

// catalog is a Registerer that knows what was registered.
type catalog struct {
	*prometheus.Registry
	t      *testing.T
	filled *prometheus.Registry // the same with a series each, which a vector without one does not show
	all    []description
}

// everything registers all metrics that the controller has, as `rectifier run` does.
func everything(t *testing.T) *catalog {
	c := &catalog{Registry: prometheus.NewRegistry(), filled: prometheus.NewRegistry(), t: t}
	clientmetrics.Register(c)
	processmetrics.Register(c, "v1.2.3")
	if _, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Rules: &rules.Set{}, Registerer: c}); err != nil {
		t.Fatal(err)
	}
	return c
}

// MustRegister implements prometheus.Registerer.
func (c *catalog) MustRegister(cs ...prometheus.Collector) {
	c.Registry.MustRegister(cs...)
	for _, collector := range cs {
		descs := make(chan *prometheus.Desc)
		go func() { defer close(descs); collector.Describe(descs) }()
		for desc := range descs {
			if d := read(c.t, desc); !strings.HasPrefix(d.name, "go_") && !strings.HasPrefix(d.name, "process_") {
				d.kind = c.fill(collector, d)
				c.all = append(c.all, d)
			}
		}
	}
}

// descText is what a Desc shows of itself.
var descText = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*)", unit: "[^"]*", constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`)

func read(t *testing.T, desc *prometheus.Desc) description {
	m := descText.FindStringSubmatch(desc.String())
	if m == nil {
		t.Fatalf("cannot read %s", desc)
	}
	d := description{name: m[1], help: m[2]}
	if m[3] != "" {
		d.labels = strings.Split(m[3], ",")
	}
	return d
}

// fill gives a metric a series, and says of which type it is.
func (c *catalog) fill(collector prometheus.Collector, d description) string {
	values := make([]string, len(d.labels))
	for i := range values {
		values[i] = "x"
	}
	switch v := collector.(type) {
	case *prometheus.CounterVec, evaluations:
		full := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.name, Help: d.help}, d.labels)
		full.WithLabelValues(values...)
		c.filled.MustRegister(full)
		return "counter"
	case *prometheus.HistogramVec:
		full := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.name, Help: d.help}, d.labels)
		full.WithLabelValues(values...)
		c.filled.MustRegister(full)
		return "histogram"
	case *prometheus.GaugeVec, standing:
		full := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.name, Help: d.help}, d.labels)
		full.WithLabelValues(values...)
		c.filled.MustRegister(full)
		return "gauge"
	case prometheus.Gauge:
		c.filled.MustRegister(v)
		return "gauge"
	case prometheus.Counter:
		c.filled.MustRegister(v)
		return "counter"
	}
	c.t.Fatalf("%s: of which type is a %T?", d.name, collector)
	return ""
}

// group is the table of docs/metrics.md that a metric belongs to.
func (d description) group() string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(d.name, w) })
	}
	switch {
	case strings.HasPrefix(d.name, "workqueue_"):
		return "queue"
	case strings.HasPrefix(d.name, "rest_client_"):
		return "client"
	case has("_resource_state", "_watch_", "_cached_", "_patches_", "_drift_", "_panics_"):
		return "resources"
	case has("_leader", "_events_", "_build_"):
		return "process"
	}
	return "rules"
}

func (d description) row() string {
	labels := "-"
	if len(d.labels) > 0 {
		labels = "`" + strings.Join(d.labels, "`, `") + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", d.name, d.kind, labels, d.help)
}

// docs/metrics.md tells of all metrics, and of no others, what the code says.
// UPDATE=1 writes its tables anew.
func TestMetricsAreDocumented(t *testing.T) {
	tables := map[string]string{}
	for _, d := range everything(t).all {
		if tables[d.group()] == "" {
			tables[d.group()] = "| name | type | labels | meaning |\n|---|---|---|---|\n"
		}
		tables[d.group()] += d.row()
	}
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)<!-- metrics: (\w+) -->\n.*?<!-- end -->\n`).ReplaceAllStringFunc(string(page), func(old string) string {
		name := strings.Fields(old)[2]
		table := tables[name]
		delete(tables, name)
		return fmt.Sprintf("<!-- metrics: %s -->\n%s<!-- end -->\n", name, table)
	})
	for name, table := range tables {
		t.Errorf("docs/metrics.md has no table %q, for:\n%s", name, table)
	}
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("docs/metrics.md does not say what the code says; UPDATE=1 writes the tables anew (-code +page):\n%s", diff)
	}
}

// What the page's text and queries name is there.
func TestMetricsNamedInThePageExist(t *testing.T) {
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range everything(t).all {
		names[d.name] = true
	}
	for _, name := range regexp.MustCompile(`\b(rectifier|workqueue|rest_client)_[a-z_]+\b`).FindAllString(string(page), -1) {
		if !names[name] && !names[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("%s is no metric", name)
		}
	}
	for _, words := range [][]string{outcomeNames[:], failureReasons, {
		parkedWaiting, parkedForbidden, parkedFailing, parkedUnfit, parkedLookup, parkedFields, parkedSchema, parkedNamespaces, parkedPatchForbidden,
		eventInitial, eventRelevant, eventPassedOver,
		patchSuccess, patchIneffective, patchDenied, patchInvalid, string(conflict), string(gone), string(throttled), string(unavailable), string(unauthorized),
	}} {
		for _, word := range words {
			if !regexp.MustCompile(`\b` + word + `\b`).Match(page) {
				t.Errorf("docs/metrics.md does not explain %q", word)
			}
		}
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	c := everything(t)
	problems, err := testutil.GatherAndLint(c.filled)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if n, err := testutil.GatherAndCount(c.filled); err != nil || n != len(c.all) {
		t.Errorf("%d of %d metrics were looked at (%v)", n, len(c.all), err)
	}
}
