package gvr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// watchable opens watches that work.
type watchable struct{ dynamic.ResourceInterface }

func (watchable) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// The reflector opens a watch again at once when it has brought an event. If each
// ends after one event, that must not become as many requests as there are events.
func TestShortWatchesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var problems int
		s := scopeAttempts{watchable{}, &attempts{report: func(_ string, err error) {
			if err != nil {
				problems++
			}
		}}}
		// openAndStop lets a watch last, and returns how long opening and stopping it took.
		openAndStop := func(ctx context.Context, lasts time.Duration) (opening, stopping time.Duration) {
			began := time.Now()
			w, err := s.Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			opening = time.Since(began)
			time.Sleep(lasts)
			synctest.Wait()
			began = time.Now()
			w.Stop()
			return opening, time.Since(began)
		}
		ctx, stop := context.WithCancel(t.Context())
		for i := range 10 {
			var want time.Duration
			if i+1 >= shortWatches {
				want = shortWatch
			}
			if opening, stopping := openAndStop(ctx, 0); opening != 0 || stopping != want {
				t.Errorf("watch %d: it took %s to open it, and %s to stop it, not 0 and %s", i, opening, stopping, want)
			}
		}
		if want := 10 - shortWatches + 1; problems != want {
			t.Errorf("%d problems were reported, not %d", problems, want)
		}
		for _, lasts := range []time.Duration{2 * shortWatch, 0} {
			if _, stopping := openAndStop(ctx, lasts); stopping != 0 {
				t.Errorf("one that has lasted, and the first after it: it took %s to stop it", stopping)
			}
		}
		openAndStop(ctx, 0)
		stop()
		if _, stopping := openAndStop(ctx, 0); stopping != 0 {
			t.Errorf("the informer stops: it took %s", stopping)
		}
	})
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// client-go repeats what failed for one of these reasons ten times, a second
// apart, and says of a watch that it was opened.
func TestEachAttemptIsOneRequest(t *testing.T) {
	for want, cause := range map[string]error{
		"no answer in time":                      os.ErrDeadlineExceeded, // as a TLS handshake that takes too long
		"the connection broke":                   syscall.ECONNRESET,
		"dial: " + errors.ErrUnsupported.Error(): fmt.Errorf("dial: %w", errors.ErrUnsupported),
	} {
		requests := 0
		clients, err := newClients(&rest.Config{Host: "http://127.0.0.1", Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			requests++
			return nil, cause
		})})
		if err != nil {
			t.Fatal(err)
		}
		client, err := clients.forResource(crdResource, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, watchErr := client.Resource(crdResource).Watch(t.Context(), metav1.ListOptions{})
		_, listErr := client.Resource(crdResource).List(t.Context(), metav1.ListOptions{})
		for verb, err := range map[string]error{"watch": watchErr, "list": listErr} {
			if err == nil || describe(err) != want {
				t.Errorf("%s after %v: %v", verb, cause, err)
			}
		}
		if requests != 2 {
			t.Errorf("%v: %d requests for a watch and a list", cause, requests)
		}
	}
}
