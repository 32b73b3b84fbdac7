package statuspage

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/objectdiff"
)

// length is how much of a list a table shows.
type length struct {
	Total, Shown int
}

// Left is how many are not shown.
func (l length) Left() int { return l.Total - l.Shown }

// Text is the number in words: "12", or "100 of 1 234".
func (l length) Text() string {
	if l.Left() == 0 {
		return number(l.Total)
	}
	return number(l.Shown) + " of " + number(l.Total)
}

// first returns no more than n, unless all are asked for.
func first[T any](list []T, n, all int, full bool) ([]T, length) {
	if full {
		n = all
	}
	n = min(n, len(list))
	return list[:n], length{len(list), n}
}

// ruleTable has a row for each rule and resource, those with problems first.
type ruleTable struct {
	length
	Rules int // there can be several rows of one
	Rows  []ruleRow
}

// Text is the number of rules, or how many rows are shown.
func (t ruleTable) Text() string {
	if t.Left() == 0 {
		return number(t.Rules)
	}
	return t.length.Text() + " rows"
}

type ruleRow struct {
	Tone                                      tone
	Rule, Description, Resource, State        string
	Place, File                               string // short, and in full
	Audit, Kept                               bool
	Evaluations, Audited, Fixed, Failed, Held string
	LastFix                                   moment
	LastEvaluation                            moment
	rank                                      int
}

func rulesOf(s *engine.Status, full bool) ruleTable {
	var all []ruleRow
	for _, r := range s.Rules {
		for _, on := range r.On {
			row := ruleRow{
				Rule: r.Name, Description: r.Description, Place: place(path.Base(r.File), r.Line, 0), File: place(r.File, r.Line, r.Column), Resource: on.Resource, Kept: r.Kept,
				Audit: r.Mode == "Audit", Evaluations: number(on.Evaluations), Audited: number(on.Audit), Fixed: number(on.Fixed),
				Failed: number(on.Failed), Held: number(on.Contended),
				LastFix: ago(on.LastFix, s.Time), LastEvaluation: ago(on.LastEvaluation, s.Time),
			}
			row.judge(s, on)
			all = append(all, row)
		}
	}
	slices.SortStableFunc(all, func(a, b ruleRow) int { return cmp.Compare(a.rank, b.rank) })
	t := ruleTable{Rules: len(s.Rules)}
	t.Rows, t.length = first(all, pageRows, maxRules, full)
	return t
}

// judge says where a rule stands.
func (r *ruleRow) judge(s *engine.Status, on engine.RuleOnResource) {
	switch {
	case on.State == engine.RuleParked:
		var why []string
		for _, p := range on.Parked {
			why = append(why, p.Message)
		}
		r.Tone, r.State, r.rank = toneBad, "Parked: "+listOf(why, 2), 0
	case on.State == engine.RuleWaiting && (s.Leadership.Role == engine.Standby || s.Leadership.Role == engine.Lost):
		r.Tone, r.State, r.rank = toneWait, "Standing by", 3
	case on.State == engine.RuleWaiting:
		r.Tone, r.State, r.rank = toneWait, "Waiting for its objects", 2
	case on.Contended > 0:
		r.Tone, r.State, r.rank = toneWarn, "Running, gives way on "+count(on.Contended, "object", "objects"), 1
	case r.Kept:
		r.Tone, r.State, r.rank = toneWarn, "Running in its last good version", 1
	default:
		r.Tone, r.State, r.rank = toneOK, "Running", 3
	}
}

// resourceTable has a row for each informer, those with problems first.
type resourceTable struct {
	length
	Rows []resourceRow
}

type resourceRow struct {
	Tone                                 tone
	Resource, Scope, State, Why, Objects string
	Rules                                string
	Since                                moment
	rank                                 int
}

func resourcesOf(s *engine.Status, full bool) resourceTable {
	var all []resourceRow
	for _, r := range s.Resources {
		row := resourceRow{
			Tone: toneBad, Resource: r.Resource, Scope: cmp.Or(r.Namespace, "all namespaces"), State: stateWords(r.State),
			Why: r.Reason, Objects: number(r.Objects), Rules: listOf(r.Rules, 3), Since: since(r.Since, s.Time),
		}
		switch r.State {
		case gvr.Synced:
			row.Tone, row.rank = toneOK, 2
		case gvr.Syncing:
			row.Tone, row.rank = toneWait, 1
		case gvr.Waiting:
			row.Tone = toneWarn
		}
		if len(r.Rules) == 0 {
			row.Rules = "none: looked up only"
			if row.rank == 0 && r.Consequence != "" {
				row.Tone = toneInfo
			}
		}
		all = append(all, row)
	}
	slices.SortStableFunc(all, func(a, b resourceRow) int { return cmp.Compare(a.rank, b.rank) })
	t := resourceTable{}
	t.Rows, t.length = first(all, pageRows, maxResources, full)
	return t
}

