package chaos

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// converter is a conversion webhook of widgets: v2 has what v1 has. It can be
// away, and come back at the same address.
type converter struct {
	*trial
	server  *httptest.Server
	address string
}

func (t *trial) converter() *converter {
	t.Helper()
	c := &converter{trial: t, address: "127.0.0.1:0"}
	c.start()
	c.address = c.server.Listener.Addr().String()
	t.Cleanup(func() { c.server.Close() })
	return c
}

// start serves.
func (c *converter) start() {
	c.Helper()
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		c.Fatal(err)
	}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(convert))
	_ = c.server.Listener.Close()
	c.server.Listener = listener
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that stop cuts
	c.server.StartTLS()
}

// stop ends connections, and refuses new ones until start.
func (c *converter) stop() {
	c.server.CloseClientConnections()
	c.server.Close()
}

// spec is the conversion of a CRD.
func (c *converter) spec() map[string]any {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"url": "https://" + c.address + "/convert", "caBundle": base64Of(ca)},
	}}
}

// base64Of is how JSON has bytes.
func base64Of(data []byte) (text string) {
	encoded, _ := json.Marshal(data)
	_ = json.Unmarshal(encoded, &text)
	return text
}

// convert answers a ConversionReview.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Response   map[string]any `json:"response"`
		Request    *struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request,omitempty"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, object := range review.Request.Objects {
		object["apiVersion"] = review.Request.DesiredAPIVersion
	}
	review.Response = map[string]any{"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// breakConversion has a rule on a version that only a webhook can convert to,
// which is away at the start and again in mid-work (case DSC-06).
func breakConversion(t *trial) {
	const n = 50
	l := t.shared()
	l.logs = &logLines{}
	c, webhook := l.custom(), t.converter()
	conversion := webhook.spec()
	webhook.stop() // before the API server can convert anything for its watch cache
	c.install(conversion, crdVersion("v1", true, plain), crdVersion("v2", false, plain))
	c.fill(n, "v1", "start")

	p := l.start(nil, follow, c.rule("v2"))
	bird := &canary{patient: p}
	bird.sing()
	p.wantReady(time.Minute, c.resource.Group+"/v2/widgets: Failing: list widgets."+c.resource.Group+": ", "parked: widgets")
	bird.sing()
	webhook.start()
	l.saw("away at the start: all right %.1f s after it was back", c.right(time.Minute, n, "v1", "start").Seconds())
	p.wantReady(time.Minute, "v2/widgets: synced")
	before := p.rest()

	const rounds = 2
	var away time.Duration
	for round := range rounds {
		want := fmt.Sprintf("again-%d", round)
		c.drift(n/2, want) // fixes of these are on their way
		webhook.stop()
		gone := time.Now()
		c.drift(n, want)
		for time.Since(gone) < 10*time.Second {
			bird.sing()
			l.pause(500 * time.Millisecond)
		}
		report := p.readyz()
		webhook.start()
		away += time.Since(gone)
		l.saw("away for %.1f s (%s): all right %.1f s after it was back", time.Since(gone).Seconds(), stateOf(report, "v2/widgets"), c.right(3*time.Minute, n, "v1", want).Seconds())
		p.wantReady(time.Minute, "v2/widgets: synced")
	}
	bird.end()
	took := time.Since(before.at)
	p.writes("widgets")
	p.wantLines(c.name()+`" version`, 5*(2+int(took/time.Minute))) // at most 5 a minute
	p.wantLines("Sync failed", 2*rounds*n)
	allowed := costOf(rounds, away, took, rounds*n)
	// While it is away, what fails is noticed as well when watches end.
	allowed["watch *"] += 2 * rounds * attemptsWithin(took)
	allowed["list *"] += rounds * attemptsWithin(took)
	p.judge(before, allowed)
}

// drift makes n widgets want another value, through the version in which they are stored:
// that takes no webhook.
func (c *custom) drift(n int, want string) {
	c.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			_, err := c.client.Resource(c.resource).Namespace(c.ns).Patch(c.Context(), fmt.Sprintf("w-%d", i), types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"want":%q}}`, want), metav1.PatchOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		c.Fatalf("drift: %v", err)
	}
}

// stateOf is what a readiness report says of a resource.
func stateOf(report, resource string) string {
	_, state, _ := strings.Cut(report, resource+": ")
	state, _, _ = strings.Cut(state, "\n")
	return state
}
