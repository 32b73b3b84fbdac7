package prometheus

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/ops"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Scenarios mostly wait: more of them than there are processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(testcluster.Main(m))
}

// Each alert has a scenario: without one, nobody knows whether it would fire.
func TestEachAlertHasAScenario(t *testing.T) {
	caused := map[string]bool{}
	for _, s := range append(scenarios, noTarget) {
		for _, name := range s.alerts {
			caused[name] = true
		}
		if s.standIn != "" {
			t.Logf("%s: from an exporter, since %s", s.alerts, s.standIn)
		}
	}
	for _, a := range readAlerts(t) {
		if !caused[a.Alert] {
			t.Errorf("%s has no scenario", a.Alert)
		}
		delete(caused, a.Alert)
	}
	if len(caused) > 0 {
		t.Errorf("scenarios are about alerts that are not there: %v", caused)
	}
}

// In a real Prometheus that scrapes real instances, each alert fires on its
// cause, and on no other, and resolves when that has gone. Then every expression
// of the dashboard gives something of all that has happened.
func TestAlertsFireOnTheirCauses(t *testing.T) {
	ops.Require(t, "prometheus")
	began := time.Now()
	m := startMonitor(t)
	binary := build(t)
	cp, client := testcluster.Start(t), testcluster.Dynamic(t)
	here := &lab{T: t, monitor: m}
	here.fires(noTarget.alerts...)
	t.Run("scenarios", func(t *testing.T) {
		for n, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				l := &lab{T: t, monitor: m, binary: binary, cp: cp, client: client, rules: t.TempDir()}
				l.job, l.ns = fmt.Sprintf("rectifier-%d", n), testcluster.Namespace(t)
				s.run(l)
				l.judge(s)
			})
		}
	})
	here.resolves(noTarget.alerts...)
	if t.Failed() {
		return // a part of what the dashboard shows has not happened
	}
	t.Run("dashboard", func(t *testing.T) { showAll(t, m, began) })
}

// judge compares what fired since the lab was at rest with what should have.
func (l *lab) judge(s scenario) {
	l.Helper()
	got, err := l.alertsSince(l.job, "firing", l.rested)
	if err != nil {
		l.Fatal(err)
	}
	for _, name := range got {
		if !slices.Contains(s.alerts, name) && !slices.Contains(s.also, name) {
			l.Errorf("%s fired, of which this is no cause", name)
		}
	}
	for _, name := range s.alerts {
		if !slices.Contains(got, name) || !slices.Contains(l.fired, name) {
			l.Errorf("%s did not fire", name)
		}
	}
}

// build builds rectifier as it is released.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rectifier")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/rectifier-dev/rectifier/cmd/rectifier").CombinedOutput(); err != nil {
		t.Fatalf("build rectifier: %v\n%s", err, out)
	}
	return path
}

var variable = regexp.MustCompile(`\$\{?(job|namespace|instance|rule|resource)\b\}?`)

var metricName = regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b(\{|\[)`)

// showAll evaluates what Grafana would, with all variables at "All". No panel may
// be empty.
func showAll(t *testing.T, m *monitor, since time.Time) {
	d := readDashboard(t)
	exist, err := m.labelValues("__name__")
	if err != nil {
		t.Fatal(err)
	}
	show := func(what, expr string) {
		t.Helper()
		for _, name := range metricName.FindAllString(expr, -1) {
			if !slices.Contains(exist, strings.TrimRight(name, "{[")) {
				t.Errorf("%s: nobody exports %s", what, name)
			}
		}
		expr = variable.ReplaceAllString(expr, ".*")
		expr = strings.NewReplacer("$__rate_interval", shortWindow.String(), "$__range", "5m").Replace(expr)
		found, err := m.over(expr, since)
		switch {
		case err != nil:
			t.Errorf("%s: %v", what, err)
		case len(found) == 0:
			t.Errorf("%s: nothing to show of %s", what, expr)
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			show(p.Title, target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		show("annotation", a.Expr)
	}
	labelValues := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		query := labelValues.FindStringSubmatch(v.Definition)
		if query == nil {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
			continue
		}
		found, err := m.over(fmt.Sprintf("count by (%s) (%s)", query[2], variable.ReplaceAllString(query[1], ".*")), since)
		if err != nil || len(found) == 0 || found[len(found)-1][query[2]] == "" {
			t.Errorf("variable %s: %s gives %v, %v", v.Name, v.Definition, found, err)
		}
	}
}
