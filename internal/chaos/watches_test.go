package chaos

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rectifier-dev/rectifier/engine"
)

var watchFaults = []scenario{
	{
		name: "every-watch-expired", fault: "every watch is answered with 410 for 60 s", long: true,
		run: spoiling{instead(http.StatusGone, expired), 2 * relists, relists + 2, true}.run,
	},
	{
		name: "every-watch-expired-in-stream", fault: "every watch is answered with 200 and a 410 in the stream for 60 s", long: true,
		run: spoiling{instead(http.StatusOK, `{"type":"ERROR","object":`+expired+`}`), 2 * relists, relists + 2, true}.run,
	},
	{
		name: "every-watch-empty", fault: "every watch is answered with 200 and ends at once for 60 s", long: true,
		run: spoiling{instead(http.StatusOK, ""), relists, relists + 2, true}.run,
	},
	{
		name: "every-watch-short", fault: "every watch ends after its first event for 60 s, with 20 events a second", long: true,
		run: spoiling{firstEvent, relists, 60 + 15, false}.run, // one a second, after the first few
	},
}

// relists is how often a reflector lists anew within a minute if nothing else works: at once, and after its back-off
// of 800 ms to 30 s, which doubles.
const relists = 7

// spoiling does something to all watches of ConfigMaps for a minute.
type spoiling struct {
	answer           func(http.RoundTripper, *http.Request) (*http.Response, error)
	streams, watches int  // at most
	blind            bool // only lists show what has changed
}

const expired = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","message":"too old resource version","code":410}`

// instead gives an answer of its own.
func instead(code int, body string) func(http.RoundTripper, *http.Request) (*http.Response, error) {
	return func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// firstEvent gives the API server's answer up to the end of the first event.
func firstEvent(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	body := resp.Body
	reader, writer := io.Pipe()
	resp.Body = rewritten{reader, body}
	go func() {
		isProtobuf := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf")
		_ = writer.CloseWithError(copyEvent(writer, bufio.NewReader(body), isProtobuf))
	}()
	return resp, nil
}

// rewritten is a body of which something else is read.
type rewritten struct {
	*io.PipeReader
	body io.Closer
}

func (r rewritten) Close() error { return errors.Join(r.PipeReader.Close(), r.body.Close()) }

// copyEvent copies one event: a line of JSON, or protobuf with its length in front.
func copyEvent(out io.Writer, in *bufio.Reader, isProtobuf bool) error {
	if !isProtobuf {
		line, err := in.ReadBytes('\n')
		if _, failed := out.Write(line); failed != nil {
			return failed
		}
		return err
	}
	length, err := in.Peek(4)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, b := range length {
		size = size<<8 | int64(b)
	}
	_, err = io.CopyN(out, in, 4+size)
	return err
}

func watchesConfigMaps(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Has("watch")
}

// run spoils the watches while an object changes all the time. What is listed is
// put right all the same; requests grow rare, the CPU is idle, and /readyz tells.
func (s spoiling) run(t *trial) {
	const n, lasts = 20, time.Minute
	l := t.shared()
	way := l.road()
	var spoiled atomic.Bool
	p := l.start(func(o *engine.Options) {
		over(way)(o)
		count := o.Config.WrapTransport
		o.Config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
			return count(roundTripper(func(r *http.Request) (*http.Response, error) {
				if spoiled.Load() && watchesConfigMaps(r) {
					return s.answer(rt, r)
				}
				return rt.RoundTrip(r)
			}))
		}
	}, follow)
	l.drift(n, "before")
	l.allRight(time.Minute, n, "before")
	before := p.rest()

	began, cpu := time.Now(), processCPU()
	spoiled.Store(true)
	way.cut() // the watch that is open
	way.open()
	l.drift(n, "meanwhile")
	took := l.allRight(lasts, n, "meanwhile")
	l.saw("changed during the fault, right after %.1f s", took.Seconds())
	var half map[string]int
	for time.Since(began) < lasts {
		if half == nil && time.Since(began) > lasts/2 {
			half = p.traffic.since(nil)
		}
		l.touch(0)
		l.pause(50 * time.Millisecond)
	}
	late := p.traffic.since(half)
	l.saw("in its second half: %s", describe(late))
	l.idleSince(began, cpu)
	if report := p.readyz(); !strings.Contains(report, "v1/configmaps: Failing: watch configmaps:") {
		l.Errorf("/readyz does not tell:\n%s", report)
	}
	spoiled.Store(false)
	healed := time.Now()
	l.drift(n, "after")
	l.allRight(2*time.Minute, n, "after")
	l.saw("all right %.1f s after the fault had ended", time.Since(healed).Seconds())
	cost := costOf(1, 0, time.Since(before.at), 2*n)
	cost["list configmaps"], cost["stream configmaps"], cost["watch configmaps"] = relists, s.streams, s.watches
	if lists := p.traffic.since(before.sent)["list configmaps"]; s.blind && lists < relists/2 {
		l.Errorf("%d lists while no watch worked: changes were not seen", lists)
	}
	p.judge(before, cost)
}
