package chaos

import (
	"strconv"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

var serverFaults = []scenario{
	{
		name: "api-server-killed", fault: "API server killed (SIGKILL) and restarted while 100 objects drift",
		run: func(t *trial) { killAPIServer(t, 100, 1) },
	},
	{
		name: "api-server-killed-3-times", fault: "API server killed (SIGKILL) and restarted while 1,000 objects drift, 3 times", long: true,
		run: func(t *trial) { killAPIServer(t, 1000, 3) },
	},
	{
		name: "etcd-compacted", fault: "etcd compacted while the watch is cut: 410 in the stream, from etcd", long: true,
		run: compactEtcd,
	},
}

// killAPIServer kills the API server when a part of n objects has drifted and a
// part of those is right again, so that fixes are on their way.
func killAPIServer(t *trial, n, kills int) {
	l := t.own(controlplane.Options{})
	l.logHasHoles = true
	p := l.start(nil, follow)
	l.drift(n, "0")
	l.allRight(5*time.Minute, n, "0")
	before := p.rest()

	var away time.Duration
	for i := range kills {
		want := strconv.Itoa(i + 1)
		drifted := make(chan int)
		go func() { drifted <- l.driftWhileItWorks(n, want) }()
		l.atLeastRight(time.Minute, n/5, want)
		if err := l.cp.KillAPIServer(); err != nil {
			l.Fatal(err)
		}
		killed := time.Now()
		early := <-drifted
		if err := l.cp.StartAPIServer(l.Context()); err != nil {
			l.Fatal(err)
		}
		back := time.Now()
		away += back.Sub(killed)
		l.drift(n, want)
		l.allRight(5*time.Minute, n, want)
		l.saw("away for %.1f s, when %d of %d objects had drifted; all drifted and right %.1f s after it was back",
			back.Sub(killed).Seconds(), early, n, time.Since(back).Seconds())
	}
	p.judge(before, costOf(kills, away, time.Since(before.at), (kills+1)*n))
}

// driftWhileItWorks drifts one object after the other until the API server does
// not answer any more, and returns how many it were.
func (l *lab) driftWhileItWorks(n int, want string) (drifted int) {
	for i := range n {
		if l.driftOne(i, want) != nil {
			return i
		}
	}
	return n
}

// compactEtcd breaks a watch, changes objects, and has etcd forget the version
// that the watch would go on from. Without a watch cache the API server asks etcd
// for it. (That its watch cache does not reach back far enough is what a
// restart of the API server shows.)
func compactEtcd(t *trial) {
	const n = 100
	l := t.own(controlplane.Options{APIServerArgs: map[string][]string{"watch-cache": {"false"}}})
	way := l.road()
	p := l.start(over(way), follow)
	l.drift(n, "before")
	l.allRight(2*time.Minute, n, "before")
	before := p.rest()

	way.cut()
	cut := time.Now()
	l.drift(n, "meanwhile")
	if err := l.cp.CompactEtcd(l.Context()); err != nil {
		l.Fatal(err)
	}
	way.open()
	away := time.Since(cut)
	took := l.allRight(2*time.Minute, n, "meanwhile")
	l.saw("%d objects changed in %.1f s without a connection; all right %.1f s after it was back", n, away.Seconds(), took.Seconds())
	if sent := p.traffic.since(before.sent); sent["list configmaps"]+sent["stream configmaps"] == 0 {
		l.Error("nothing was listed anew: the watch went on as if its version had not been compacted")
	}
	p.judge(before, costOf(1, away, time.Since(before.at), n))
}
