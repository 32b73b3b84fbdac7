package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// plane is an API server with Deployments of one size. Everybody is its
// administrator, a member of system:masters: such requests are exempt from the
// priority and fairness of the API server, so that all contenders have the same
// share of it, and the driver too.
type plane struct {
	*controlplane.ControlPlane
	client *kubernetes.Clientset // speaks protobuf
	size   deployments.Size
	seeded int // Deployments 0 to seeded-1 are there
}

func startPlane(ctx context.Context, size deployments.Size) (*plane, error) {
	c, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	config := protobuf(c.AdminConfig())
	config.WarningHandler = rest.NoWarnings{} // of each object, the same
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return &plane{ControlPlane: c, client: client, size: size}, nil
}

func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// The servers are quiet when they compute for less than quietShare of a time of
// quietTime, which is what they do with nothing to do.
const (
	quietTime    = 400 * time.Millisecond
	quietShare   = 0.10
	quietTimeout = 30 * time.Second
)

// quiet waits until API server and etcd have nothing to do, so that nobody is
// measured while they tidy up after somebody else. It does not wait for ever: then
// it says so.
func (p *plane) quiet(ctx context.Context, tell func(string, ...any)) error {
	for begin := time.Now(); time.Since(begin) < quietTimeout; {
		before, err := p.serversCPU()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quietTime):
		}
		after, err := p.serversCPU()
		if err != nil {
			return err
		}
		if after-before < time.Duration(float64(quietTime)*quietShare) {
			return nil
		}
	}
	tell("the API server is still busy after %s", quietTimeout)
	return nil
}

const apiServer = "kube-apiserver"

// servers are the binaries that a plane consists of.
var servers = []string{apiServer, "etcd"}

// serversCPU is how long the servers have computed since their start.
func (p *plane) serversCPU() (time.Duration, error) {
	var sum time.Duration
	for _, name := range servers {
		t, err := p.cpuOf(name)
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// cpuOf is the same of one of them.
func (p *plane) cpuOf(name string) (time.Duration, error) {
	pid, err := p.PID(name)
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", name, err)
	}
	return processorTime(pid)
}

// serverPeak is the largest resident set of a server so far, in bytes.
func (p *plane) serverPeak(name string) (float64, error) {
	pid, err := p.PID(name)
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", name, err)
	}
	return peakMemory(pid)
}
