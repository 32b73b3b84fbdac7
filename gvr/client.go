package gvr

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// Reads have a rate limit of their own, so that a burst of lists never delays a write. It is there to bound a
// mistake, not to shape traffic: every informer has its own back-off, and the server has priority and fairness.
const (
	readQPS   = 100
	readBurst = 300
)

// clients makes the clients of this package. They share one HTTP client, hence one connection where HTTP/2 is
// spoken, and one rate limiter.
type clients struct {
	config *rest.Config
	http   *http.Client
	// onlyJSON says of which resources protobuf could not be read: *atomic.Bool by GroupVersionResource. It is kept for
	// as long as the process runs, or each informer would have to find out.
	onlyJSON sync.Map
	// refused is called once for each of them. It may be nil.
	refused func(schema.GroupVersionResource, error)
	version *serverVersion
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // it would cut every watch
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(readQPS, readBurst)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		// A deprecated version would otherwise log a line at each list and each watch, for ever.
		config.WarningHandler = rest.NoWarnings{}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return oneAttempt{next} })
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create HTTP client: %w", err)
	}
	c := &clients{config: config, http: httpClient}
	discovery, err := c.discovery()
	if err != nil {
		return nil, err
	}
	c.version = &serverVersion{client: discovery.RESTClient()}
	return c, nil
}

// projecting is the default Options.NewClient: it decodes what is kept. Of built-in resources it reads protobuf, if the
// server's version is one of those that serverVersion knows, and until an object turns up that needs JSON.
func (c *clients) projecting(gvr schema.GroupVersionResource, projector *projection.Projector) (dynamic.Interface, error) {
	kind, ok := projection.BuiltinKind(gvr)
	if !ok {
		return c.forResource(gvr, projector.Serializer())
	}
	value, _ := c.onlyJSON.LoadOrStore(gvr, new(atomic.Bool))
	onlyJSON := value.(*atomic.Bool)
	refuse := func(err error) {
		if !onlyJSON.Swap(true) && c.refused != nil {
			c.refused(gvr, err)
		}
	}
	serializer, err := projector.BuiltinSerializer(kind, refuse)
	if err != nil { // what is kept is not in protobuf
		return c.forResource(gvr, projector.Serializer())
	}
	config := dynamic.ConfigFor(c.config)
	config.AcceptContentTypes = projection.AcceptProtobuf
	client := *c.http
	client.Transport = jsonInstead{client.Transport, c.version, onlyJSON, refuse}
	return newClient(config, gvr, serializer, &client)
}

// forResource makes a dynamic client over a REST client that belongs to one resource, and decodes lists and watch events
// with a serializer, from JSON. Nil means that of dynamic.ConfigFor: whole objects.
func (c *clients) forResource(gvr schema.GroupVersionResource, serializer runtime.NegotiatedSerializer) (dynamic.Interface, error) {
	return newClient(dynamic.ConfigFor(c.config), gvr, serializer, c.http)
}

func newClient(config *rest.Config, gvr schema.GroupVersionResource, serializer runtime.NegotiatedSerializer, client *http.Client) (dynamic.Interface, error) {
	if serializer != nil {
		config.NegotiatedSerializer = serializer
	}
	config.GroupVersion = new(gvr.GroupVersion())
	config.APIPath = "/apis"
	if gvr.Group == "" {
		config.APIPath = "/api"
	}
	restClient, err := rest.RESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("create REST client for %s: %w", gvr.GroupResource(), err)
	}
	return dynamic.New(restClient), nil
}

// jsonInstead asks for JSON where a client asks for protobuf, if the server's version is not known to give the same, or
// once protobuf has been refused: by the decoder, or by the server.
type jsonInstead struct {
	next     http.RoundTripper
	version  *serverVersion
	onlyJSON *atomic.Bool
	refuse   func(error)
}

func (j jsonInstead) RoundTrip(r *http.Request) (*http.Response, error) {
	if !j.onlyJSON.Load() && j.version.readsProtobuf(r.Context()) {
		resp, err := j.next.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusNotAcceptable && resp.StatusCode != http.StatusUnsupportedMediaType {
			return resp, err
		}
		j.refuse(fmt.Errorf("the server answers %s", resp.Status))
		if r.Body != nil { // it has been read; a list or a watch has none
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
		_ = resp.Body.Close()
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", runtime.ContentTypeJSON)
	return j.next.RoundTrip(r)
}

func (c *clients) discovery() (*discovery.DiscoveryClient, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	return client, nil
}
