// Command dynamic keeps all objects of a resource in a dynamic informer, as
// client-go has it, and does nothing with them: what a generic controller usually
// begins with.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/internal/bench/contender"
)

func main() {
	name := flag.String("resource", "deployments.v1.apps", "`RESOURCE.VERSION.GROUP`")
	contender.Main(func(ctx context.Context, c *contender.Contender) error {
		resource, _ := schema.ParseResourceArg(*name)
		if resource == nil {
			return fmt.Errorf("%q is not RESOURCE.VERSION.GROUP", *name)
		}
		client, err := dynamic.NewForConfig(c.Config)
		if err != nil {
			return fmt.Errorf("make a client: %w", err)
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		informer := factory.ForResource(*resource).Informer()
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return errors.New("the cache did not sync")
		}
		c.Ready()
		<-ctx.Done()
		factory.Shutdown()
		return nil
	})
}
