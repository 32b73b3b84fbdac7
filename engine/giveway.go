package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

// noteWrites remembers what rules have written by an accepted request: a rule
// that writes several subresources counts once.
func (d *decision) noteWrites(verdicts []rules.Verdict, newest string) {
	for _, v := range verdicts {
		if slices.Contains(d.noted, v.Rule) {
			continue
		}
		d.noted = append(d.noted, v.Rule)
		d.contentions.wrote(d.key, d.object.GetUID(), d.author(v.Rule), v.Change.Digest(), newest, time.Now())
	}
}

// author is a rule as this decision knows it.
func (d *decision) author(r *rules.Rule) author { return author{r.Name, d.policy.generation} }

// giveWay begins a hold for each rule that is about to make a change once more
// that somebody keeps setting back; it reports whether there was one: then what
// was decided includes a rule that is held now.
func (d *decision) giveWay(ctx context.Context, result rules.Result) (held bool) {
	if !d.known {
		return false
	}
	for _, v := range result.Verdicts {
		if v.Outcome != rules.Patch {
			continue
		}
		if f, yes := d.contentions.giveWay(d.object.GetUID(), d.author(v.Rule), v.Change.Digest(), d.now); yes {
			d.tellHold(ctx, v, f)
			held = true
		}
	}
	return held
}

// tellHold finds out who sets a change back, and tells.
func (d *decision) tellHold(ctx context.Context, v rules.Verdict, f fight) {
	fields := d.shield().Fields(v)
	who := d.opponents(ctx, v.Change, f.capped)
	d.contentions.name(d.object.GetUID(), v.Rule.Name, fields, who.managers)
	d.recordProblem(ctx, v.Rule, reasonContended, f.message(d.contentions.Contention, list(fields), who))
}

// message tells of the hold that has begun.
func (f *fight) message(c Contention, fields string, who opponents) string {
	n := c.Count
	if f.capped {
		n = c.Cap
	}
	times := fmt.Sprintf("%d times in %v", n, c.Window)
	if n == 1 {
		times = fmt.Sprintf("once in %v", c.Window)
	}
	if f.holds > 1 {
		times = fmt.Sprintf("hold %d in a row", f.holds)
	}
	if f.capped && (len(who.managers) == 0 || who.presumed) {
		// Nobody needs to set back what the rule computes anew each time.
		told := fmt.Sprintf("held for %v: it changes %s again and again (%s)", f.wait, fields, times)
		if len(who.managers) > 0 {
			told += ", last after a write by " + list(who.managers)
		}
		return told
	}
	return fmt.Sprintf("held for %v: %s is set back again and again %v (%s)", f.wait, fields, who, times)
}

// maxListed keeps messages readable.
const maxListed = 3

// list puts some words into a sentence.
func list(words []string) string {
	if more := len(words) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:maxListed], ", "), more)
	}
	return strings.Join(words, ", ")
}

// Contended is a rule that is held for an object, or was until lately, because
// somebody keeps setting back what it changes.
type Contended struct {
	Rule            string
	Resource        schema.GroupResource
	Namespace, Name string

	Fields   []string // that are set back
	Managers []string // who does it; empty: it is not known
	Since    time.Time
	Until    time.Time // end of the present hold; past: the rule is on probation
	Holds    int       // so far
}

// Contentions returns the rules that are in contention, by rule, resource and
// object.
func (e *Engine) Contentions() []Contended {
	out := e.contentions.list()
	slices.SortFunc(out, func(a, b Contended) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Resource.String(), b.Resource.String()),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// maxContentionLines keeps /readyz readable.
const maxContentionLines = 10

// contentionLines tells of contentions, rule by rule and resource by resource.
func (e *Engine) contentionLines() []string {
	var out []string
	all := e.Contentions()
	for len(all) > 0 {
		first, n := all[0], 1
		for n < len(all) && all[n].Rule == first.Rule && all[n].Resource == first.Resource {
			n++
		}
		all = all[n:]
		if len(out) == maxContentionLines {
			return append(out, "and more rules are in contention")
		}
		out = append(out, first.line(n))
	}
	return out
}

// line tells of one of n objects.
func (c Contended) line(n int) string {
	who := "others"
	if len(c.Managers) > 0 {
		who = list(c.Managers)
	}
	state := "held until " + c.Until.Format(time.RFC3339)
	if !time.Now().Before(c.Until) {
		state = "being tried again"
	}
	return fmt.Sprintf("rule %s on %s: in contention about %s, e.g. %s: %s by %s, %s",
		c.Rule, c.Resource, objectCount(n), cache.ObjectName{Namespace: c.Namespace, Name: c.Name}, list(c.Fields), who, state)
}

// willing returns the rules that are not held because of contention. It has the
// object looked at again when such a hold ends, or a fight may be over.
func (d *decision) willing(ctx context.Context, all []*rules.Rule) []*rules.Rule {
	if !d.known {
		return all
	}
	free, due, over := d.contentions.free(d.object.GetUID(), all, d.now)
	for _, c := range over {
		klog.FromContext(ctx).Info("Contention is over", "rule", c.Rule, "holds", c.Holds, "since", c.Since.Format(time.RFC3339))
	}
	d.recheckAt(due)
	return free
}
