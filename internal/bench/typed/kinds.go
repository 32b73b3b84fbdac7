package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/internal/bench/rollouts"
)

// kind is a resource that a controller like the one for Deployments is written for.
type kind struct {
	resource schema.GroupVersionResource
	apiPath  string
	example  runtime.Object
	register func(*runtime.Scheme) error
	// matters reports whether an update may need a fix.
	matters func(before, after any) bool
	// fixed returns a copy that is right; nil: the object is.
	fixed func(any) runtime.Object
}

// kinds are those beside deployments, by resource.
var kinds = map[string]kind{
	"rollouts": {
		resource: rollouts.Resource, apiPath: "/apis", example: &rollouts.Rollout{}, register: rollouts.AddToScheme,
		matters: func(before, after any) bool {
			b, a := before.(*rollouts.Rollout), after.(*rollouts.Rollout)
			return b.Generation != a.Generation || b.Annotations[annotation] != a.Annotations[annotation]
		},
		fixed: func(obj any) runtime.Object {
			r := obj.(*rollouts.Rollout)
			expected, err := strconv.ParseUint(r.Annotations[annotation], 10, 31)
			if err != nil || expected > maxReplicas || r.Spec.Replicas != nil && *r.Spec.Replicas == int32(expected) {
				return nil
			}
			r = r.DeepCopyObject().(*rollouts.Rollout)
			r.Spec.Replicas = new(int32(expected))
			return r
		},
	},
	"pods": {
		resource: corev1.SchemeGroupVersion.WithResource("pods"), apiPath: "/api", example: &corev1.Pod{}, register: corev1.AddToScheme,
		matters: func(before, after any) bool {
			b, a := before.(*corev1.Pod), after.(*corev1.Pod)
			return b.Labels[team] != a.Labels[team] || b.Annotations[expectedTeam] != a.Annotations[expectedTeam]
		},
		fixed: func(obj any) runtime.Object {
			p := obj.(*corev1.Pod)
			expected, declared := p.Annotations[expectedTeam]
			if !declared || p.Labels[team] == expected {
				return nil
			}
			p = p.DeepCopy()
			metav1.SetMetaDataLabel(&p.ObjectMeta, team, expected)
			return p
		},
	},
}

const (
	team         = "team" // a label
	expectedTeam = "example.io/expected-team"
)

// kindController is the controller of one kind.
type kindController struct {
	kind
	client   rest.Interface
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newKindController(config *rest.Config, k kind, strip bool) (*kindController, error) {
	scheme := runtime.NewScheme()
	if err := k.register(scheme); err != nil {
		return nil, err
	}
	version := k.resource.GroupVersion()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, k.apiPath, serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	all := cache.NewListWatchFromClient(client, k.resource.Resource, metav1.NamespaceAll, fields.Everything())
	c := &kindController{
		kind: k, client: client,
		informer: cache.NewSharedIndexInformer(all, k.example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	if strip {
		if err := c.informer.SetTransform(stripManagedFields); err != nil {
			return nil, err
		}
	}
	_, err = c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue,
		UpdateFunc: func(before, after any) {
			if c.matters(before, after) {
				c.enqueue(after)
			}
		},
	})
	return c, err
}

func (c *kindController) enqueue(obj any) { c.queue.Add(cache.MetaObjectToName(obj.(metav1.Object))) }

// run returns when ctx has ended and the workers have, too. synced is called when
// the cache has synced.
func (c *kindController) run(ctx context.Context, workers int, synced func()) error {
	go c.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) {
		return ctx.Err()
	}
	synced()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for c.processNextWorkItem(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	group.Wait()
	return nil
}

func (c *kindController) processNextWorkItem(ctx context.Context) bool {
	key, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		if !apierrors.IsConflict(err) {
			klog.FromContext(ctx).Error(err, "Sync failed", "object", key)
		}
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *kindController) sync(ctx context.Context, key cache.ObjectName) error {
	obj, exists, err := c.informer.GetIndexer().GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	right := c.fixed(obj)
	if right == nil {
		return nil
	}
	return c.client.Put().Namespace(key.Namespace).Resource(c.resource.Resource).Name(key.Name).Param("fieldManager", fieldManager).Body(right).Do(ctx).Error()
}
