package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	annotation   = "example.io/expected-replicas"
	maxReplicas  = 1000
	fieldManager = "typed"
	byTarget     = "target" // index of autoscalers: namespace/name of the Deployment
)

type controller struct {
	client      kubernetes.Interface
	factory     informers.SharedInformerFactory
	deployments appslisters.DeploymentLister
	autoscalers cache.Indexer
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newController(client kubernetes.Interface, strip bool) (*controller, error) {
	var options []informers.SharedInformerOption
	if strip {
		options = append(options, informers.WithTransform(stripManagedFields))
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	autoscalers := factory.Autoscaling().V2().HorizontalPodAutoscalers().Informer()
	if err := autoscalers.AddIndexers(cache.Indexers{byTarget: targetOf}); err != nil {
		return nil, fmt.Errorf("index the autoscalers: %w", err)
	}
	c := &controller{
		client:      client,
		factory:     factory,
		deployments: factory.Apps().V1().Deployments().Lister(),
		autoscalers: autoscalers.GetIndexer(),
		queue:       workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	_, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue,
		UpdateFunc: func(before, after any) {
			if matters(before.(*appsv1.Deployment), after.(*appsv1.Deployment)) {
				c.enqueue(after)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch Deployments: %w", err)
	}
	_, err = autoscalers.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: c.enqueueTarget})
	if err != nil {
		return nil, fmt.Errorf("watch autoscalers: %w", err)
	}
	return c, nil
}

func stripManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// targetOf is an index function.
func targetOf(obj any) ([]string, error) {
	target := obj.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef
	if target.Kind != "Deployment" {
		return nil, nil
	}
	return []string{obj.(metav1.Object).GetNamespace() + "/" + target.Name}, nil
}

// matters reports whether an update may need a fix: neither a status nor a
// heartbeat does.
func matters(before, after *appsv1.Deployment) bool {
	return before.Generation != after.Generation || before.Annotations[annotation] != after.Annotations[annotation]
}

func (c *controller) enqueue(obj any) {
	c.queue.Add(cache.MetaObjectToName(obj.(metav1.Object)))
}

// enqueueTarget is for an autoscaler that has gone: its Deployment is ours again.
func (c *controller) enqueueTarget(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if autoscaler, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok && autoscaler.Spec.ScaleTargetRef.Kind == "Deployment" {
		c.queue.Add(cache.NewObjectName(autoscaler.Namespace, autoscaler.Spec.ScaleTargetRef.Name))
	}
}

// run returns when ctx has ended and the workers have, too. synced is called when
// the caches have synced.
func (c *controller) run(ctx context.Context, workers int, synced func()) error {
	c.factory.StartWithContext(ctx)
	if err := c.factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
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

func (c *controller) processNextWorkItem(ctx context.Context) bool {
	key, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		if !apierrors.IsConflict(err) {
			klog.FromContext(ctx).Error(err, "Sync failed", "deployment", key)
		}
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *controller) sync(ctx context.Context, key cache.ObjectName) error {
	deployment, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	text, declared := deployment.Annotations[annotation]
	if !declared {
		return nil
	}
	expected, err := strconv.ParseUint(text, 10, 31)
	if err != nil || expected > maxReplicas {
		klog.FromContext(ctx).Info("Annotation is not a replica count", "deployment", key)
		return nil // until it is changed
	}
	if actual := deployment.Spec.Replicas; actual != nil && *actual == int32(expected) {
		return nil
	}
	if scaled, err := c.autoscalers.IndexKeys(byTarget, key.String()); err != nil || len(scaled) > 0 {
		return err
	}
	deployment = deployment.DeepCopy()
	deployment.Spec.Replicas = new(int32(expected))
	_, err = c.client.AppsV1().Deployments(key.Namespace).Update(ctx, deployment, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}
