// Command typed is the controller that somebody writes by hand instead of a rule:
// it keeps Deployments at the replica count that their annotation declares, and
// leaves those alone that an autoscaler scales. It is written as one writes them,
// and not to lose: informers with WatchList, managedFields stripped, nothing
// enqueued that does not matter, the cache read by index, one request for a fix.
// It writes no Events. With --kind it is one for another kind: kinds.go.
package main

import (
	"context"
	"flag"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/rectifier-dev/rectifier/internal/bench/contender"
)

func main() {
	protobuf := flag.Bool("protobuf", false, "speak protobuf instead of JSON")
	workers := flag.Int("workers", 8, "objects that are worked on at once")
	name := flag.String("kind", "deployments", "deployments, rollouts or pods")
	strip := flag.Bool("strip-managed-fields", true, "do not keep managedFields in the caches")
	contender.Main(func(ctx context.Context, c *contender.Contender) error {
		c.Config.ContentType = runtime.ContentTypeJSON
		if *protobuf {
			c.Config.ContentType = runtime.ContentTypeProtobuf
			c.Config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		}
		if *name != "deployments" {
			return runKind(ctx, c, *name, *strip, *workers)
		}
		client, err := kubernetes.NewForConfig(c.Config)
		if err != nil {
			return fmt.Errorf("make a client: %w", err)
		}
		controller, err := newController(client, *strip)
		if err != nil {
			return err
		}
		return controller.run(ctx, *workers, c.Ready)
	})
}

func runKind(ctx context.Context, c *contender.Contender, name string, strip bool, workers int) error {
	k, known := kinds[name]
	if !known {
		return fmt.Errorf("there is no controller for %q", name)
	}
	controller, err := newKindController(c.Config, k, strip)
	if err != nil {
		return err
	}
	return controller.run(ctx, workers, c.Ready)
}
