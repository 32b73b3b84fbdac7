package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// The rules that are generated compile, and are about Deployments.
func TestGeneratedRules(t *testing.T) {
	want := ruleSet{count: 4 * len(conditions), unguarded: 5}
	text := generateRules(want)
	set, problems := rules.Load(rules.Source{Name: "rules.yaml", Data: []byte(text)})
	for _, p := range problems {
		t.Error(p.Detail())
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	if got := len(set.For(deployments)); got != want.count {
		t.Errorf("%d rules are about Deployments", got)
	}
	if got := strings.Count(text, " || "); got != want.unguarded {
		t.Errorf("%d rules have no guard, want %d", got, want.unguarded)
	}
}

// The file of the offline comparison has the size of the one that others were
// measured with.
func TestManifests(t *testing.T) {
	if got, want := len(manifests(2000)), 1_470_000; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// Images are well-formed, name their axes and lines, and keep within their frame.
func TestImage(t *testing.T) {
	c := chart{title: "Memory <of> all", x: "objects", y: "MB", lines: []line{
		{name: "one & all", points: []point{{1000, figure{10, 9, 12}}, {20000, figure{200, 190, 220}}}},
		{name: "close", points: []point{{1000, figure{10, 9, 12}}, {20000, figure{199, 190, 220}}}},
	}}
	image := c.svg()
	var texts []string
	decoder := xml.NewDecoder(strings.NewReader(image))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, image)
		}
		switch token := token.(type) {
		case xml.CharData:
			texts = append(texts, strings.TrimSpace(string(token)))
		case xml.StartElement:
			for _, a := range token.Attr {
				var at float64
				if _, err := fmt.Sscan(a.Value, &at); err == nil && (at < 0 || at > imageWidth) {
					t.Errorf("%s %s=%s is outside", token.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	for _, want := range []string{"Memory <of> all", "objects", "MB", "one & all", "close", "20,000", "200"} {
		if !strings.Contains("\n"+strings.Join(texts, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%q is not there:\n%s", want, image)
		}
	}
	if heights := c.namePositions(c.scale()); heights[1]-heights[0] < smallestGapBetweenLabels {
		t.Errorf("names are drawn over each other, at %v", heights)
	}
}
