package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// bounds are how many requests of each kind a fault may cost at most, by the
// kinds of traffic. A kind ends in "*" to stand for all resources. What has no
// bound was not to be sent at all.
type bounds map[string]int

// of returns the bound of a kind.
func (b bounds) of(kind string) int {
	verb, _, _ := strings.Cut(kind, " ")
	if n, ok := b[kind]; ok {
		return n
	}
	return b[verb+" *"]
}

// anyNumber is no bound.
const anyNumber = math.MaxInt

// costOf is what a fault may cost that breaks all connections a number of times,
// for some time all in all, while n objects are drifted. took is the time from
// before the first to the end.
func costOf(breaks int, away, took time.Duration, n int) bounds {
	// An informer goes on, with its back-off, and lists if the server has forgotten where that was: as a stream, or
	// plainly if streams do not work. client-go repeats a request whose connection was reset after a second.
	each := 2*breaks + attemptsWithin(away) + int(away.Seconds())
	return bounds{
		"watch *": each, "stream *": each, "list *": each,
		// Two requests every 10 s, more often at first while they fail, and twice after what looks like a change.
		"discovery": 2 * (int(took/(10*time.Second)) + 1 + attemptsWithin(away) + 2*breaks),
		// One for each drift, and one more if it met a conflict or its answer was lost; what fails is tried again
		// within the rate of retries.
		"patch *": 2*n + 500 + int(50*away.Seconds()),
		// Events have a rate limit of their own, and a list has as many pages as it has.
		"create *": anyNumber, "patch events": anyNumber, "page *": anyNumber,
	}
}

// attemptsWithin is how often a list or a watch may be tried while it cannot
// work: at once, then after 250 ms, and each time after twice as long, but after
// 15 s at the latest.
func attemptsWithin(d time.Duration) int {
	attempts, wait := 1, 250*time.Millisecond
	for at := wait; at <= d; at += wait {
		attempts++
		wait = min(2*wait, 15*time.Second)
	}
	return attempts
}

// baseline is what a patient is compared with at the end: how it was before the
// fault.
type baseline struct {
	at         time.Time
	goroutines int
	sent       map[string]int
}

// rest waits until the patient has nothing to do, and notes how it is then.
func (p *patient) rest() baseline {
	p.Helper()
	p.quiet()
	return baseline{at: time.Now(), goroutines: goroutines(), sent: p.traffic.since(nil)}
}

// judge is how a fault ends, after everything is right again: the patient is
// quiet, sent no more than allowed since the baseline, nothing but guarded
// PATCHes that were decided on the version they changed, and neither keeps
// goroutines nor leaves any behind.
func (p *patient) judge(before baseline, allowed bounds) {
	p.Helper()
	p.quiet()
	sent := p.traffic.since(before.sent)
	p.saw("sent in %.0f s: %s", time.Since(before.at).Seconds(), describe(sent))
	for _, kind := range slices.Sorted(maps.Keys(sent)) {
		if limit := allowed.of(kind); sent[kind] > limit {
			if kind == "discovery" && !testcluster.AtLeast(p, "1.30") {
				continue // there, each look takes a request for each group
			}
			p.Errorf("%d × %s in %s: more than the %d that are justified", sent[kind], kind, time.Since(before.at).Round(time.Second), limit)
		}
	}
	p.writes(configmaps.Resource)
	p.decidedOnCurrent(configmaps.Resource)
	eventuallyOrErrorf(p.trial, time.Minute, func() error {
		if now := goroutines(); now > before.goroutines {
			return fmt.Errorf("%d goroutines of the engine, %d before the fault", now, before.goroutines)
		}
		return nil
	})
	p.stop()
	eventuallyOrErrorf(p.trial, time.Minute, func() error {
		if left := goroutines(); left > p.goroutinesBefore {
			return fmt.Errorf("the engine left %d goroutines behind", left-p.goroutinesBefore)
		}
		return nil
	})
}

// eventuallyOrErrorf is testcluster.Eventually that lets the rest of a judgement
// be heard.
func eventuallyOrErrorf(t *trial, timeout time.Duration, condition func() error) {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("not within %s: %v", timeout, err)
			return
		}
	}
}

// quiet waits until the patient has sent no PATCH for a while.
func (p *patient) quiet() {
	p.Helper()
	const quiet = 2 * time.Second
	patches := func() (n int) {
		for kind, sent := range p.traffic.since(nil) {
			if strings.HasPrefix(kind, "patch ") && kind != "patch events" {
				n += sent
			}
		}
		return n
	}
	before, since := patches(), time.Now()
	testcluster.Eventually(p, time.Minute, func() error {
		if now := patches(); now != before {
			before, since = now, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("the engine still sends PATCHes: %d so far", before)
		}
		return nil
	})
}

// idleSince fails the trial if the CPU was busy in a fault in which nothing can be
// done: with the engine, or with this test.
func (t *trial) idleSince(began time.Time, before time.Duration) {
	t.Helper()
	busy := 100 * (processCPU() - before).Seconds() / time.Since(began).Seconds()
	t.saw("CPU: %.0f%%, the test's own work included", busy)
	if busy > 50 {
		t.Errorf("the CPU was busy: %.0f%%", busy)
	}
}

