package chaos

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/engine"
)

var networkFaults = []scenario{
	{
		name: "connection-cut", fault: "connection to the API server cut for 3 s",
		run: harm{lasts: 3 * time.Second, begin: (*road).cut, end: (*road).open}.run,
	},
	{
		name: "connection-cut-20s", fault: "connection to the API server cut for 20 s", long: true,
		run: harm{lasts: 20 * time.Second, begin: (*road).cut, end: (*road).open}.run,
	},
	{
		name: "connection-cut-2m", fault: "connection to the API server cut for 2 min", long: true,
		run: harm{lasts: 2 * time.Minute, begin: (*road).cut, end: (*road).open}.run,
	},
	{
		name: "connection-delayed", fault: "2 s of latency each way for 40 s", long: true,
		run: harm{lasts: 40 * time.Second, begin: func(r *road) {
			r.toxic("latency", "upstream", `{"latency": 2000}`)
			r.toxic("latency", "downstream", `{"latency": 2000}`)
		}}.run,
	},
	{
		name: "connection-dead", fault: "old connections are dead without a word (no data, no FIN), new ones work", long: true,
		run: harm{lasts: 90 * time.Second, begin: func(r *road) {
			r.blackHole("upstream", "downstream")
			r.detour()
		}}.run,
	},
	{
		name: "network-dead", fault: "all connections are dead without a word for 2 min", long: true,
		run: harm{lasts: 2 * time.Minute, begin: func(r *road) { r.blackHole("upstream", "downstream") }}.run,
	},
	{
		name: "answers-lost", fault: "requests arrive, answers do not, for 2 min", long: true,
		run: harm{lasts: 2 * time.Minute, begin: func(r *road) {
			r.drift(30, "meanwhile") // so that PATCHes are on their way
			r.blackHole("downstream")
		}}.run,
	},
	{
		name: "connection-closed-late", fault: "server's connections close, and the client is told 10 s later; none for 60 s", long: true,
		run: harm{lasts: 60 * time.Second, begin: func(r *road) {
			r.toxic("slow_close", "downstream", `{"delay": 10000}`)
			r.behind.Stop()
		}, end: func(r *road) { r.start(r.behind) }}.run,
	},
	{
		name: "connection-limited", fault: "every connection is cut after 12 KB for 30 s", long: true,
		run: harm{lasts: 30 * time.Second, begin: func(r *road) { r.toxic("limit_data", "downstream", `{"bytes": 12000}`) }}.run,
	},
	{
		name: "connection-reset", fault: "every connection is reset (RST) 200 ms after its first byte, for 60 s", long: true,
		run: harm{lasts: time.Minute, begin: func(r *road) { r.toxic("reset_peer", "downstream", `{"timeout": 200}`) }}.run,
	},
	{
		name: "watch-late", fault: "watch events come 2 s late, with writes to the object in between",
		run: func(t *trial) { delayWatch(t, 2*time.Second) },
	},
	{
		name: "watch-late-5s", fault: "watch events come 5 s late, with writes to the object in between", long: true,
		run: func(t *trial) { delayWatch(t, 5*time.Second) },
	},
}

// harm is a fault of the network for some time.
type harm struct {
	lasts      time.Duration
	begin, end func(*road) // end may be nil: toxics are taken away in any case
}

// run has objects drift before the fault, when it has begun, and after it.
func (h harm) run(t *trial) {
	const n = 30
	l := t.shared()
	way := l.road()
	p := l.start(over(way), follow)
	l.drift(n, "before")
	l.allRight(2*time.Minute, n, "before")
	before := p.rest()

	began, cpu := time.Now(), processCPU()
	h.begin(way)
	l.drift(n, "meanwhile")
	var mended, told time.Duration
	for since := time.Since(began); since < h.lasts; since = time.Since(began) {
		if right, _ := l.right("meanwhile"); right == n && mended == 0 {
			mended = since
			l.saw("right %.1f s after the fault had begun, while it went on", mended.Seconds())
		}
		if report := p.readyz(); told == 0 && (strings.Contains(report, "Failing") || strings.Contains(report, "discovery: fails now")) {
			told = since
			l.saw("/readyz told of it after %.1f s", told.Seconds())
		}
		l.pause(200 * time.Millisecond)
	}
	if mended == 0 && told == 0 {
		l.Errorf("nothing has been put right for %s, and /readyz does not say why:\n%s", h.lasts, p.readyz())
	}
	if mended == 0 && told > time.Minute {
		l.Errorf("/readyz told of it only after %s", told)
	}
	l.idleSince(began, cpu)
	way.heal()
	if h.end != nil {
		h.end(way)
	}
	l.drift(n, "after")
	took := l.allRight(2*time.Minute, n, "after")
	l.saw("all right %.1f s after the fault had ended", took.Seconds())
	p.judge(before, costOf(1, h.lasts, time.Since(before.at), 2*n))
}

// late is follow that reads the Namespace: a change of that has all objects
// looked at.
var late = strings.Replace(follow, "condition:", "condition: namespaceObject.metadata.?labels.?beat.orValue('') != 'off' &&", 1)

// delayWatch delays what the watch of ConfigMaps brings, and nothing else. Right
// after each PATCH the object is written by somebody else too, and all are looked
// at again and again while the cache still has what they were before.
func delayWatch(t *trial, delay time.Duration) {
	const n = 20
	l := t.shared()
	way := l.road()
	p := l.start(func(o *engine.Options) {
		slow := &engine.Options{Config: rest.CopyConfig(o.Config)}
		over(way)(slow)
		transport, err := rest.TransportFor(slow.Config)
		if err != nil {
			l.Fatal(err)
		}
		o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if watchesConfigMaps(r) {
					return transport.RoundTrip(r)
				}
				return next.RoundTrip(r)
			})
		})
	}, late)
	l.drift(n, "before")
	l.allRight(time.Minute, n, "before")
	before := p.rest()

	way.toxic("latency", "downstream", fmt.Sprintf(`{"latency": %d}`, delay.Milliseconds()))
	began := time.Now()
	l.drift(n, "after")
	took := l.allRight(time.Minute, n, "after")
	if took < delay/2 {
		l.Fatalf("right after %s: the watch is not late", took)
	}
	for i := range n {
		l.touch(i)
	}
	looks := 0
	for ; time.Since(began) < took+delay-500*time.Millisecond; looks++ {
		l.merge(namespaces, "", l.ns, fmt.Sprintf(`{"metadata":{"labels":{"beat":"%d"}}}`, looks))
		l.pause(200 * time.Millisecond)
	}
	l.saw("right after %.1f s; then all were looked at %d times while the cache was old", took.Seconds(), looks)
	cost := costOf(0, 0, time.Since(before.at), 0)
	cost["patch configmaps"] = n // exactly one for each
	p.judge(before, cost)
}
