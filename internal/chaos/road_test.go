package chaos

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/rectifier-dev/rectifier/engine"
)

// road is a way to the API server through proxies (toxiproxy) that can do harm to
// it. TLS goes through as it is.
type road struct {
	*lab
	front   *toxiproxy.Proxy
	behind  *toxiproxy.Proxy       // another one, between that and the API server
	address atomic.Pointer[string] // of the front: new connections go there
}

var proxies = func() *toxiproxy.ApiServer {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
}()

func (l *lab) road() *road {
	l.Helper()
	host, err := url.Parse(l.cp.AdminConfig().Host)
	if err != nil {
		l.Fatal(err)
	}
	r := &road{lab: l}
	r.behind = r.proxyTo(host.Host)
	r.detour()
	return r
}

// proxyTo starts a proxy in front of an address.
func (r *road) proxyTo(address string) *toxiproxy.Proxy {
	r.Helper()
	proxy := toxiproxy.NewProxy(proxies, fmt.Sprintf("proxy-%d", labs.Add(1)), "127.0.0.1:0", address)
	r.start(proxy)
	r.Cleanup(proxy.Stop)
	return proxy
}

func (r *road) start(proxy *toxiproxy.Proxy) {
	r.Helper()
	if err := proxy.Start(); err != nil {
		r.Fatal(err)
	}
}

// detour has new connections go through a fresh proxy. Those that are there stay
// where they are.
func (r *road) detour() {
	r.Helper()
	r.front = r.proxyTo(r.behind.Listen)
	address := r.front.Listen // Start writes the field, even if it stays the same
	r.address.Store(&address)
}

// cut ends the connections, and refuses new ones until open.
func (r *road) cut() { r.front.Stop() }

func (r *road) open() { r.start(r.front) }

// toxic adds a fault to a direction, for the connections that are there and for
// new ones: downstream is from the API server. attributes are those of toxiproxy.
func (r *road) toxic(kind, direction, attributes string) {
	r.Helper()
	_, err := r.front.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(
		`{"name": "%s-%s", "type": %q, "stream": %q, "attributes": %s}`, kind, direction, kind, direction, attributes)))
	if err != nil {
		r.Fatal(err)
	}
}

// blackHole swallows what goes in these directions; nobody is told.
func (r *road) blackHole(directions ...string) {
	r.Helper()
	for _, direction := range directions {
		r.toxic("timeout", direction, `{"timeout": 0}`)
	}
}

// heal takes all toxics away. A connection that was harmed may stay so until it ends.
func (r *road) heal() { r.front.Toxics.ResetToxics(context.Background()) }

// over has an engine take a road.
func over(r *road) func(*engine.Options) {
	return func(o *engine.Options) {
		o.Config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, *r.address.Load())
		}
	}
}
