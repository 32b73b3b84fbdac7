package endpoints

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// surfaceWithProfiles is served by a test.
var surfaceWithProfiles = Surface{Ready: func() bool { return true }, Engine: text("detail"), Status: text("status"), Profiling: true}

// Profiles are there only where they are asked for, for this machine or for whom
// an Authorizer allows, and never with metrics or probes.
func TestWhereProfilesAre(t *testing.T) {
	without := surfaceWithProfiles
	without.Profiling = false
	for name, tc := range map[string]struct {
		handler http.Handler
		host    string
		want    int
	}{
		"on loopback":            {surfaceWithProfiles.Local(), "localhost:8080", 200},
		"on loopback, by a name": {surfaceWithProfiles.Local(), "evil.example", 421},
		"not asked for":          {without.Local(), "localhost:8080", 404},
		"for everybody":          {surfaceWithProfiles.Full(nil), "localhost:8080", 404},
		"without a token":        {surfaceWithProfiles.Full(&Authorizer{}), "localhost:8080", 401},
		"not asked for, guarded": {without.Full(&Authorizer{}), "localhost:8080", 404},
		"where only metrics are": {surfaceWithProfiles.Metrics(nil), "localhost:8080", 404},
		"where only probes come": {surfaceWithProfiles.Health(), "localhost:8080", 404},
	} {
		s := start(t, tc.handler, nil, nil)
		request, err := http.NewRequest("GET", "http://"+s.address+"/debug/pprof/cmdline", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = tc.host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != tc.want {
			t.Errorf("%s: %s, not %d", name, response.Status, tc.want)
		}
	}
}

// A profile takes as long as it should, although that is more than others have
// for their requests; a second one at the same time is refused.
func TestProfilesOutlastTheLimits(t *testing.T) {
	s := start(t, surfaceWithProfiles.Local(), nil, func(server *http.Server) {
		server.ReadHeaderTimeout, server.ReadTimeout, server.WriteTimeout = time.Second, time.Second, time.Second
	})
	refused := make(chan int, 1)
	go func() {
		time.Sleep(time.Second)
		response, err := http.Get("http://" + s.address + "/debug/pprof/heap")
		if err != nil {
			refused <- 0
			return
		}
		_ = response.Body.Close()
		refused <- response.StatusCode
	}()
	began := time.Now()
	profile := fetchProfile(t, "http://"+s.address+"/debug/pprof/profile?seconds=3")
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("a profile of 3 s ended after %v", took)
	}
	if !bytes.HasPrefix(profile, gzipMagic) {
		t.Errorf("this is no profile: %.100q", profile)
	}
	if code := <-refused; code != http.StatusServiceUnavailable {
		t.Errorf("a second profile at the same time: %d", code)
	}
	if heap := fetchProfile(t, "http://"+s.address+"/debug/pprof/heap?gc=1"); !bytes.HasPrefix(heap, gzipMagic) {
		t.Errorf("this is no profile: %.100q", heap)
	}
}

var gzipMagic = []byte{0x1f, 0x8b}

// fetchProfile gets a profile as it is, compressed.
func fetchProfile(t *testing.T, url string) []byte {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %q %v", url, response.Status, body, err)
	}
	return body
}

func TestProfilesHaveAnEnd(t *testing.T) {
	s := start(t, surfaceWithProfiles.Local(), nil, nil)
	for _, tc := range []struct {
		seconds string
		want    int
	}{{"301", 400}, {"-1", 400}, {"NaN", 400}, {"1e99", 400}, {"x", 400}, {"0", 400}, {"1.5", 400}, {"1", 200}} {
		seconds, want := tc.seconds, tc.want
		response, err := http.Get("http://" + s.address + "/debug/pprof/trace?seconds=" + seconds)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s seconds: %s", seconds, response.Status)
		}
	}
}

// The right is one of its own: neither that to metrics nor that to the status
// will do.
func TestWhoMayReadProfiles(t *testing.T) {
	f := newFixture(t)
	metrics, _ := f.reader("profile-metrics", "/metrics", "/", "/api/status")
	f.eventually("/metrics", metrics, 200)
	profiler, _ := f.reader("profiler", "/debug/pprof")
	s := start(t, f.handler, nil, nil)
	get := func(token string) int {
		request, err := http.NewRequest("GET", "http://"+s.address+"/debug/pprof/cmdline", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	testcluster.Eventually(t, 20*time.Second, func() error {
		if code := get(profiler); code != 200 {
			f.ahead.Add(int64(2 * allowedFor)) // what was refused before is forgotten
			return fmt.Errorf("with the right: %d", code)
		}
		return nil
	})
	if code := get(metrics); code != 403 {
		t.Errorf("with the right to metrics and status: %d", code)
	}
}
