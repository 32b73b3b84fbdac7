package statuspage

import (
	"fmt"
	"strings"
	"time"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
)

// page is what the template shows.
type page struct {
	Title, Headline, Summary string
	Tone                     tone
	Meta                     []fact // what there is to know of the instance
	Time                     time.Time
	Version                  string

	Refresh int // seconds; 0: not by itself
	Toggle  string
	Full    bool   // ?show=all
	ShowAll string // its link

	Facts       []fact
	Waiting     []string
	Problems    []problem
	Notes       []note
	MoreTrouble int

	Contentions contentionTable
	Activity    activityList
	Rules       ruleTable
	Resources   resourceTable
}

// tone is how something stands, for its mark and colour. Words say it too.
type tone string

const (
	toneOK   tone = "ok"
	toneWait tone = "wait"
	toneWarn tone = "warn"
	toneBad  tone = "bad"
	toneInfo tone = "info"
)

// fact is one figure of the summary.
type fact struct {
	Name, Value string
	Detail      string
	When        moment // in place of Detail
}

// note is something to know that asks for nothing.
type note struct{ Text string }

// newPage puts a status into words.
func newPage(s engine.Status, full, refresh bool) *page {
	p := &page{Time: s.Time, Version: s.Version, Full: full, Waiting: s.WaitingFor}
	p.links(full, refresh)
	p.Problems = problemsOf(&s)
	found := len(p.Problems)
	shown, l := first(p.Problems, pageShort, maxProblems, full)
	p.Problems, p.MoreTrouble = shown, l.Left()
	p.Notes = notesOf(&s)
	p.headline(&s, found)
	p.Facts, p.Meta = factsOf(&s), metaOf(&s)
	p.Contentions = contentionsOf(&s, full)
	p.Activity = activityOf(&s, full)
	p.Rules = rulesOf(&s, full)
	p.Resources = resourcesOf(&s, full)
	return p
}

// links are made of the query, which is one of four.
func (p *page) links(full, refresh bool) {
	show := ""
	if full {
		show = "show=all"
	}
	switch {
	case refresh:
		p.Refresh = refreshSeconds
		p.Toggle = "?" + strings.TrimSuffix("refresh=off&"+show, "&")
		p.ShowAll = "?show=all"
	default:
		p.Toggle = "?" + show
		p.ShowAll = "?refresh=off&show=all"
	}
}

func (p *page) headline(s *engine.Status, problems int) {
	p.Summary = summaryOf(s)
	switch l := s.Leadership; {
	case l.Role == engine.Lost:
		p.Tone, p.Headline = toneBad, "Lease lost: this instance ends"
	case problems > 0:
		p.Tone, p.Headline = toneWarn, count(problems, "thing needs attention", "things need attention")
	case l.Role == engine.Standby && s.Ready:
		p.Tone, p.Headline = toneOK, "Standing by"
	case !s.Ready:
		p.Tone, p.Headline = toneWait, "Starting"
	default:
		p.Tone, p.Headline = toneOK, "All is well"
	}
	p.Title = fmt.Sprintf("%s – Rectifier", p.Headline)
}

// summaryOf is the sentence below the headline.
func summaryOf(s *engine.Status) string {
	l := s.Leadership
	switch {
	case l.Role == engine.Lost:
		return l.Trouble
	case l.Role == engine.Standby && l.Leader != "":
		return "This instance stands by and does nothing until it leads. The leader is " + l.Leader + ": look there for what is going on."
	case l.Role == engine.Standby:
		return "This instance stands by and does nothing until it leads. There is no leader at the moment."
	case !s.Ready:
		return "Not ready yet: it waits for what is listed below. What can run does so already."
	case s.DryRun:
		return "Dry run: everything is evaluated, nothing is written."
	case len(s.Rules) == 0:
		return "No rules are loaded: there is nothing to do."
	}
	return ""
}

func factsOf(s *engine.Status) []fact {
	t := totalsOf(s)
	synced, objects := 0, 0
	for _, r := range s.Resources {
		objects += r.Objects
		if r.State == gvr.Synced {
			synced++
		}
	}
	fixed := fact{Name: "Fixed", Value: number(t.fixed), Detail: "none yet", When: ago(t.lastFix, s.Time)}
	if s.DryRun {
		fixed.Detail = "dry run"
	}
	out := []fact{
		{Name: "Rules", Value: number(len(s.Rules)), Detail: runningOf(t, len(s.Rules))},
		{Name: "Resources", Value: number(len(s.Resources)), Detail: syncedOf(synced, len(s.Resources))},
		{Name: "Objects", Value: number(objects), Detail: "in the cache"},
		fixed,
		{Name: "Failures", Value: number(t.failed), Detail: "since the start"},
		{Name: "In contention", Value: number(len(s.Contentions)), Detail: "not settled"},
		{Name: "Queue", Value: number(s.QueueDepth), Detail: "objects waiting"},
	}
	if t.audit > 0 {
		out = append(out, fact{Name: "Audit", Value: number(t.audit), Detail: "looks with a finding"})
	}
	return out
}

// totals are over all rules.
type totals struct {
	parked, waiting      int // rules, on one of their resources at least
	fixed, failed, audit int64
	lastFix              time.Time
}

func totalsOf(s *engine.Status) (t totals) {
	for _, r := range s.Rules {
		counted := map[string]bool{} // all versions of a resource have the same counts
		parked, waiting := false, false
		for _, on := range r.On {
			parked = parked || on.State == engine.RuleParked
			waiting = waiting || on.State == engine.RuleWaiting
			if of := groupResource(on.Resource); !counted[of] {
				counted[of] = true
				t.fixed, t.failed, t.audit = t.fixed+on.Fixed, t.failed+on.Failed, t.audit+on.Audit
			}
			if on.LastFix.After(t.lastFix) {
				t.lastFix = on.LastFix
			}
		}
		switch {
		case parked:
			t.parked++
		case waiting:
			t.waiting++
		}
	}
	return t
}

func runningOf(t totals, all int) string {
	switch {
	case all == 0:
		return "none loaded"
	case t.parked > 0:
		return number(t.parked) + " parked"
	case t.waiting > 0:
		return number(t.waiting) + " waiting"
	}
	return "all running"
}

func syncedOf(synced, all int) string {
	switch {
	case all == 0:
		return "none watched"
	case synced == all:
		return "all synced"
	}
	return fmt.Sprintf("%s of %s synced", number(synced), number(all))
}

// metaOf says in a few words what this instance is.
func metaOf(s *engine.Status) []fact {
	var out []fact
	l := s.Leadership
	switch {
	case l.Role == engine.Leader:
		out = append(out, fact{Name: "Leader", When: since(l.Since, s.Time), Detail: l.Identity})
	case l.Role == engine.Alone && s.Ready:
		out = append(out, fact{Name: "Ready", When: since(s.ReadySince, s.Time)})
	case l.Role == engine.Standby:
		out = append(out, fact{Name: "Standby", Detail: l.Identity})
	}
	if l.Lease != "" {
		out = append(out, fact{Name: "Lease", Detail: l.Lease})
	}
	return append(out, fact{Name: "Rules loaded", When: ago(s.RulesLoaded, s.Time)})
}

// groupResource takes the version out of group/version/resource, and writes it as
// contentions and metrics do: resource.group.
func groupResource(name string) string {
	parts := strings.Split(name, "/")
	switch len(parts) {
	case 2:
		return parts[1]
	case 3:
		return parts[2] + "." + parts[0]
	}
	return name
}