// processCPU is the time that this process has computed.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// ours is what the stacks of the engine's goroutines have in them, those that
// client-go runs for it included.
var ours = []string{
	"github.com/rectifier-dev/rectifier/engine.", "github.com/rectifier-dev/rectifier/gvr.",
	"k8s.io/client-go/tools/cache.", "k8s.io/apimachinery/pkg/watch.", "k8s.io/client-go/util/workqueue.",
}

// goroutines counts the goroutines of all engines in this process.
func goroutines() (n int) {
	buf := make([]byte, 1<<20)
	for size := runtime.Stack(buf, true); ; size = runtime.Stack(buf, true) {
		if size < len(buf) {
			buf = buf[:size]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if slices.ContainsFunc(ours, func(s string) bool { return strings.Contains(stack, s) }) {
			n++
		}
	}
	return n
}

// version is one version of an object, as the audit log tells of the write that
// made it.
type version struct {
	number uint64 // the resourceVersion, which etcd counts up over all objects
	by     string // user
	from   uint64 // with the patient's: the resourceVersion it was decided on
}

// decidedOnCurrent fails the trial if an accepted PATCH of the patient was
// decided on another version of the object than the one that it replaced. Each
// write's answer says which version it made; in their order, the one before
// must be the one that the request named.
func (p *patient) decidedOnCurrent(resources ...string) {
	p.Helper()
	checked, conflicts, unlogged := 0, 0, 0
	for object, versions := range p.versions(&conflicts, resources) {
		for i, v := range versions {
			if v.by != p.user || i == 0 {
				continue
			}
			checked++
			switch before := versions[i-1].number; {
			case v.from < before:
				p.Errorf("%s: a PATCH decided on version %d replaced version %d by %s", object, v.from, before, versions[i-1].by)
			case v.from > before:
				unlogged++ // what wrote v.from is not in the log
			}
		}
	}
	if unlogged > 0 && !p.logHasHoles {
		p.Errorf("%d PATCHes were decided on versions that nobody is known to have written", unlogged)
	}
	p.saw("%d accepted PATCHes, each decided on the version it replaced; %d conflicts", checked, conflicts)
	if conflicts > 20+checked/10 {
		p.Errorf("%d conflicts with %d accepted PATCHes", conflicts, checked)
	}
}

// versions reads from the audit log the versions of each object (by resource,
// name and uid) in the lab's namespace, in their order. It counts the
// patient's conflicts.
func (p *patient) versions(conflicts *int, resources []string) map[string][]version {
	p.Helper()
	writes, err := p.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return slices.Contains(resources, e.ObjectRef.Resource) && e.ObjectRef.Namespace == p.ns &&
			slices.Contains([]string{"create", "update", "patch"}, e.Verb)
	})
	if err != nil {
		p.Fatal(err)
	}
	versions := map[string][]version{}
	for i := range writes {
		e := &writes[i]
		if e.ResponseStatus.Code/100 != 2 {
			if e.ResponseStatus.Code == http.StatusConflict && e.User.Username == p.user {
				*conflicts++
			}
			continue
		}
		var answer struct{ Metadata guard }
		if err := json.Unmarshal(e.ResponseObject, &answer); err != nil {
			p.Fatalf("the answer to a %s of %s: %v", e.Verb, e.RequestURI, err)
		}
		v := version{number: answer.Metadata.number(), by: e.User.Username}
		if v.by == p.user {
			request, err := guardOf(e.RequestObject)
			if err != nil || request.UID != answer.Metadata.UID {
				p.Errorf("an accepted PATCH of %s without its uid and resourceVersion: %s (%v)", e.ObjectRef.Name, e.RequestObject, err)
				continue
			}
			v.from = request.number()
		}
		object := strings.Join([]string{e.ObjectRef.Resource, e.ObjectRef.Name, answer.Metadata.UID}, " ")
		versions[object] = append(versions[object], v)
	}
	for object, all := range versions {
		slices.SortStableFunc(all, func(a, b version) int { return cmp.Compare(a.number, b.number) })
		// A request that changed nothing is answered with the version that was there.
		versions[object] = slices.CompactFunc(all, func(a, b version) bool { return a.number == b.number })
	}
	return versions
}

// guard is what a write says about the object it was decided on.
type guard struct{ UID, ResourceVersion string }

func (g guard) number() uint64 {
	n, _ := strconv.ParseUint(g.ResourceVersion, 10, 64)
	return n
}

// guardOf reads the guard of a merge patch or of a JSON patch.
func guardOf(body json.RawMessage) (guard, error) {
	var merge struct{ Metadata guard }
	if err := json.Unmarshal(body, &merge); err == nil {
		return merge.Metadata, nil
	}
	var ops []struct {
		Path  string
		Value any
	}
	if err := json.Unmarshal(body, &ops); err != nil {
		return guard{}, err
	}
	var g guard
	for _, op := range ops {
		switch value, _ := op.Value.(string); op.Path {
		case "/metadata/uid":
			g.UID = value
		case "/metadata/resourceVersion":
			g.ResourceVersion = value
		}
	}
	return g, nil
}
