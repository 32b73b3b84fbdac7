package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/bench/rollouts"
	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// otherKind is a resource beside Deployments, with objects of 3.5 KB.
type otherKind struct {
	scenario string
	what     string // its objects in words
	resource schema.GroupVersionResource
	manager  string // who creates them
	// manifest is the i-th object, with so much padding, which counts twice.
	manifest func(i, padding int) metav1.Object
	// beat is a status that differs for each n.
	beat func(n int) string
	// rule is for what the typed controller of the same name does.
	rule string
}

// otherKinds measures custom resources, which have no protobuf, and Pods, which
// clusters have most of and whose status changes most.
func (s *suite) otherKinds(ctx context.Context) error {
	if err := s.plane.createNamespaces(ctx); err != nil {
		return err
	}
	for _, k := range []*otherKind{customKind, podKind} {
		if !s.wants(k.scenario) {
			continue
		}
		s.tell("== %s", k.scenario)
		if err := s.measureKind(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", k.scenario, err)
		}
	}
	return nil
}

func (s *suite) measureKind(ctx context.Context, k *otherKind) error {
	contenders, err := s.contendersFor(k)
	if err != nil {
		return err
	}
	if k == customKind {
		if err := s.plane.define(ctx); err != nil {
			return err
		}
	}
	if err := s.heapBefore(ctx, k.bareHeap(), 1, contenders); err != nil {
		return err
	}
	if err := s.seedKind(ctx, k, s.others); err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s of 3.5 KB", thousands(s.others), k.what)
	return s.sync(ctx, reading{objects: what, count: s.others, contenders: contenders, other: k, rounds: s.few(), then: func(ctx context.Context, p *process) error {
		cost, err := s.costOf(ctx, p, s.steady(func(ctx context.Context, i, n int) error {
			return s.plane.beatKind(ctx, k, i%s.others, n)
		}))
		s.add(k.irrelevant(s.steadyName()), p.name, toMicroseconds(cost.contender))
		return err
	}})
}

// contendersFor are rectifier with the rule of the kind and the controllers by hand.
func (s *suite) contendersFor(k *otherKind) ([]contender, error) {
	path := filepath.Join(s.dir, k.scenario+".yaml")
	if err := os.WriteFile(path, []byte(k.rule), 0o600); err != nil {
		return nil, err
	}
	kind := "--kind=" + k.resource.Resource
	contenders := []contender{s.rectifier(ours, "--builtin=none", "--rules="+path), s.typed(typedJSON, kind)}
	if k == customKind {
		return append(contenders, s.dynamic(k.resource)), nil
	}
	return append(contenders, s.typed(typedProtobuf, kind, "--protobuf")), nil
}

func (k *otherKind) bareHeap() measure {
	return measure{"live heap without objects, " + k.what, megabytes}
}

func (k *otherKind) irrelevant(load string) measure {
	return measure{fmt.Sprintf("CPU per irrelevant update (status) of %s, %s", k.what, load), microseconds}
}

func (k *otherKind) path(i int, rest string) string {
	group := "/apis/" + k.resource.Group
	if k.resource.Group == "" {
		group = "/api"
	}
	return fmt.Sprintf("%s/%s/namespaces/%s/%s%s", group, k.resource.Version, namespaceOf(i), k.resource.Resource, rest)
}

// seedKind creates so many objects.
func (s *suite) seedKind(ctx context.Context, k *otherKind, count int) error {
	padding, err := paddingTo(bytesOf(deployments.Small), func(padding int) (int, error) {
		made, err := s.plane.createKind(ctx, k, 0, padding, "&dryRun=All")
		return len(made), err
	})
	if err != nil {
		return err
	}
	err = each(ctx, seeders, 0, count, func(ctx context.Context, i int) error {
		_, err := s.plane.createKind(ctx, k, i, padding, "")
		return err
	})
	s.tell("%d %s are there", count, k.what)
	return err
}

