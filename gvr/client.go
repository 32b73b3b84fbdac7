package gvr

import (
	"fmt"
	"net/http"

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
	return &clients{config: config, http: httpClient}, nil
}

// projecting is the default Options.NewClient: it decodes what is kept.
func (c *clients) projecting(gvr schema.GroupVersionResource, projector *projection.Projector) (dynamic.Interface, error) {
	return c.forResource(gvr, projector.Serializer())
}

// forResource makes a dynamic client over a REST client that belongs to one resource, and decodes lists and watch events
// with a serializer. Nil means that of dynamic.ConfigFor: whole objects.
func (c *clients) forResource(gvr schema.GroupVersionResource, serializer runtime.NegotiatedSerializer) (dynamic.Interface, error) {
	config := dynamic.ConfigFor(c.config)
	if serializer != nil {
		config.NegotiatedSerializer = serializer
	}
	config.GroupVersion = new(gvr.GroupVersion())
	config.APIPath = "/apis"
	if gvr.Group == "" {
		config.APIPath = "/api"
	}
	restClient, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("create REST client for %s: %w", gvr.GroupResource(), err)
	}
	return dynamic.New(restClient), nil
}

func (c *clients) discovery() (*discovery.DiscoveryClient, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	return client, nil
}
