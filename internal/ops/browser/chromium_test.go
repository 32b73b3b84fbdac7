package browser

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// tab is one page of a browser of its own.
type tab struct {
	*testing.T
	ctx     context.Context
	helpers string

	mu       sync.Mutex
	requests []string
	errors   []string // on the console
}

// open starts a browser and loads a page. When the test ends, it fails if
// something was asked for elsewhere, or if the console has an error.
func open(t *testing.T, url string, width, height int64) *tab {
	t.Helper()
	helpers, err := os.ReadFile("testdata/look.js")
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{T: t, helpers: string(helpers)}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	limited, cancel := context.WithTimeout(allocated, 3*time.Minute)
	t.Cleanup(cancel)
	ctx, _ := chromedp.NewContext(limited, chromedp.WithListener(b.heard))
	b.ctx = ctx
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the browser: %v", err)
		}
		b.judge(url)
	})
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	b.resize(width, height)
	b.do(chromedp.Navigate(url))
	return b
}

func (b *tab) judge(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if !strings.HasPrefix(r, url) {
			b.Errorf("the page asked for %s", r)
		}
	}
	for _, e := range b.errors {
		b.Errorf("on the console: %s", e)
	}
}

func (b *tab) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.errors = append(b.errors, string(e.Type))
		}
	case *log.EventEntryAdded:
		b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// call sends a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	out, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// eval gives what a JavaScript expression is, which may use testdata/look.js.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T]("(() => {"+b.helpers+"\nreturn ("+expression+")})()"))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return out
}

// becomes waits until a JavaScript expression is true.
func (b *tab) becomes(expression string) {
	b.Helper()
	testcluster.Eventually(b, 30*time.Second, func() error {
		if !eval[bool](b, expression) {
			return &notYet{expression}
		}
		return nil
	})
}

type notYet struct{ what string }

func (e *notYet) Error() string { return "not so: " + e.what }

// scheme sets which colours the reader prefers: light or dark.
func (b *tab) scheme(name string) {
	b.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
}

func (b *tab) resize(width, height int64) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}
