package engine

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"

	schemas "github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules"
)

const (
	// schemaInterval is how often the server is asked whether schemas have
	// changed: one small request, and only if rules need schemas at all.
	schemaInterval = 10 * time.Second
	schemaTimeout  = 10 * time.Second
)

// schemaCache has the schemas of the kinds to which rules apply
// configurations. They are fetched in the background: workers never wait for
// one, rules do.
type schemaCache struct {
	cluster *schemas.Cluster
	kick    chan struct{}

	mu     sync.Mutex
	types  map[schema.GroupVersionResource]*schemas.Type
	failed map[schema.GroupVersionResource]string
}

func newSchemaCache(client openapi.ClientWithContext) *schemaCache {
	return &schemaCache{
		cluster: schemas.NewCluster(client),
		kick:    make(chan struct{}, 1),
		types:   map[schema.GroupVersionResource]*schemas.Type{},
		failed:  map[schema.GroupVersionResource]string{},
	}
}

// get returns a schema for an evaluation: nil if it is not known.
func (c *schemaCache) get(resource schema.GroupVersionResource) rules.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.types[resource]; t != nil {
		return t
	}
	return nil
}

// asked reports whether it is known if the schema can be had.
func (c *schemaCache) asked(resource schema.GroupVersionResource) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types[resource] != nil || c.failed[resource] != ""
}

// missing says why the schema of a resource is not known; empty: it is.
func (c *schemaCache) missing(resource schema.GroupVersionResource) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.types[resource] != nil:
		return ""
	case c.failed[resource] != "":
		return "it needs the schema of the kind: " + c.failed[resource]
	}
	return "it needs the schema of the kind, which has not been read yet"
}

// soon asks for a look at what is missing.
func (c *schemaCache) soon() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// set notes a schema, or why there is none; it reports whether the schema is
// another one than before.
func (c *schemaCache) set(resource schema.GroupVersionResource, t *schemas.Type, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		// Errors name the kind and what failed, nothing of an object.
		c.failed[resource] = err.Error()
		return false
	}
	delete(c.failed, resource)
	changed := c.types[resource] != t
	c.types[resource] = t
	return changed
}

// readSchemas keeps the schemas that rules need, until ctx ends. Objects whose
// rules waited for one are enqueued.
func (e *Engine) readSchemas(ctx context.Context) {
	tick := time.NewTicker(schemaInterval)
	defer tick.Stop()
	for {
		needed := e.needSchemas() // other rules may need others
		for _, resource := range needed {
			info, ok := e.informers.Info(resource)
			if !ok {
				continue
			}
			if e.readSchema(ctx, resource, info.Kind) {
				e.enqueueAll(resource)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-e.schemas.kick:
		case <-tick.C:
			if len(needed) == 0 {
				continue
			}
			if _, err := e.schemas.cluster.Refresh(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).V(1).Info("Could not ask for changed schemas; keeping those that are known", "err", err)
			}
		}
	}
}

func (e *Engine) readSchema(ctx context.Context, resource schema.GroupVersionResource, kind string) (changed bool) {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			e.schemas.set(resource, nil, e.panicked(klog.FromContext(ctx), resource.GroupResource(), p))
		}
	}()
	t, err := e.schemas.cluster.Type(ctx, resource.GroupVersion().WithKind(kind))
	return e.schemas.set(resource, t, err)
}

// needSchemas lists the resources whose schemas rules need.
func (e *Engine) needSchemas() []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	set := e.rules()
	for _, resource := range set.Resources() {
		for _, r := range set.For(resource) {
			if r.NeedsSchema {
				out = append(out, resource)
				break
			}
		}
	}
	return out
}
