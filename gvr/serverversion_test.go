package gvr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// testVersion is what fake servers say they are.
const testVersion = "v1.37.2"

// noVersion is that of a fake server that does not tell it.
const noVersion = "none"

// The upper end of the range is the version of the Go types. With newer ones, the tags have to be compared again: those of
// k8s.io/api and k8s.io/apimachinery in both versions, field by field, in what they leave out.
func TestProtobufIsReadUpToTheVersionOfTheTypes(t *testing.T) {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery"} {
		found := regexp.MustCompile(`(?m)^\s*` + module + ` v0\.(\d+)\.`).FindSubmatch(text)
		if len(found) == 0 || string(found[1]) != fmt.Sprint(newestProtobuf) {
			t.Errorf("%s is of another version: %s", module, found)
		}
	}
}

func TestOfWhichServersProtobufIsRead(t *testing.T) {
	for text, want := range map[string]bool{
		`{"gitVersion":"v1.37.2"}`:                          true,
		`{"gitVersion":"v1.35.0"}`:                          true,
		`{"gitVersion":"v1.36.1+k3s1"}`:                     true,
		`{"gitVersion":"v1.35.4-gke.1000"}`:                 true,
		`{"major":"1","minor":"33","gitVersion":"v1.37.0"}`: true, // it emulates 1.33
		`{"gitVersion":"v1.34.4"}`:                          false,
		`{"gitVersion":"v1.29.6"}`:                          false,
		`{"gitVersion":"v1.38.0-alpha.1"}`:                  false,
		`{"gitVersion":"v2.36.0"}`:                          false,
		`{"gitVersion":""}`:                                 false,
		`{"kind":"Status","status":"Failure"}`:              false,
		`<html>`:                                            false,
		``:                                                  false,
	} {
		if got := comparesInJSON([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// Of an older or a newer server JSON is read, and protobuf as soon as it has been replaced.
func TestAServerOfAnotherVersion(t *testing.T) {
	for _, version := range []string{"v1.33.5", "v1.38.0", noVersion} {
		t.Run(version, func(t *testing.T) {
			accepted := make(chan string, 1000)
			s := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: func(w http.ResponseWriter, r *http.Request) {
				accepted <- r.Header.Get("Accept")
				healthy("a")(w, r)
			}})
			s.setVersion(version)
			m, _, _ := run(t, Options{Config: s.config()}, configmaps)
			eventually(t, 20*time.Second, m, configmaps, Synced, "")
			for len(accepted) > 0 {
				if got := <-accepted; got != "application/json" {
					t.Errorf("asked for %q", got)
				}
			}
			s.setVersion(testVersion)
			if version != noVersion { // what is not known is asked again at once
				time.Sleep(versionCounts)
			}
			s.Server.CloseClientConnections()
			testcluster.Eventually(t, 60*time.Second, func() error {
				select {
				case got := <-accepted:
					if got != projection.AcceptProtobuf {
						t.Fatalf("asked for %q", got)
					}
					return nil
				default:
					return fmt.Errorf("nothing was asked for")
				}
			})
		})
	}
}

// A stream of events that cannot be read, whatever is between, is read as JSON.
func TestEventsThatAreNoProtobuf(t *testing.T) {
	strange, err := (&metav1.WatchEvent{Type: "STRANGE"}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"garbage":         append(binary.BigEndian.AppendUint32(nil, 20), bytes.Repeat([]byte{0xff}, 20)...),
		"an empty event":  {0, 0, 0, 0},
		"JSON":            []byte(`{"type":"ADDED","object":{}}`),
		"an unknown type": append(binary.BigEndian.AppendUint32(nil, uint32(len(strange))), strange...),
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: func(w http.ResponseWriter, r *http.Request) {
				if !isWatch(r) || !strings.Contains(r.Header.Get("Accept"), "protobuf") {
					healthy("a")(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
				_, _ = w.Write(body)
			}})
			m, logs, _ := run(t, Options{Config: s.config()}, configmaps)
			eventually(t, 30*time.Second, m, configmaps, Synced, "")
			testcluster.Eventually(t, 30*time.Second, func() error {
				if n := len(logs.matching("as JSON from now on")); n != 1 {
					return fmt.Errorf("%d lines in the log", n)
				}
				return nil
			})
		})
	}
}