// createKind returns what the API server has made of an object.
func (p *plane) createKind(ctx context.Context, k *otherKind, i, padding int, options string) ([]byte, error) {
	object := k.manifest(i, padding)
	object.SetName(nameOf(i))
	object.SetNamespace(namespaceOf(i))
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	made, err := p.client.RESTClient().Post().RequestURI(k.path(i, "?fieldManager="+k.manager+options)).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(text).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("create one of %s: %w: %s", k.what, err, made)
	}
	return made, nil
}

// beatKind changes the i-th object in its status only.
func (p *plane) beatKind(ctx context.Context, k *otherKind, i, n int) error {
	answer, err := p.client.RESTClient().Patch(types.MergePatchType).RequestURI(k.path(i, "/"+nameOf(i)+"/status")).
		SetHeader("Accept", "application/json").Body([]byte(k.beat(n))).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("patch one of %s: %w: %s", k.what, err, answer)
	}
	return nil
}

// define creates the definition of the custom resource, and waits until it is
// served.
func (p *plane) define(ctx context.Context) error {
	answer, err := p.client.RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body([]byte(rollouts.Definition)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("define the custom resource: %w: %s", err, answer)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		_, err := p.client.RESTClient().Get().RequestURI(customKind.path(0, "")).SetHeader("Accept", "application/json").DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), fmt.Errorf("wait for the custom resource: %w", err))
		case <-time.After(poll):
		}
	}
}

// customKind does what the built-in rule does for Deployments.
var customKind = &otherKind{
	scenario: scenarioCustom, what: "custom resources", resource: rollouts.Resource, manager: applier,
	manifest: func(i, padding int) metav1.Object {
		d := deployments.Manifest(i, deployments.Small)
		r := &rollouts.Rollout{ObjectMeta: d.ObjectMeta, Spec: d.Spec}
		r.SetGroupVersionKind(rollouts.Kind)
		pad(r.Annotations, padding)
		text, err := json.Marshal(r)
		if err != nil {
			panic(err) // it has a JSON form
		}
		r.Annotations[lastApplied] = string(text) + "\n"
		return r
	},
	beat: func(n int) string {
		return fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":3,"readyReplicas":%d}}`, n, n%4)
	},
	rule: `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: rollout-replicas}
spec:
  resource: {group: bench.example.io, version: v1, resource: rollouts}
  condition: >-
    'example.io/expected-replicas' in object.metadata.?annotations.orValue({})
    && object.spec.replicas != int(object.metadata.annotations['example.io/expected-replicas'])
  patch: {merge: {spec: {replicas: "${int(object.metadata.annotations['example.io/expected-replicas'])}"}}}
`,
}

// podKind does the same with a label, since hardly anything of a Pod's spec can be
// changed. Pods are made by a controller: they have no last applied configuration,
// and what pads them stands in two annotations.
var podKind = &otherKind{
	scenario: scenarioPods, what: "Pods", resource: corev1.SchemeGroupVersion.WithResource("pods"), manager: "kube-controller-manager",
	manifest: func(i, padding int) metav1.Object {
		d := deployments.Manifest(i, deployments.Small)
		p := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Labels: d.Labels, Annotations: map[string]string{"example.io/expected-team": d.Labels["team"]}},
			Spec:       d.Spec.Template.Spec,
		}
		pad(p.Annotations, padding)
		p.Annotations["example.io/seen"] = p.Annotations["example.io/description"]
		return p
	},
	beat: func(n int) string {
		return fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","message":"beat %d"}]}}`, n)
	},
	rule: `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: pod-team}
spec:
  resource: {group: "", version: v1, resource: pods}
  condition: >-
    'example.io/expected-team' in object.metadata.?annotations.orValue({})
    && object.metadata.?labels.?team.orValue('') != object.metadata.annotations['example.io/expected-team']
  patch: {merge: {metadata: {labels: {team: "${object.metadata.annotations['example.io/expected-team']}"}}}}
`,
}
