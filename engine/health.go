package engine

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// maxScrapes is how many requests for metrics are answered at once: each looks at
// all that there is. More are refused with 503.
const maxScrapes = 4

// Ready is the verdict of /readyz. Probes ask for it, and whoever reaches their
// port: nothing is counted or put in words for it.
func (e *Engine) Ready() bool { return e.verdict(e.informers.States()).ready }

// verdict is what readiness comes down to.
type verdict struct {
	election   string // how that stands; empty: there is none
	leading    bool
	discovered bool // false too if another one leads
	before     bool // it was ready before: what syncs now was brought by rules that came later
	ready      bool
}

// verdict judges by the states of the resources, and remembers what it comes to.
func (e *Engine) verdict(states []gvr.Status) verdict {
	v := verdict{leading: true, ready: true, before: e.wasReady.Load()}
	if e.election != nil {
		v.election, v.leading, v.ready = e.election.status()
	}
	if v.leading {
		v.discovered = e.informers.Discovered()
		syncing := slices.ContainsFunc(states, func(s gvr.Status) bool { return s.State == gvr.Syncing })
		v.ready = v.discovered && (v.before || !syncing)
	}
	if v.ready && v.leading {
		e.wasReady.Store(true)
	}
	e.readySince.observe(v.ready, time.Now(), e.lastChange)
	return v
}

// Handler answers /healthz (the process is alive) and /readyz (discovery has
// succeeded, and every resource that rules name is synced or parked for a
// reason that is told; or, for a standby, it can follow the lease). The detail
// of /readyz is for people. /metrics is there if Options.Registerer gathers too,
// as a prometheus.Registry does.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		report, ready := e.readiness()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, report)
	})
	if gatherer, ok := e.opts.Registerer.(prometheus.Gatherer); ok {
		mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	}
	return mux
}

// readiness reports line by line: [+] works, [!] is left out, parked or doubtful
// and keeps nothing else from working, [-] is not there yet.
func (e *Engine) readiness() (report string, ready bool) {
	lines, ready := e.readinessLines(e.informers.Status())
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "[%s] %s\n", l.mark, l.text)
	}
	verdict := "ready"
	if !ready {
		verdict = "not ready"
	}
	return b.String() + verdict + "\n", ready
}

// readyLine is a line of readiness.
type readyLine struct{ mark, text string }

// readinessLines are those of readiness, with what is known of the resources.
func (e *Engine) readinessLines(statuses []gvr.Status) (lines []readyLine, ready bool) {
	line := func(mark, format string, args ...any) {
		lines = append(lines, readyLine{mark, fmt.Sprintf(format, args...)})
	}
	v := e.verdict(statuses)
	switch {
	case v.election == "":
	case v.leading || v.ready:
		line("+", "leader election: %s", v.election)
	default:
		line("-", "leader election: %s", v.election)
	}
	if v.leading {
		switch reason := e.informers.DiscoveryError(); {
		case v.discovered && reason == "":
			line("+", "discovery: done")
		case v.discovered:
			line("!", "discovery: fails now: %s; what was known before holds", reason)
		case reason == "":
			line("-", "discovery: has not succeeded yet")
		default:
			line("-", "discovery: has not succeeded yet: %s", reason)
		}
	}
	p := e.policy.Load()
	p.report(line)
	if v.leading {
		e.resourceLines(statuses, v, line)
	}
	return lines, v.ready
}

// resourceLines reports on the resources that rules name, and on what keeps rules
// from them.
func (e *Engine) resourceLines(statuses []gvr.Status, v verdict, line func(mark, format string, args ...any)) {
	for _, s := range statuses {
		where := rules.ResourceName(s.Resource)
		if s.Namespace != "" {
			where += " in " + s.Namespace
		}
		switch s.State {
		case gvr.Synced:
			line("+", "%s: synced, %s", where, objectCount(s.Objects))
		case gvr.Syncing:
			mark := "-"
			if v.before {
				mark = "!"
			}
			line(mark, "%s: syncing", where)
		default:
			line("!", "%s: %s: %s%s", where, s.State, s.Reason, e.consequence(s))
		}
	}
	for _, l := range slices.Concat(e.parkedRules(), e.contentionLines(), e.advice()) {
		line("!", "%s", l)
	}
}

