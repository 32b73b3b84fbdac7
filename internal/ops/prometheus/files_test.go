package prometheus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	root          = "../../.."
	alertsFile    = root + "/deploy/chart/files/alerts.yaml"
	dashboardFile = root + "/deploy/chart/files/dashboard.json"
	scrapeFile    = root + "/deploy/prometheus/scrape.yaml"
	alertsPage    = root + "/docs/alerts.md"
	metricsPage   = root + "/docs/metrics.md"
)

// alert is an alert of the file.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	return parseAlerts(t, readFile(t, alertsFile))
}

func parseAlerts(t *testing.T, content string) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.UnmarshalStrict([]byte(content), &file); err != nil {
		t.Fatal(err)
	}
	var out []alert
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	if len(out) == 0 {
		t.Fatal("there are no alerts")
	}
	return out
}

// dashboard is what is read of the dashboard.
type dashboard struct {
	SchemaVersion int
	UID, Title    string
	Templating    struct {
		List []struct {
			Name, Type, Definition, AllValue string
		}
	}
	Annotations struct {
		List []struct{ Expr string }
	}
	Panels []panel
}

type panel struct {
	ID          int
	Type, Title string
	Datasource  struct{ Type, UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ RefID, Expr string }
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// firing is an alert that a case of promtool expects to fire.
var firing = regexp.MustCompile(`ALERTS\{alertname="(\w+)", alertstate="firing"`)

// Each alert says how bad it is, what happens and where to read on, and has a
// section there and a case for promtool; and none is told of that is not there.
func TestAlertsAreDescribedAndTested(t *testing.T) {
	cases, err := filepath.Glob(root + "/deploy/prometheus/*_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, file := range cases {
		for _, m := range firing.FindAllStringSubmatch(readFile(t, file), -1) {
			tested[m[1]] = true
		}
	}
	page := readFile(t, alertsPage)
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(page, -1) {
		sections[m[1]] = true
	}
	const docs = "https://github.com/rectifier-dev/rectifier/blob/main/docs/alerts.md#"
	for _, a := range readAlerts(t) {
		if !strings.HasPrefix(a.Alert, "Rectifier") {
			t.Errorf("%s: the name does not begin with Rectifier", a.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
		if want := docs + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !sections[a.Alert] {
			t.Errorf("%s has no section in docs/alerts.md", a.Alert)
		}
		if severity := a.Labels["severity"]; severity != "warning" && !regexp.MustCompile(`\| `+severity+` \|.*\b`+a.Alert+`\b`).MatchString(page) {
			t.Errorf("%s is not among the alerts of severity %s in docs/alerts.md", a.Alert, severity)
		}
		if !tested[a.Alert] {
			t.Errorf("%s has no case in deploy/prometheus", a.Alert)
		}
		delete(sections, a.Alert)
		delete(tested, a.Alert)
	}
	if len(sections)+len(tested) > 0 {
		t.Errorf("these are no alerts: sections %v, cases %v", sections, tested)
	}
}

var ourMetric = regexp.MustCompile(`\b(rectifier|workqueue|rest_client)_[a-z_]+\b`)

// Alerts and dashboard name metrics that docs/metrics.md has.
func TestMetricsAreDocumented(t *testing.T) {
	page := readFile(t, metricsPage)
	for _, file := range []string{alertsFile, dashboardFile} {
		for _, metric := range ourMetric.FindAllString(readFile(t, file), -1) {
			if name := strings.TrimSuffix(metric, "_bucket"); !strings.Contains(page, "`"+name) {
				t.Errorf("%s names %s, which docs/metrics.md does not have", filepath.Base(file), name)
			}
		}
	}
}

// The dashboard can be imported anywhere: no data source of somebody's own, and
// variables for what differs.
func TestDashboardVariables(t *testing.T) {
	d := readDashboard(t)
	if d.SchemaVersion < 36 || d.UID == "" || d.Title == "" {
		t.Errorf("schemaVersion %d, uid %q, title %q", d.SchemaVersion, d.UID, d.Title)
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Type == "query" && v.AllValue != ".*" {
			t.Errorf("variable %s: allValue is %q; a label that is not there must match too", v.Name, v.AllValue)
		}
	}
	if want := []string{"datasource", "job", "namespace", "instance", "rule", "resource"}; !slices.Equal(names, want) {
		t.Errorf("variables are %q, want %q", names, want)
	}
	known := regexp.MustCompile(`\$\{?(` + strings.Join(append(names, "__range", "__rate_interval"), "|") + `)\b`)
	for _, p := range d.Panels {
		if p.Type != "row" && p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q: data source %q", p.Title, p.Datasource.UID)
		}
		for _, target := range p.Targets {
			if left := known.ReplaceAllString(target.Expr, ""); strings.Contains(left, "$") {
				t.Errorf("panel %q names an unknown variable: %s", p.Title, target.Expr)
			}
		}
	}
}

// Panels have ids, titles and units, fill rows of 24 columns, and do not lie over
// each other.
func TestDashboardLayout(t *testing.T) {
	type cell struct{ x, y int }
	covered, ids, titles := map[cell]string{}, map[int]string{}, map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		if p.ID == 0 || ids[p.ID] != "" {
			t.Errorf("panel %q: id %d is that of %q", p.Title, p.ID, ids[p.ID])
		}
		if p.Title == "" || titles[p.Title] {
			t.Errorf("panel %d: title %q", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = p.Title, true
		if p.Type != "row" && (p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q: unit %q, %d targets", p.Title, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		g := p.GridPos
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("panel %q: position %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := covered[cell{x, y}]; other != "" {
					t.Fatalf("panels %q and %q lie over each other", p.Title, other)
				}
				covered[cell{x, y}] = p.Title
			}
		}
	}
	for at := range covered { // a gap would be moved up by Grafana
		if at.y > 0 && covered[cell{at.x, at.y - 1}] == "" {
			t.Errorf("there is a gap above %q", covered[at])
		}
	}
}
