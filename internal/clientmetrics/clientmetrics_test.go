package clientmetrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Requests count by code and method, and what is read to its end is timed. A watch
// that stays open counts at once, and is never timed.
func TestRequestsOfClients(t *testing.T) {
	ends := make(chan struct{})
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Has("watch"):
			w.(http.Flusher).Flush()
			<-ends
		case strings.HasSuffix(r.URL.Path, "/busy"):
			if tries++; tries == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap"}`)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMapList"}`)
		}
	}))
	defer server.Close()
	defer close(ends)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	Register(registry)
	Register(prometheus.NewRegistry()) // another command in the same process

	objects := client.CoreV1().ConfigMaps("ns")
	if _, err := objects.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Get(t.Context(), "busy", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := objects.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err == nil {
		t.Fatal("nothing is there to delete")
	}
	watch, err := objects.Watch(t.Context(), metav1.ListOptions{Watch: true})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	want := `
# HELP rest_client_request_retries_total Requests that the client itself sent again, by HTTP method and code of the answer to that.
# TYPE rest_client_request_retries_total counter
rest_client_request_retries_total{code="200",method="GET"} 1
# HELP rest_client_requests_total Requests to the API server by HTTP method and code of the answer; <error> if there was none.
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",method="GET"} 3
rest_client_requests_total{code="404",method="DELETE"} 1
rest_client_requests_total{code="429",method="GET"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "rest_client_requests_total", "rest_client_request_retries_total"); err != nil {
		t.Error(err)
	}
	timed := map[string]uint64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				timed[m.GetLabel()[0].GetValue()] = h.GetSampleCount()
				if took := time.Duration(h.GetSampleSum() * float64(time.Second)); took <= 0 || took > time.Minute {
					t.Errorf("%s took %v", m.GetLabel(), took)
				}
			}
		}
	}
	if timed["GET"] != 2 || timed["DELETE"] != 1 { // list and get, not the watch
		t.Errorf("%v requests are timed", timed)
	}
}