func objectCount(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// writers are the rules that write a subresource; those that only report need no
// permission for it.
func (e *Engine) writers(resource schema.GroupVersionResource, subresource string) []*rules.Rule {
	return slices.DeleteFunc(slices.Clone(e.rules().For(resource)), func(r *rules.Rule) bool {
		return r.Mode != rules.Enforce || !slices.Contains(r.Subresources(), subresource)
	})
}

// consequence is meaning as the end of a sentence.
func (e *Engine) consequence(s gvr.Status) string {
	if means := e.meaning(s); means != "" {
		return "; " + means
	}
	return ""
}

// meaning tells what it means that a resource is parked; empty: nothing.
func (e *Engine) meaning(s gvr.Status) string {
	switch parked := names(e.rules().For(s.Resource)); {
	case len(parked) > 0:
		return "parked: " + strings.Join(parked, ", ")
	case s.Resource == namespaces && s.State == gvr.Forbidden:
		return "opt-outs on Namespaces are not seen"
	}
	return ""
}

func parkedLine(r *rules.Rule, resource schema.GroupVersionResource, why string) string {
	return fmt.Sprintf("rule %s on %s: parked: %s", r.Name, rules.ResourceName(resource), why)
}

// unfitRules are those of parkedRules that cannot run with what the cluster
// serves, whatever is permitted.
func (e *Engine) unfitRules() []string {
	var out []string
	for _, resource := range e.rules().Resources() {
		info, ok := e.informers.Info(resource)
		if !ok {
			continue
		}
		for _, r := range e.rules().For(resource) {
			why := r.Unfit(traits(info))
			if why == "" {
				why = e.absentLookup(r)
			}
			if why != "" && why != rules.ErrReplicasUnknown.Error() {
				out = append(out, parkedLine(r, resource, why))
			}
		}
	}
	return out
}

// eachParked visits the rules that cannot run on a resource although it is there.
func (e *Engine) eachParked(visit func(r *rules.Rule, resource schema.GroupVersionResource, why string)) {
	e.eachParkedFor(func(r *rules.Rule, resource schema.GroupVersionResource, _, why string) { visit(r, resource, why) })
}

// eachParkedFor is eachParked with the reason as metrics name it, too.
func (e *Engine) eachParkedFor(visit func(r *rules.Rule, resource schema.GroupVersionResource, word, why string)) {
	p := e.policy.Load()
	set, survey := p.rules, e.survey(p)
	ns, _ := e.informers.Availability(namespaces)
	if len(e.opts.ReadNamespaces) > 0 {
		ns = gvr.Available
	}
	for _, resource := range set.Resources() {
		info, ok := e.informers.Info(resource)
		if !ok {
			continue
		}
		for _, r := range set.For(resource) {
			if word, why := e.parkedReason(r, info, ns, survey); word != "" {
				visit(r, resource, word, why)
			}
		}
	}
}

// parkedRules tells which rules cannot write, and why.
func (e *Engine) parkedRules() []string {
	var out []string
	e.eachParked(func(r *rules.Rule, resource schema.GroupVersionResource, why string) {
		out = append(out, parkedLine(r, resource, why))
	})
	for _, t := range e.permissions.list() {
		writers := e.writers(t.resource, t.subresource)
		if len(writers) == 0 {
			continue // the rules that wanted it have gone
		}
		out = append(out, fmt.Sprintf("%s: %s; parked: %s", rules.ResourceName(t.resource), t.missing(), strings.Join(names(writers), ", ")))
	}
	slices.Sort(out)
	return out
}