type contentionTable struct {
	length
	Rows []contentionRow
}

type contentionRow struct {
	Rule, Resource, Object, Fields, Managers, Holds, State string
	Until, Since                                           moment
}

func contentionsOf(s *engine.Status, full bool) contentionTable {
	shown, n := first(s.Contentions, pageShort, maxContentions, full)
	t := contentionTable{length: n}
	for _, c := range shown {
		row := contentionRow{
			Rule: c.Rule, Resource: c.Resource, Object: objectName(c.Namespace, c.Name), Fields: listOf(c.Fields, 3),
			Managers: cmp.Or(listOf(c.Managers, 3), "not known"), Holds: number(c.Holds),
			State: "Held", Until: until(c.Until, s.Time), Since: since(c.Since, s.Time),
		}
		if !c.Held {
			row.State, row.Until = "On probation", ago(c.Until, s.Time)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

type activityList struct {
	length
	Items []activityItem
}

type activityItem struct {
	ID, Kind, Object, Resource, Rules, Message, Times string
	Fields                                            string // what changed, if no message says it
	Tone                                              tone
	When                                              moment
	Changes                                           []changeLine
	More                                              int
}

// changeLine is a field that changed: on one line, or as lines of a diff.
type changeLine struct {
	Field         string
	Before, After string
	HasBefore     bool
	HasAfter      bool
	Hidden        bool
	Diff          []diffLine
}

type diffLine struct{ Mark, Class, Text string }

func activityOf(s *engine.Status, full bool) activityList {
	shown, n := first(s.Recent, pageActivity, len(s.Recent), full)
	t := activityList{length: n}
	for _, a := range shown {
		item := activityItem{
			ID: identify(a), Object: objectName(a.Namespace, a.Name), Resource: a.Resource, Rules: listOf(a.Rules, 3), Message: a.Message,
			When: ago(a.Time, s.Time), More: a.MoreChanges,
		}
		item.Kind, item.Tone = kindWords(a.Kind)
		if a.Times > 1 {
			item.Times = number(a.Times) + " times"
		}
		if a.Message == "" || a.Kind == engine.Audited {
			item.Fields = fieldsOf(a)
		}
		for _, c := range a.Changes {
			if a.Kind != engine.Audited { // of which there are no values
				item.Changes = append(item.Changes, newChangeLine(c))
			}
		}
		t.Items = append(t.Items, item)
	}
	return t
}

// fieldsOf names what an activity changed.
func fieldsOf(a engine.Activity) string {
	var out []string
	for _, c := range a.Changes {
		out = append(out, c.Field)
	}
	return listOf(out, 3)
}

func kindWords(kind engine.ActivityKind) (string, tone) {
	switch kind {
	case engine.Fixed:
		return "Fixed", toneOK
	case engine.WouldFix:
		return "Would fix", toneInfo
	case engine.Audited:
		return "Audit", toneInfo
	case engine.Held:
		return "Gave way", toneWarn
	}
	return "Failed", toneBad
}

// identify names an activity so that the page finds it again: what is folded open
// stays open when it is renewed.
func identify(a engine.Activity) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%d", a.Kind, strings.Join(a.Rules, ","), a.Resource, a.Namespace, a.Name, a.Message,
		fieldsOf(a), a.First.UnixNano())
	return fmt.Sprintf("a-%x", h.Sum64())
}

func newChangeLine(c engine.FieldChange) changeLine {
	out := changeLine{Field: c.Field, Before: c.Before, After: c.After, HasBefore: c.Before != "", HasAfter: c.After != "", Hidden: c.Hidden}
	if !strings.Contains(c.Before+c.After, "\n") {
		return out
	}
	unified := objectdiff.Unified("", "", lines(c.Before), lines(c.After))
	for i, line := range strings.Split(strings.TrimSuffix(string(unified), "\n"), "\n") {
		switch {
		case i < 2 || strings.HasPrefix(line, `\`): // the names of files; the end of one
		case strings.HasPrefix(line, "@@"):
			if i > 2 {
				out.Diff = append(out.Diff, diffLine{" ", "same", "…"})
			}
		case strings.HasPrefix(line, "-"):
			out.Diff = append(out.Diff, diffLine{"−", "old", line[1:]})
		case strings.HasPrefix(line, "+"):
			out.Diff = append(out.Diff, diffLine{"+", "new", line[1:]})
		case line != "":
			out.Diff = append(out.Diff, diffLine{" ", "same", line[1:]})
		}
	}
	return out
}

func lines(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text + "\n")
}
