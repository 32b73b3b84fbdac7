package openapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientopenapi "k8s.io/client-go/openapi"
)

// retryAfter is how long a failure is remembered, and how old the list of documents may be for "there is none" to be believed:
// it keeps thousands of objects whose kind has no schema from asking the server thousands of times.
const retryAfter = time.Second

// Cluster knows the kinds that a cluster serves, built-in and custom, from /openapi/v3. It asks for the document of a group and
// version only when a kind in it is needed, and keeps of it what that kind needs.
//
// A kind once known stays as it is until Refresh finds another hash in the server's list, or Forget is called.
type Cluster struct {
	client clientopenapi.ClientWithContext
	now    func() time.Time

	mu        sync.Mutex
	documents map[string]clientopenapi.GroupVersionWithContext // by path: apis/apps/v1
	listedAt  time.Time
	kinds     map[schema.GroupVersionKind]*clusterKind
}

// clusterKind is a kind that was asked for. Its fields belong to whoever holds the turn, except that typ and url, once set,
// are read under Cluster.mu.
type clusterKind struct {
	turn     chan struct{} // a mutex that a context can give up on
	typ      *Type
	url      string // of the document that typ came from: it holds a hash
	err      error
	failedAt time.Time
}

// NewCluster makes a source from a discovery client's OpenAPIV3 (openapi.ToClientWithContext makes one of the older interface).
// It must not be a caching one. No request is made yet.
func NewCluster(client clientopenapi.ClientWithContext) *Cluster {
	return &Cluster{client: client, now: time.Now, kinds: map[schema.GroupVersionKind]*clusterKind{}}
}

// Type implements Types. It may make up to two requests, under ctx, the first time that a kind is asked for; concurrent callers
// wait for the same ones. A failure is returned to all who ask within a second, then it is tried again.
func (c *Cluster) Type(ctx context.Context, gvk schema.GroupVersionKind) (*Type, error) {
	c.mu.Lock()
	kind, ok := c.kinds[gvk]
	if !ok {
		kind = &clusterKind{turn: make(chan struct{}, 1)}
		c.kinds[gvk] = kind
	}
	typ := kind.typ
	c.mu.Unlock()
	if typ != nil {
		return typ, nil
	}

	select {
	case kind.turn <- struct{}{}:
		defer func() { <-kind.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for schema of %s: %w", gvk, context.Cause(ctx))
	}
	if kind.typ != nil { // somebody else's turn brought it
		return kind.typ, nil
	}
	if kind.err != nil && c.now().Sub(kind.failedAt) < retryAfter {
		return nil, kind.err
	}
	typ, url, err := c.load(ctx, gvk)
	if err != nil {
		if ctx.Err() == nil { // a caller that gives up says nothing about the server
			kind.err, kind.failedAt = err, c.now()
		}
		return nil, err
	}
	c.mu.Lock()
	kind.typ, kind.url, kind.err = typ, url, nil
	c.mu.Unlock()
	return typ, nil
}

func (c *Cluster) load(ctx context.Context, gvk schema.GroupVersionKind) (*Type, string, error) {
	document, err := c.document(ctx, gvk.GroupVersion())
	if err != nil {
		return nil, "", err
	}
	if document == nil {
		return nil, "", noSchema(gvk)
	}
	data, err := document.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return nil, "", fmt.Errorf("get schema of %s: %w", gvk.GroupVersion(), err)
	}
	parsed, err := parseDocument(data)
	if err != nil {
		return nil, "", fmt.Errorf("read schema of %s: %w", gvk.GroupVersion(), err)
	}
	typ, err := parsed.build(gvk)
	if errors.Is(err, ErrNoSchema) {
		c.mu.Lock()
		c.documents = nil // the list may be older than the kind
		c.mu.Unlock()
	}
	return typ, document.ServerRelativeURL(), err
}

// document finds the document of a group and version; nil if the server has none.
func (c *Cluster) document(ctx context.Context, gv schema.GroupVersion) (clientopenapi.GroupVersionWithContext, error) {
	path := documentPath(gv)
	c.mu.Lock()
	document, known := c.documents[path]
	fresh := c.documents != nil && c.now().Sub(c.listedAt) < retryAfter
	c.mu.Unlock()
	if known || fresh {
		return document, nil
	}
	documents, err := c.list(ctx)
	return documents[path], err
}

func documentPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

func (c *Cluster) list(ctx context.Context) (map[string]clientopenapi.GroupVersionWithContext, error) {
	documents, err := c.client.PathsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("list OpenAPI documents: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents, c.listedAt = documents, c.now()
	return documents, nil
}

// Refresh lists the server's documents anew, one small request, and forgets the kinds whose document has another hash or is
// gone. It returns these kinds; who compiled something with their types asks for them again. A document changes with any kind
// in it, so the new type may be the same as the old one. If the list fails, nothing is forgotten.
//
// It is meant to be called with every poll of discovery and, because the API server publishes schemas a little later than it
// establishes CRDs, not only when a CRD changes.
func (c *Cluster) Refresh(ctx context.Context) ([]schema.GroupVersionKind, error) {
	documents, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var changed []schema.GroupVersionKind
	for gvk, kind := range c.kinds {
		if kind.typ == nil {
			continue
		}
		if document, ok := documents[documentPath(gvk.GroupVersion())]; !ok || document.ServerRelativeURL() != kind.url {
			delete(c.kinds, gvk)
			changed = append(changed, gvk)
		}
	}
	return changed, nil
}

// Forget drops what is known about a kind in all versions, so that the next Type asks the server. For a kind whose CRD was seen
// to change, this is sooner than Refresh.
func (c *Cluster) Forget(gk schema.GroupKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents = nil
	for gvk := range c.kinds {
		if gvk.GroupKind() == gk {
			delete(c.kinds, gvk)
		}
	}
}
