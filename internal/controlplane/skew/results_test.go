package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stream is what `go test -json` printed of three packages, shortened: one test of
// each kind, and a package that ends without a test that failed.
const stream = `{"Action":"start","Package":"p/one"}
{"Action":"run","Package":"p/one","Test":"TestA"}
{"Action":"run","Package":"p/one","Test":"TestB"}
{"Action":"output","Package":"p/one","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p/one","Test":"TestB","Output":"    b_test.go:7: the value is 3\n"}
{"Action":"pass","Package":"p/one","Test":"TestA","Elapsed":1.5}
{"Action":"fail","Package":"p/one","Test":"TestB","Elapsed":0.5}
{"Action":"output","Package":"p/one","Output":"FAIL\n"}
{"Action":"fail","Package":"p/one","Elapsed":2.1}
{"Action":"output","Package":"p/two","Test":"TestC/part","Output":"    c_test.go:12: needs Kubernetes 1.33, this is v1.29.6: no such API\n"}
{"Action":"skip","Package":"p/two","Test":"TestC/part"}
{"Action":"pass","Package":"p/two","Test":"TestC"}
{"Action":"pass","Package":"p/two","Elapsed":60}
{"Action":"output","Package":"p/three","Output":"panic: test timed out after 30m0s\n"}
{"Action":"fail","Package":"p/three","Elapsed":1800}
{"Action":"skip","Package":"p/empty","Elapsed":0}
`

func TestResults(t *testing.T) {
	var out bytes.Buffer
	r, err := read(strings.NewReader(stream), &out)
	if err != nil {
		t.Fatal(err)
	}
	r.print(&out, "1.29.6", time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC))
	const want = `    b_test.go:7: the value is 3
fail  p/one                                                                 1 passed, 1 failed, 0 skipped, 2 s
pass  p/two                                                                 1 passed, 0 failed, 1 skipped, 60 s
panic: test timed out after 30m0s
fail  p/three                                                               0 passed, 1 failed, 0 skipped, 1800 s
skip  p/empty                                                               0 passed, 0 failed, 0 skipped, 0 s
failed: p/one TestB
failed: p/three
skipped 1: needs Kubernetes 1.33, this is v1.29.6: no such API

| 1.29.6 | 5 | 2 | 2 | 1 | 2026-11-30 | ` + "`make skew VERSION=1.29.6`" + ` |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNoResultIsAnError(t *testing.T) {
	if _, err := read(strings.NewReader("go: cannot find main module\n"), &bytes.Buffer{}); err == nil {
		t.Error("it was read")
	}
}
