package rulefiles

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"time"

	"github.com/rectifier-dev/rectifier/rules"
)

// Files are the rule files that PATH arguments name. Read comes first, then one
// Watch; they must not run side by side.
type Files struct {
	paths []string // what can be read again
	once  []string // what cannot: standard input and pipes
	stdin io.Reader
	times times

	kept []rules.Source // from what can be read once only
	last []rules.Source // what Read or changed last took
	seen []rules.Source // what was last read

	failures int           // in a row
	told     string        // the last error that changed was given; empty after a success
	wait     time.Duration // until changed is called again that did not take the files; 0: it did
}

// times are how long Watch waits; they are variables for tests only.
type times struct {
	quiet time.Duration // after the last event of a burst
	burst time.Duration // at most, after the first
	poll  time.Duration // where there are no events
	retry time.Duration // after an error
}

var defaultTimes = times{quiet: 300 * time.Millisecond, burst: 3 * time.Second, poll: time.Minute, retry: 2 * time.Second}

// New takes PATH arguments; it reads nothing yet.
func New(paths []string, stdin io.Reader) *Files {
	f := &Files{stdin: stdin, times: defaultTimes}
	for _, path := range paths {
		if readOnce(path) {
			f.once = append(f.once, path)
		} else {
			f.paths = append(f.paths, path)
		}
	}
	return f
}

// readOnce reports whether a path has its content once only.
func readOnce(path string) bool {
	if path == "-" {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// Read reads all files.
func (f *Files) Read() ([]rules.Source, error) {
	sources, err := f.read()
	f.last = sources
	return sources, err
}

func (f *Files) read() ([]rules.Source, error) {
	if len(f.once) > 0 && f.kept == nil {
		kept, err := rules.Read(f.once, f.stdin)
		if err != nil {
			return nil, err
		}
		f.kept = kept
	}
	sources, err := rules.Read(f.paths, nil)
	if err != nil {
		return nil, err
	}
	return slices.Concat(sources, f.kept), nil
}

// Watch calls changed with all files when they are not as they were and stay so
// for a moment, until ctx ends. An error means that they cannot be read for now:
// it is passed on once, if it lasts, and the files that were read before are
// still what counts; when they can be read again, changed is called in any case.
// If changed returns an error, it has not taken the files, and is called again after
// a time that grows, or when they change. Calls come one at a time.
func (f *Files) Watch(ctx context.Context, changed func([]rules.Source, error) error) {
	if len(f.paths) == 0 {
		return // nothing can change
	}
	w := newWatcher(ctx)
	defer w.close()
	w.follow(f.paths)
	var burst time.Time // when it began; zero: there is none
	// They may have changed since they were read.
	timer := time.NewTimer(f.look(changed))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.events:
			now := time.Now()
			if burst.IsZero() {
				burst = now
			}
			timer.Reset(min(f.times.quiet, burst.Add(f.times.burst).Sub(now)))
		case <-timer.C:
			burst = time.Time{}
			w.follow(f.paths) // first: what changes after it was read is an event
			timer.Reset(f.look(changed))
		}
	}
}

// look reads the files and passes on what is new. It returns when to look again
// if there is no event.
func (f *Files) look(changed func([]rules.Source, error) error) time.Duration {
	before := f.seen
	sources, err := f.read()
	if err != nil {
		f.failures++
		// In the middle of a change a file can be missing for a moment.
		if f.failures > 1 && f.told != err.Error() {
			f.told = err.Error()
			_ = changed(nil, err) // there is nothing to take
		}
		return f.times.retry
	}
	f.seen = sources
	switch {
	case f.told == "" && f.wait == 0 && same(sources, f.last):
	case !same(sources, before):
		return f.times.quiet // it may be half written: see whether it stays
	default:
		if changed(sources, nil) != nil {
			f.wait = min(max(2*f.wait, f.times.retry), f.times.poll)
			return f.wait
		}
		f.last = sources
	}
	f.failures, f.told, f.wait = 0, "", 0
	return f.times.poll
}

func same(a, b []rules.Source) bool {
	return slices.EqualFunc(a, b, func(a, b rules.Source) bool {
		return a.Name == b.Name && a.Listed == b.Listed && bytes.Equal(a.Data, b.Data)
	})
}
