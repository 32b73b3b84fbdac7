package chaos

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var lifecycleFaults = []scenario{
	{
		name: "crd-replaced", fault: "a CRD deleted with all objects while 100 fixes are on their way, and created again",
		run: func(t *trial) { replaceCRD(t, 100, 1) },
	},
	{
		name: "crd-replaced-5-times", fault: "the same with 300 objects, 5 times: at once, later, with another schema, with another version", long: true,
		run: func(t *trial) { replaceCRD(t, 300, 5) },
	},
	{
		name: "conversion-webhook-down", fault: "a conversion webhook that is down at the start, and again while 50 objects drift", long: true,
		run: breakConversion,
	},
	{
		name: "namespace-terminating", fault: "a namespace deleted while 100 objects drift; finalizers hold it; created again", long: true,
		run: terminateNamespace,
	},
	{
		name: "rights-taken-away", fault: "each right taken away and given back while 100 objects drift, and all at once", long: true,
		run: takeRights,
	},
	{
		name: "aggregated-api-dead", fault: "an aggregated API that does not answer, from before the start on and while rules run",
		run: deadAggregatedAPI,
	},
}

// logLines is a log that can be searched while it is written.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) logger() klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(l)))
}

// matching returns the lines that have a text in them.
func (l *logLines) matching(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

// wantLines fails the trial if more lines have a text in them than are justified.
func (l *lab) wantLines(text string, atMost int) {
	l.Helper()
	got := l.logs.matching(text)
	l.saw("%d log lines with %q", len(got), text)
	if len(got) > atMost {
		l.Errorf("%d log lines with %q, at most %d are justified:\n%s", len(got), text, atMost, strings.Join(got, ""))
	}
}

// canary proves that ConfigMaps are put right whatever happens to other
// resources: cm-0, by the rule follow. It notes how long the slowest one took.
type canary struct {
	*patient
	count   int
	slowest time.Duration
}

func (c *canary) sing() {
	c.Helper()
	c.count++
	want := fmt.Sprintf("canary-%d", c.count)
	c.drift(1, want)
	c.slowest = max(c.slowest, c.allRight(20*time.Second, 1, want))
}

func (c *canary) end() {
	c.saw("%d fixes of another resource meanwhile, the slowest in %.2f s", c.count, c.slowest.Seconds())
}

// wantReady waits until the patient is ready and its readiness has all these
// texts in it.
func (p *patient) wantReady(timeout time.Duration, texts ...string) {
	p.Helper()
	testcluster.Eventually(p, timeout, func() error { return p.ready(texts...) })
}

// ready says what is missing for the patient to be ready, with all these texts
// in its readiness.
func (p *patient) ready(texts ...string) error {
	report := p.readyz()
	for _, text := range append(texts, "\nready\n") {
		if !strings.Contains(report, text) {
			return fmt.Errorf("readiness has no %q:\n%s", text, report)
		}
	}
	return nil
}
