package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

var deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// observer sees each change of a spec of a Deployment, as anybody sees it: by a
// watch, of metadata only, whose generation says that the spec has changed. It is
// the same for all contenders, and tells what they do without asking them.
type observer struct {
	watch       watch.Interface
	generations map[string]int64
}

// observe begins to watch. The caller calls stop.
func observe(ctx context.Context, config *rest.Config) (*observer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	all, err := client.Resource(deploymentsResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	o := &observer{generations: map[string]int64{}}
	for _, d := range all.Items {
		o.generations[d.Namespace+"/"+d.Name] = d.Generation
	}
	o.watch, err = client.Resource(deploymentsResource).Watch(ctx, metav1.ListOptions{
		ResourceVersion: all.ResourceVersion, TimeoutSeconds: new(int64(24 * 3600)),
	})
	if err != nil {
		return nil, fmt.Errorf("watch Deployments: %w", err)
	}
	return o, nil
}

func (o *observer) stop() { o.watch.Stop() }

// changeTimeout is how long the next change may take.
const changeTimeout = 60 * time.Second

// change is a spec that has changed.
type change struct {
	name string // namespace/name
	at   time.Time
}

// next waits for the next change.
func (o *observer) next(ctx context.Context) (change, error) {
	late := time.NewTimer(changeTimeout)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return change{}, ctx.Err()
		case <-late.C:
			return change{}, fmt.Errorf("no Deployment has changed for %s", changeTimeout)
		case event, ok := <-o.watch.ResultChan():
			if !ok {
				return change{}, errors.New("the watch of the observer has ended")
			}
			d, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				return change{}, fmt.Errorf("the observer got a %T (%s)", event.Object, event.Type)
			}
			name := d.Namespace + "/" + d.Name
			if before := o.generations[name]; d.Generation != before {
				o.generations[name] = d.Generation
				return change{name, time.Now()}, nil
			}
		}
	}
}

// take waits for so many changes.
func (o *observer) take(ctx context.Context, count int) ([]change, error) {
	changes := make([]change, 0, count)
	for len(changes) < count {
		c, err := o.next(ctx)
		if err != nil {
			return changes, fmt.Errorf("%d of %d changes: %w", len(changes), count, err)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// rate is how many changes a second there were, from the first to the last.
func rate(changes []change) float64 {
	first, last := changes[0], changes[len(changes)-1]
	return float64(len(changes)-1) / last.at.Sub(first.at).Seconds()
}
