package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecentLogIsBounded(t *testing.T) {
	var l recentLog
	at := time.Now()
	for i := range 10 * maxActivity {
		l.add(&activity{kind: Fixed, last: at.Add(time.Duration(i) * time.Second), rules: []string{"r"}, resource: configmaps, name: fmt.Sprint(i)})
	}
	got := l.list()
	if len(got) != maxActivity || got[0].Name != "999" || got[maxActivity-1].Name != "900" {
		t.Errorf("%d are kept, from %s to %s; want the last %d, the latest first", len(got), got[0].Name, got[len(got)-1].Name, maxActivity)
	}
	if cap(l.entries) > 2*maxActivity {
		t.Errorf("they stand in room for %d", cap(l.entries))
	}
	if n := len(l.lastFixes()); n != 1 {
		t.Errorf("last fixes of %d rules, want 1", n)
	}
}

// What happens again moves up, and is counted: a fight does not push out what
// else there is.
func TestRepetitionsAreOneActivity(t *testing.T) {
	var l recentLog
	at := time.Now().Round(0)
	note := func(kind ActivityKind, name, field string) {
		at = at.Add(time.Second)
		a := &activity{kind: kind, last: at, rules: []string{"r"}, resource: configmaps, name: name}
		a.changes.add(fieldChange{name: field})
		l.add(a)
	}
	start := at
	note(Fixed, "other", "data.a")
	for range 300 {
		note(Fixed, "fought", "data.a")
		note(Fixed, "fought too", "data.a")
	}
	note(Fixed, "fought", "data.b")
	note(Held, "fought", "data.a")
	type line struct {
		Kind        ActivityKind
		Name        string
		Times       int
		First, Last time.Duration
	}
	var got []line
	for _, a := range l.list() {
		got = append(got, line{a.Kind, a.Name, a.Times, a.First.Sub(start) / time.Second, a.Time.Sub(start) / time.Second})
	}
	want := []line{{Held, "fought", 1, 603, 603}, {Fixed, "fought", 1, 602, 602}, {Fixed, "fought too", 300, 3, 601}, {Fixed, "fought", 300, 2, 600}, {Fixed, "other", 1, 1, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An entry does not keep an object alive, nor a megabyte of it.
func TestUnracedChangesAreCopiesOfABoundedSize(t *testing.T) {
	huge := strings.Repeat("äöü", 1<<18)
	list := make([]any, 5000)
	for i := range list {
		list[i] = map[string]any{"n": int64(i), "text": huge}
	}
	room := &trimmer{left: maxChangeBytes}
	values := map[string]any{"list": list, "text": huge, "null": nil, "yes": true}
	for i := range 1000 {
		values[fmt.Sprintf("key-%d-%s", i, huge)] = huge
	}
	for range maxChanges {
		text := inYAML(room.copy(values))
		if len(text) > 2*maxChangeBytes+1000 {
			t.Fatalf("a value is %d bytes long", len(text))
		}
	}
	short := map[string]any{"a": []any{int64(1), "x", map[string]any{"b": nil}}}
	kept := (&trimmer{left: maxChangeBytes}).copy(short)
	if diff := cmp.Diff(any(short), kept); diff != "" {
		t.Errorf("a short value is changed (-want +got):\n%s", diff)
	}
	short["a"] = nil
	if inYAML(kept) == inYAML(short) {
		t.Error("the value is no copy")
	}
}

func TestFieldNames(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{}}, "0": "x"}}
	for path, want := range map[string]string{
		"spec containers 0 image":     "spec.containers[0].image",
		"spec 0":                      "spec.0",
		"metadata labels app.io/name": "metadata.labels['app.io/name']",
	} {
		if got := fieldName(object, strings.Fields(path)); got != want {
			t.Errorf("%s is named %s, want %s", path, got, want)
		}
	}
}
