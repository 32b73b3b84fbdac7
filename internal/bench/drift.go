package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manyDrifts makes all objects wrong, by the patch loop, and has a contender put
// them right. So the loop is measured in turn with them, on the same objects: alone
// before one of them, and with somebody who watches before the other.
func (s *suite) manyDrifts(ctx context.Context) error {
	loop := contender{name: patchLoop, program: "patchloop", args: []string{fmt.Sprint("--writers=", s.workers), fmt.Sprint("--replicas=", wrong)}}
	watchedLoop := contender{name: patchLoopWatched, program: loop.program, args: append(slices.Clone(loop.args), "--watch")}
	loops := map[string]contender{ours: loop, typedJSON: watchedLoop}
	return s.rounds(ctx, []contender{s.ours(), s.typedJSON()}, func(ctx context.Context, c contender) error {
		o, err := observe(ctx, s.plane.AdminConfig())
		if err != nil {
			return err
		}
		defer o.stop()
		if err := s.driftAll(ctx, loops[c.name], o); err != nil {
			return err
		}
		if err := s.plane.quiet(ctx, s.tell); err != nil {
			return err
		}
		before, err := s.plane.requests(ctx)
		if err != nil {
			return err
		}
		if err := s.fixAll(ctx, c, o); err != nil {
			return err
		}
		if err := s.plane.quiet(ctx, s.tell); err != nil { // watches count when they have ended
			return err
		}
		after, err := s.plane.requests(ctx)
		if err != nil {
			return err
		}
		s.countRequests(c, since(before, after))
		return s.allRight(ctx)
	})
}

// driftAll has a patch loop set all replicas.
func (s *suite) driftAll(ctx context.Context, loop contender, o *observer) (err error) {
	p, err := s.start(loop)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	changes, err := o.take(ctx, s.plane.seeded)
	if err != nil {
		return err
	}
	<-p.done // it ends by itself
	state := p.cmd.ProcessState
	s.add(fixRate, loop.name, rate(changes))
	s.add(allRight, loop.name, changes[len(changes)-1].at.Sub(p.started).Seconds())
	s.add(fixCPU, loop.name, toMicroseconds((state.UserTime()+state.SystemTime())/time.Duration(s.plane.seeded)))
	return nil
}

// fixAll runs a contender until all objects are right and it has nothing more to
// do.
func (s *suite) fixAll(ctx context.Context, c contender, o *observer) (err error) {
	p, err := s.start(c)
	if err != nil {
		return err
	}
	// Not in order: Events that wait would be written first, thousands of them.
	defer func() { err = errors.Join(err, p.kill()) }()
	changes, err := o.take(ctx, s.plane.seeded)
	if err != nil {
		return err
	}
	cpu, err := p.idle(ctx)
	if err != nil {
		return err
	}
	s.add(fixRate, c.name, rate(changes))
	s.add(allRight, c.name, changes[len(changes)-1].at.Sub(p.started).Seconds())
	s.add(fixCPU, c.name, toMicroseconds(cpu/time.Duration(s.plane.seeded)))
	return nil
}

// countRequests notes what a contender has asked for from its start to its end.
func (s *suite) countRequests(c contender, counts map[request]int) {
	fixes := float64(s.plane.seeded)
	writes := of(counts, "PATCH", "deployments") + of(counts, "PUT", "deployments")
	s.add(patchesOfFix, c.name, float64(writes)/fixes)
	s.add(getsOfFix, c.name, float64(of(counts, "GET", "deployments"))/fixes)
	s.add(lists, c.name, float64(of(counts, "LIST", "deployments")))
	s.add(watches, c.name, float64(of(counts, "WATCH", "deployments"))) // the observer's has not ended
	s.add(eventsOfFix, c.name, float64(eventsIn(counts))/fixes)
}

// allRight fails if a Deployment is still wrong.
func (s *suite) allRight(ctx context.Context) error {
	all, err := s.plane.client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range all.Items {
		if *d.Spec.Replicas != right {
			return fmt.Errorf("%s/%s is still wrong", d.Namespace, d.Name)
		}
	}
	return nil
}
