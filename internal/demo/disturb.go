package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	disturbanceEvery = 300 * time.Millisecond
	disturbanceTime  = 8 * time.Second
)

// disturbance is one thing that the second writer does.
type disturbance struct {
	item  item
	field field
	value any
}

// disturbances are all that the scenario has, each once, in an order that is
// the same in each show.
func disturbances() []disturbance {
	var rounds [2][]disturbance
	for _, it := range items {
		for _, f := range it.fields {
			for i, v := range f.disturbances {
				rounds[i%2] = append(rounds[i%2], disturbance{it, f, v})
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range rounds { // so that one field's two are far apart
		random.Shuffle(len(r), func(i, j int) { r[i], r[j] = r[j], r[i] })
	}
	return append(rounds[0], rounds[1]...)
}

// disturb lets a second writer loose for some seconds, as an administrator
// with kubectl would be, and returns how often it has written.
func (s *show) disturb(ctx context.Context) (int, error) {
	s.out.title(fmt.Sprintf("For %d seconds, %s knows better", int(disturbanceTime.Seconds()), writerUser))
	config, err := s.plane.User(writerUser, "system:masters")
	if err != nil {
		return 0, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	tick := time.NewTicker(disturbanceEvery)
	defer tick.Stop()
	end := time.After(disturbanceTime)
	n := 0
	for _, d := range disturbances() {
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-end:
			return n, nil
		case <-tick.C:
		}
		now := time.Now()
		s.fixes.disturbed(d.item.title(), now)
		s.out.line("  %s %s %-20s  %s sets %s to %s", s.fixes.elapsed(now), s.out.bad("✗"), d.item.title(), writerUser, d.field.label, text(d.value))
		if err := d.write(ctx, client); err != nil {
			return n, fmt.Errorf("disturb %s: %w", d.item.title(), err)
		}
		n++
	}
	return n, nil
}

// write makes the change as `kubectl patch --type=json` would: on no
// particular version of the object, over whatever is there.
func (d disturbance) write(ctx context.Context, client dynamic.Interface) error {
	pointer := ""
	for _, step := range d.field.path {
		pointer += "/" + fmt.Sprint(step)
	}
	op := map[string]any{"op": "add", "path": pointer, "value": d.value}
	if d.value == nil {
		op = map[string]any{"op": "remove", "path": pointer}
	}
	body, err := json.Marshal([]any{op})
	if err != nil {
		return err
	}
	_, err = client.Resource(d.item.resource).Namespace(namespace).
		Patch(ctx, d.item.name(), types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "kubectl-patch"})
	return err
}
