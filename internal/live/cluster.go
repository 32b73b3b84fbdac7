package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientopenapi "k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
)

// ErrNotFound says that there is no such object.
var ErrNotFound = errors.New("not found")

// Cluster is a cluster, as discovery described it when it was connected to.
type Cluster struct {
	client    dynamic.Interface
	types     *openapi.Cluster
	builtin   *gvr.Catalog
	resources []resource                   // as order puts them
	failed    map[schema.GroupVersion]bool // what could not be discovered

	mu    sync.Mutex
	scale map[schema.GroupVersionResource][]string // replicas paths of custom resources
	ns    map[string]namespaceAnswer
	lists map[string]listAnswer
}

// resource is a resource as discovery describes it.
type resource struct {
	info   gvr.Info
	names  []string // besides the plural: singular, short names, kind; lower case
	listed bool     // it can be got and listed
}

// Connect reads what the cluster serves. It fails if that cannot be done at all;
// groups that cannot be discovered are only not known.
func Connect(ctx context.Context, config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // a few reads, one after the other
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{}
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	builtin, err := gvr.NewCatalog()
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		client: client, builtin: builtin,
		types:  openapi.NewCluster(clientopenapi.ToClientWithContext(disco.OpenAPIV3())),
		failed: map[schema.GroupVersion]bool{},
		scale:  map[schema.GroupVersionResource][]string{}, ns: map[string]namespaceAnswer{}, lists: map[string]listAnswer{},
	}
	return c, c.discover(ctx, disco)
}

func (c *Cluster) discover(ctx context.Context, client discovery.AggregatedDiscoveryInterfaceWithContext) error {
	// The package function, not the client's method: that one does everything twice if a group has failed.
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(silent(ctx), client)
	if failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err); partial {
		for gv := range failed {
			c.failed[gv] = true
		}
	} else if err != nil {
		return fmt.Errorf("read what the cluster serves: %w", &readError{err})
	}
	for _, list := range lists {
		if gv, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
			c.add(gv, list.APIResources)
		}
	}
	c.order(groups)
	return nil
}

// order puts resources into the order in which kubectl looks for a name: the
// core group, then the others as the server lists them; within a group the
// preferred version first. The lists of discovery are in no order.
func (c *Cluster) order(groups []*metav1.APIGroup) {
	rank := map[schema.GroupVersion]int{}
	for i, g := range groups {
		group := (i + 1) * 1000
		if g.Name == "" {
			group = 0
		}
		for j, v := range g.Versions {
			at := group + j + 1
			if v.Version == g.PreferredVersion.Version {
				at = group
			}
			rank[schema.GroupVersion{Group: g.Name, Version: v.Version}] = at
		}
	}
	slices.SortStableFunc(c.resources, func(a, b resource) int {
		return rank[a.info.Resource.GroupVersion()] - rank[b.info.Resource.GroupVersion()]
	})
}

// add adds the resources of one group and version.
func (c *Cluster) add(gv schema.GroupVersion, list []metav1.APIResource) {
	first := len(c.resources)
	for _, r := range list {
		if strings.Contains(r.Name, "/") {
			continue
		}
		info := gvr.Info{Resource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced}
		for _, known := range c.builtin.Info(gv.WithKind(r.Kind)) {
			if c.builtin.Known(schema.GroupKind{Group: gv.Group, Kind: r.Kind}) && known.Resource == info.Resource {
				info.ReplicasPath = known.ReplicasPath
			}
		}
		names := []string{strings.ToLower(r.Kind)}
		if r.SingularName != "" {
			names = append(names, strings.ToLower(r.SingularName))
		}
		c.resources = append(c.resources, resource{info, append(names, r.ShortNames...), slices.Contains(r.Verbs, "get") && slices.Contains(r.Verbs, "list")})
	}
	for _, r := range list {
		name, subresource, _ := strings.Cut(r.Name, "/")
		for i := range c.resources[first:] {
			if at := &c.resources[first+i]; at.info.Resource.Resource == name {
				at.info.HasStatus = at.info.HasStatus || subresource == "status"
				at.info.HasScale = at.info.HasScale || subresource == "scale"
			}
		}
	}
}

// Info describes a resource. It is false if the cluster does not serve it, or
// if that is not known; reason then says which.
func (c *Cluster) Info(ctx context.Context, resource schema.GroupVersionResource) (info gvr.Info, reason string, ok bool) {
	for _, r := range c.resources {
		if r.info.Resource == resource {
			info := r.info
			if info.HasScale && info.ReplicasPath == nil {
				info.ReplicasPath = c.replicasPath(ctx, info)
			}
			return info, "", true
		}
	}
	if c.failed[resource.GroupVersion()] {
		return gvr.Info{}, fmt.Sprintf("discovery of %s failed", resource.GroupVersion()), false
	}
	if versions := c.Versions(resource.GroupResource()); len(versions) > 0 {
		return gvr.Info{}, fmt.Sprintf("version not served (available: %s)", strings.Join(versions, ", ")), false
	}
	return gvr.Info{}, "not served by the cluster", false
}

// crds is where the cluster keeps CRDs.
var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// replicasPath reads from a resource's CRD where its replicas are; nil where it
// has none, or where it may not be read.
func (c *Cluster) replicasPath(ctx context.Context, info gvr.Info) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if path, asked := c.scale[info.Resource]; asked {
		return path
	}
	var path []string
	if crd, err := c.client.Resource(crds).Get(silent(ctx), info.Resource.GroupResource().String(), metav1.GetOptions{}); err == nil {
		if catalog, err := gvr.NewCatalog(crd.Object); err == nil {
			for _, defined := range catalog.Info(info.Resource.GroupVersion().WithKind(info.Kind)) {
				path = defined.ReplicasPath
			}
		}
	}
	c.scale[info.Resource] = path
	return path
}

// silent switches client-go's logging off: it logs errors with the server's
// message.
func silent(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// readError tells what went wrong with a read without the server's message.
type readError struct{ err error }

func (e *readError) Unwrap() error { return e.err }

func (e *readError) Error() string {
	var status apierrors.APIStatus
	var urlErr *url.Error
	switch {
	case errors.As(e.err, &status):
		s := status.Status()
		reason := string(s.Reason)
		if reason == "" {
			reason = http.StatusText(int(s.Code))
		}
		return fmt.Sprintf("%s (HTTP %d)", reason, s.Code)
	case errors.Is(e.err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(e.err, context.Canceled):
		return "interrupted"
	case errors.As(e.err, &urlErr):
		return urlErr.Err.Error()
	}
	return "the answer could not be read"
}
