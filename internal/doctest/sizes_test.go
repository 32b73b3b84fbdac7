package doctest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	defaultLimit = regexp.MustCompile(`default limit of (\d+) MiB is for some ([\d,]+) (?:such )?objects`)
	sizeWithRoom = regexp.MustCompile(`\| memory, with room \| (\d+) MB, and ([\d.]+) MB for each 1,000 objects \|`)
	chartsSize   = regexp.MustCompile(`Memory is (\d+) MB, and [\d.]+ MB for each 1,000 objects .*; with room .*, ([\d.]+) MB for each 1,000\.`)
)

// All pages say the same of what the default limit of memory is enough for: what the
// formula in docs/running.md gives, with GOMEMLIMIT at 80 % of the limit.
func TestDefaultLimitOfMemory(t *testing.T) {
	limit := chartLimit(t)
	room := match(t, "running.md", read(t, root+"/docs/running.md"), sizeWithRoom)
	enough := (limit*1.048576*0.8 - number(t, room[0])) / number(t, room[1]) * 1000
	pages := map[string]string{"values.yaml": uncommented(read(t, root+"/deploy/chart/values.yaml"))}
	for _, page := range []string{"running.md", "install.md", "scale.md"} {
		pages[page] = oneLine(read(t, root+"/docs/"+page))
	}
	for page, text := range pages {
		said := match(t, page, text, defaultLimit)
		if number(t, said[0]) != limit {
			t.Errorf("%s: the default limit is %v MiB, not %s", page, limit, said[0])
		}
		if objects := number(t, said[1]); objects > enough || objects < enough*0.8 {
			t.Errorf("%s: the default limit is for %.0f objects by the formula in running.md, not %s", page, enough, said[1])
		}
	}
	if said := match(t, "values.yaml", pages["values.yaml"], chartsSize); said[0] != room[0] || said[1] != room[1] {
		t.Errorf("values.yaml: with room, memory is %s MB and %s MB for each 1,000 objects, not %s and %s as in running.md", said[0], said[1], room[0], room[1])
	}
}

// chartLimit is the chart's default limit of memory in MiB.
func chartLimit(t *testing.T) float64 {
	t.Helper()
	var values struct {
		Resources struct{ Limits struct{ Memory string } }
	}
	if err := yaml.Unmarshal([]byte(read(t, root+"/deploy/chart/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	text, isMiB := strings.CutSuffix(values.Resources.Limits.Memory, "Mi")
	if !isMiB {
		t.Fatalf("the limit is %q", values.Resources.Limits.Memory)
	}
	return number(t, text)
}

// match finds what a page says, which has to be there once, and returns the groups.
func match(t *testing.T, page, text string, pattern *regexp.Regexp) []string {
	t.Helper()
	found := pattern.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("%s says %d times, and not once, what %s finds", page, len(found), pattern)
	}
	return found[0][1:]
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// uncommented is what comments of a YAML file say, in one line.
func uncommented(text string) string { return oneLine(strings.ReplaceAll(text, "\n# ", "\n")) }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
