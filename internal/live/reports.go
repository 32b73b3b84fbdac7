package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// Report is what a running controller has told on an object of one rule: that
// it is held, refused or without effect.
type Report struct {
	Rule, Reason, Note string
	Count              int
	Last               time.Time // when it was told the last time
}

var events = eventsv1.SchemeGroupVersion.WithResource("events")

// Reports reads the Warnings that a controller, by its name in Events, has
// written about an object: of each rule and reason the last, the latest first.
// What a later fix by the same rule has outdated is left out. Events expire,
// by default after an hour.
func (c *Cluster) Reports(ctx context.Context, controller string, object map[string]any) ([]Report, error) {
	u := unstructured.Unstructured{Object: object}
	namespace := cmp.Or(u.GetNamespace(), metav1.NamespaceDefault)
	selector := fields.SelectorFromSet(fields.Set{"regarding.uid": string(u.GetUID()), "reportingController": controller})
	list, err := c.in(events, namespace).List(silent(ctx), metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("list %s in %s: %w", events.GroupResource(), namespace, &readError{err})
	}
	var warnings []Report
	fixed := map[string]time.Time{}
	for i := range list.Items {
		var e eventsv1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &e); err != nil {
			continue
		}
		switch r := reportOf(&e); {
		case e.Type == corev1.EventTypeWarning:
			warnings = append(warnings, r)
		case r.Last.After(fixed[r.Rule]):
			fixed[r.Rule] = r.Last
		}
	}
	slices.SortStableFunc(warnings, func(a, b Report) int { return b.Last.Compare(a.Last) })
	var out []Report
	for _, r := range warnings {
		told := slices.ContainsFunc(out, func(o Report) bool { return o.Rule == r.Rule && o.Reason == r.Reason })
		if !told && !fixed[r.Rule].After(r.Last) {
			out = append(out, r)
		}
	}
	return out, nil
}

// reportOf reads an Event; the rule stands as its action.
func reportOf(e *eventsv1.Event) Report {
	r := Report{Rule: e.Action, Reason: e.Reason, Note: e.Note, Count: 1, Last: e.EventTime.Time}
	if e.Series != nil {
		r.Count, r.Last = int(e.Series.Count), e.Series.LastObservedTime.Time
	}
	return r
}
