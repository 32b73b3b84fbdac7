package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

const (
	namespaces = 50
	seeders    = 32 // creates under way at once
	// applier is who applies manifests, and lastApplied the annotation that it keeps
	// them in.
	applier     = "kubectl-client-side-apply"
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

func namespaceOf(i int) string { return fmt.Sprintf("bench-%02d", i%namespaces) }

func nameOf(i int) string { return fmt.Sprintf("web-%05d", i) }

// bytesOf is how large a Deployment shall be as JSON, with all that the server
// adds.
func bytesOf(size deployments.Size) int {
	if size == deployments.Large {
		return 16000
	}
	return 3500
}

// manifest is the i-th Deployment as it is created, as large as padding makes it.
func (p *plane) manifest(i, padding int) *appsv1.Deployment {
	d := deployments.Manifest(i, p.size)
	d.Name, d.Namespace = nameOf(i), namespaceOf(i)
	pad(d.Annotations, padding)
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // it has a JSON form
	}
	d.Annotations[lastApplied] = string(text) + "\n"
	return d
}

// pad adds an annotation of that many bytes; none, if there are none.
func pad(annotations map[string]string, bytes int) {
	if bytes > 0 {
		annotations["example.io/description"] = strings.Repeat("what it is for, and whom to ask. ", bytes/33+1)[:bytes]
	}
}

// seed creates Deployments until there are count.
func (s *suite) seed(ctx context.Context, count int) error {
	p := s.plane
	if p.seeded >= count {
		return nil
	}
	if p.seeded == 0 {
		if err := p.createNamespaces(ctx); err != nil {
			return err
		}
	}
	padding, err := p.padding(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	var created atomic.Int64
	stop := s.progress(func() string { return fmt.Sprintf("%d of %d Deployments are created", created.Load(), count-p.seeded) })
	err = each(ctx, seeders, p.seeded, count, func(ctx context.Context, i int) error {
		defer created.Add(1)
		_, err := p.create(ctx, i, padding, false)
		return err
	})
	stop()
	if err != nil {
		return err
	}
	s.tell("%d Deployments of %d bytes are there (%.0f/s)", count, bytesOf(p.size), float64(count-p.seeded)/time.Since(begin).Seconds())
	p.seeded = count
	return nil
}

func (p *plane) create(ctx context.Context, i, padding int, dryRun bool) (*appsv1.Deployment, error) {
	d := p.manifest(i, padding)
	options := metav1.CreateOptions{FieldManager: applier}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	made, err := p.client.AppsV1().Deployments(d.Namespace).Create(ctx, d, options)
	if err != nil {
		return nil, fmt.Errorf("create a Deployment: %w", err)
	}
	return made, nil
}

// padding is how much a manifest lacks. It counts twice: the annotation is in the
// last applied configuration, too.
func (p *plane) padding(ctx context.Context) (int, error) {
	return paddingTo(bytesOf(p.size), func(padding int) (int, error) {
		made, err := p.create(ctx, p.seeded, padding, true)
		if err != nil {
			return 0, err
		}
		text, err := json.Marshal(made)
		return len(text), err
	})
}

// paddingTo is how much padding makes length what is wanted, if each byte counts
// twice.
func paddingTo(want int, length func(padding int) (int, error)) (int, error) {
	bare, err := length(0)
	if err != nil || bare >= want {
		return 0, err
	}
	one, err := length(1)
	return max(0, 1+(want-one)/2), err
}

func (p *plane) createNamespaces(ctx context.Context) error {
	return each(ctx, seeders, 0, namespaces, func(ctx context.Context, i int) error {
		_, err := p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create a namespace: %w", err)
		}
		return nil
	})
}

// each calls do for begin to end-1, so many at once.
func each(ctx context.Context, atOnce, begin, end int, do func(context.Context, int) error) error {
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := begin; i < end && inGroup.Err() == nil; i++ {
		group.Go(func() error { return do(inGroup, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
