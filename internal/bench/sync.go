package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// Measures of reading all objects.
func syncCPU(objects string) measure  { return sized("CPU to sync", objects, seconds) }
func syncTime(objects string) measure { return sized("start until synced", objects, seconds) }
func syncServers(objects string) measure {
	return sized("CPU of kube-apiserver and etcd meanwhile", objects, seconds)
}
func syncPeak(objects string) measure { return sized("peak memory (RSS)", objects, megabytes) }
func syncHeap(objects string) measure {
	return sized("live heap per cached object", objects, kilobytes)
}

// reading is what is read, and by whom.
type reading struct {
	objects    string // in words
	count      int
	contenders []contender
	other      *otherKind // nil: Deployments
	rounds     int        // zero: those of the plan
	// then, if there is one, goes on with the process, which is idle.
	then func(context.Context, *process) error
}

// sync reads objects, of which none is wrong, until there is nothing more to do,
// and notes what that takes. Processor time and memory are those of the whole
// process since its start.
func (s *suite) sync(ctx context.Context, r reading) error {
	s.tell("== sync of %s", r.objects)
	objects, bare, rounds := r.objects, bareHeap, r.rounds
	if r.other != nil {
		bare = r.other.bareHeap()
	}
	if rounds == 0 {
		rounds = s.runs
	}
	err := s.takeTurns(ctx, rounds, r.contenders, func(ctx context.Context, c contender) (err error) {
		before, err := s.plane.serversCPU()
		if err != nil {
			return err
		}
		p, err := s.start(c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		needed, err := p.settle(ctx)
		if err != nil {
			return err
		}
		after, err := s.plane.serversCPU()
		if err != nil {
			return err
		}
		peak, err := p.peak()
		if err != nil {
			return err
		}
		heap, err := p.heap(ctx)
		if err != nil {
			return err
		}
		s.add(syncCPU(objects), c.name, needed.cpu.Seconds())
		s.add(syncTime(objects), c.name, needed.ready.Seconds())
		s.add(syncServers(objects), c.name, (after - before).Seconds())
		s.add(syncPeak(objects), c.name, toMegabytes(peak))
		if bare, ok := s.of(bare, c.name); ok {
			s.add(syncHeap(objects), c.name, (heap-bare.median*1e6)/float64(r.count)/1e3)
		}
		if c.program == "rectifier" {
			if err := p.holds(ctx, r.resource(), r.count); err != nil {
				return err
			}
		}
		if r.then != nil {
			return r.then(ctx, p)
		}
		return nil
	})
	return errors.Join(err, s.serverMemory(objects))
}

// serverMemory notes what the servers have needed by now, whoever asked.
func (s *suite) serverMemory(objects string) error {
	for _, name := range servers {
		peak, err := s.plane.serverPeak(name)
		if err != nil {
			return err
		}
		s.add(syncPeak(objects), name, toMegabytes(peak))
	}
	return nil
}

var cachedObjects = regexp.MustCompile(`(?m)^rectifier_cached_objects\{[^}]*resource="([^"]*)"[^}]*\} (\S+)$`)

// resource is how rectifier's metrics name what is read.
func (r reading) resource() string {
	if r.other != nil {
		return r.other.resource.GroupResource().String()
	}
	return deploymentsResource.GroupResource().String()
}

// holds fails if a rectifier does not have all objects in its cache: then it was
// measured at something else.
func (p *process) holds(ctx context.Context, resource string, count int) error {
	metrics, err := p.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	for _, m := range cachedObjects.FindAllSubmatch(metrics, -1) {
		if string(m[1]) != resource {
			continue
		}
		cached, err := strconv.ParseFloat(string(m[2]), 64)
		if err == nil && int(cached) != count {
			err = fmt.Errorf("it has %v of %d %s", cached, count, resource)
		}
		return err
	}
	return fmt.Errorf("its metrics do not tell of %s", resource)
}

// reference is the number of small objects that the bars are about.
func (p plan) reference() int {
	n := p.sizes[0]
	for _, size := range p.sizes {
		if size <= 20000 {
			n = size
		}
	}
	return n
}

func (p plan) referenceObjects() string { return objects(p.reference(), deployments.Small) }

func (p plan) largeObjects() string { return objects(p.large, deployments.Large) }
