package engine

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// writeClients are the clients that write. They share one HTTP client. It is safe for
// concurrent use.
type writeClients struct {
	config *rest.Config
	http   *http.Client
	whole  dynamic.Interface // reads whole answers

	mu sync.Mutex
	of map[schema.GroupVersionResource]answerReader // the latest
}

// answerReader is a client that reads of answers what a policy needs of a resource.
type answerReader struct {
	needed *fieldset.Set
	client dynamic.Interface
}

// newWriteClients makes the clients. config is that of the requests.
func newWriteClients(config *rest.Config) (*writeClients, error) {
	w := &writeClients{config: dynamic.ConfigFor(config), of: map[schema.GroupVersionResource]answerReader{}}
	var err error
	if w.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("create HTTP client: %w", err)
	}
	if w.whole, err = dynamic.NewForConfigAndClient(config, w.http); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return w, nil
}

// managedTimes are what newestTime reads.
var managedTimes = fieldset.Of("metadata", "managedFields", fieldset.Elem, "time")

// reading returns a client that reads of answers the fields that are needed of a
// resource's objects, and when it was last written.
func (w *writeClients) reading(resource schema.GroupVersionResource, needed projection.Fields) (dynamic.Interface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.of[resource]; ok && last.needed == needed.Set {
		return last.client, nil
	}
	fields := needed.Union(projection.Fields{Set: managedTimes, ManagedFields: true})
	config := rest.CopyConfig(w.config)
	config.NegotiatedSerializer = projection.New(fields).AnswerSerializer()
	config.GroupVersion = new(resource.GroupVersion())
	config.APIPath = "/apis"
	if resource.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(config, w.http)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", resource.GroupResource(), err)
	}
	reader := answerReader{needed.Set, dynamic.New(client)}
	w.of[resource] = reader
	return reader.client, nil
}

// writer is the client for the resource of a decision.
func (d *decision) writer() dynamic.Interface {
	if d.preview || d.opts.FullObjects || d.survey == nil {
		return d.writing.whole
	}
	client, err := d.writing.reading(d.resource, d.need(d.policy, d.resource, d.survey.infos[d.resource]))
	if err != nil {
		return d.writing.whole // it reads more than is needed
	}
	return client
}
