// Command cache keeps all Deployments as rectifier does for its built-in rule, by
// package gvr, and does nothing with them: what the cache alone takes.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/bench/contender"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

func main() {
	contender.Main(func(ctx context.Context, c *contender.Contender) error {
		source, err := builtin.Source(builtin.Default)
		if err != nil {
			return err
		}
		set, problems := rules.Load(source)
		if len(problems) > 0 {
			return errors.New(problems[0].Detail())
		}
		manager, err := gvr.New(gvr.Options{Config: c.Config, Fields: func(resource schema.GroupVersionResource, info gvr.Info) projection.Fields {
			return projection.Fields{Set: set.Fields(resource, info.ReplicasPath)}
		}})
		if err != nil {
			return err
		}
		manager.Use([]schema.GroupVersionResource{deployments})
		go func() {
			for !manager.Synced(deployments) {
				time.Sleep(20 * time.Millisecond)
			}
			c.Ready()
		}()
		if err := manager.Run(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("keep Deployments: %w", err)
		}
		return nil
	})
}
