// Command patchloop sets the replicas of all Deployments by bare merge patches of
// /scale, and ends: as fast as the API server takes them from so many writers. It
// decides nothing and reads no answer. With --watch somebody watches, too, as every
// controller has to, and throws away what comes: the API server has that to send.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/bench/contender"
)

func main() {
	writers := flag.Int("writers", 8, "patches under way at once")
	replicas := flag.Int("replicas", 4, "what to set")
	watched := flag.Bool("watch", false, "watch all Deployments meanwhile")
	contender.Main(func(ctx context.Context, c *contender.Contender) error {
		names, version, err := list(ctx, c.Config)
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(c.Config)
		if err != nil {
			return fmt.Errorf("make a client: %w", err)
		}
		if *watched {
			changes, err := client.AppsV1().RESTClient().Get().Resource("deployments").Param("watch", "true").Param("resourceVersion", version).Stream(ctx)
			if err != nil {
				return fmt.Errorf("watch Deployments: %w", err)
			}
			defer changes.Close()
			go func() { _, _ = io.Copy(io.Discard, changes) }() // it ends with the watch
		}
		c.Ready()
		return patch(ctx, client.AppsV1().RESTClient(), names, *writers, *replicas)
	})
}

// list returns who the Deployments are, in the order of the server, and as of which
// resourceVersion.
func list(ctx context.Context, config *rest.Config) (names []types.NamespacedName, version string, err error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, "", fmt.Errorf("make a client: %w", err)
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	all, err := client.Resource(deployments).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, "", fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range all.Items {
		names = append(names, types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
	}
	return names, all.ResourceVersion, nil
}

func patch(ctx context.Context, client rest.Interface, names []types.NamespacedName, writers, replicas int) error {
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, n := range names {
		group.Go(func() error {
			_, err := client.Patch(types.MergePatchType).Namespace(n.Namespace).Resource("deployments").Name(n.Name).SubResource("scale").Body(body).DoRaw(ctx)
			if err != nil {
				return fmt.Errorf("patch %s: %w", n, err)
			}
			return nil
		})
	}
	return group.Wait()
}
