package endpoints

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2/textlogger"
)

// Without the right to ask, nobody may read anything, and it is told once what is
// missing.
func TestWithoutTheRightToAsk(t *testing.T) {
	f := newFixture(t)
	config, err := f.cp.User(f.user + "-without")
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	a, err := NewAuthorizer(config, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
	if err != nil {
		t.Fatal(err)
	}
	f.handler = Surface{Ready: f.ready.Load, Engine: text("detail"), Status: text("status")}.Full(a)
	token, _ := f.reader("all", "/*")
	for range 3 {
		f.want("/metrics", token, 503, "could not be asked")
		f.want("/readyz", token, 200, "ok")
	}
	if got := log.String(); strings.Count(got, "Not allowed to ask") != 1 || !strings.Contains(got, "rectifier rbac --authorize") || !strings.Contains(got, "create tokenreviews.authentication.k8s.io: HTTP 403") {
		t.Errorf("the log: %s", got)
	}
}

// While the API server is away, nobody new is let in; who was allowed lately still
// is, and probes are answered.
func TestWithoutTheAPIServer(t *testing.T) {
	f := newFixture(t)
	token, _ := f.reader("metrics", "/metrics")
	f.eventually("/metrics", token, 200)
	nobody, _ := f.account("nobody")
	if err := f.cp.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.cp.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.ahead.Add(int64(2 * allowedFor))
		f.want("/metrics", token, 200, "detail")
	}()
	f.want("/metrics", token, 200, "detail")
	for range 2 {
		f.want("/metrics", nobody, 503, "could not be asked")
		f.want("/metrics", "garbage", 503, "could not be asked")
	}
	f.ahead.Add(int64(2 * allowedFor))
	f.want("/metrics", token, 503, "could not be asked")
	f.want("/readyz", token, 200, "ok")
	f.want("/healthz", "", 200, "ok")
	log := f.log.String()
	if strings.Count(log, "The API server cannot be asked") != 1 || strings.Contains(log, token) {
		t.Errorf("the log: %s", log)
	}
}

// More tokens than the API server is asked about are no outage: some are refused,
// which is told once a minute, and who is known still gets in.
func TestAFloodOfTokens(t *testing.T) {
	f := newFixture(t)
	token, _ := f.reader("metrics", "/metrics")
	f.eventually("/metrics", token, 200)
	flood := func(name string) (answers map[int]int) {
		var mu sync.Mutex
		answers = map[int]int{}
		var wait sync.WaitGroup
		for i := range 2*reviewBurst + int(2*reviewQPS*reviewWait/time.Second) {
			wait.Go(func() {
				code, _ := f.get("/metrics", fmt.Sprint(name, i))
				mu.Lock()
				defer mu.Unlock()
				answers[code]++
			})
		}
		wait.Wait()
		return answers
	}
	for _, name := range []string{"first", "second"} {
		answers := flood(name)
		if len(answers) != 2 || answers[401] == 0 || answers[503] == 0 {
			t.Errorf("%s: the answers are %v", name, answers)
		}
		f.want("/metrics", token, 200, "detail")
	}
	log := f.log.String()
	if strings.Contains(log, "cannot be asked") || strings.Count(log, "Too many tokens come") != 1 {
		t.Errorf("the log: %s", log)
	}
	f.ahead.Add(int64(tellEvery))
	flood("third")
	if n := strings.Count(f.log.String(), "Too many tokens come"); n != 2 {
		t.Errorf("after a minute it was told %d times", n)
	}
}

// An outage is told once, and one that comes and goes once a minute.
func TestOutagesAreToldOnceAMinute(t *testing.T) {
	f := newFixture(t)
	seen := 0
	ask := func(away bool) {
		t.Helper()
		f.away.Store(away)
		seen++
		f.want("/metrics", fmt.Sprint("token-", seen), map[bool]int{true: 503, false: 401}[away], "")
	}
	told := func(want int) {
		t.Helper()
		if got := strings.Count(f.log.String(), "The API server cannot be asked"); got != want {
			t.Fatalf("it was told %d times, not %d", got, want)
		}
	}
	for range 5 {
		ask(true)
		ask(false)
	}
	told(1)
	ask(true) // within a minute of the first: it is told when it lasts
	told(1)
	f.ahead.Add(int64(tellEvery))
	for range 3 {
		ask(true)
		f.ahead.Add(int64(tellEvery))
	}
	told(2)
	ask(false)
	ask(true)
	told(3)
}
