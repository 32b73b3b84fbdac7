package main

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// finding compares one field of an object with what it should be.
type finding struct {
	item  item
	field field
	is    any
	right bool
}

func wrong(findings []finding) []finding {
	var out []finding
	for _, f := range findings {
		if !f.right {
			out = append(out, f)
		}
	}
	return out
}

// countRequests is how many requests put the findings right: one for each
// object, and one for its replicas, which go through /scale.
func countRequests(findings []finding) int {
	requests := map[string]bool{}
	for _, f := range findings {
		requests[fmt.Sprint(f.item.title(), f.field.label == "replicas")] = true
	}
	return len(requests)
}

// inspect compares every object with what it should be: field by field, and
// all the rest with what was created.
func (c *cluster) inspect(ctx context.Context) ([]finding, error) {
	live := map[string]map[string]any{}
	for _, resource := range []schema.GroupVersionResource{deployments, backups} {
		list, err := c.objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for _, o := range list.Items {
			live[resource.Resource+"/"+o.GetName()] = o.Object
		}
	}
	var findings []finding
	for _, it := range items {
		object := live[it.resource.Resource+"/"+it.name()]
		if object == nil {
			findings = append(findings, finding{item: it, field: field{label: "the object", wanted: "there"}, is: "gone"})
			continue
		}
		for _, f := range it.fields {
			is := get(object, f.path)
			findings = append(findings, finding{item: it, field: f, is: is, right: is == f.wanted})
		}
		if !c.restAsCreated(it, object) {
			findings = append(findings, finding{item: it, field: field{label: "all other fields", wanted: "as created"}, is: "changed"})
		}
	}
	return findings, nil
}

// restAsCreated compares what the show's fields leave of an object.
func (c *cluster) restAsCreated(it item, object map[string]any) bool {
	rest := func(o map[string]any) []any {
		o = runtime.DeepCopyJSON(o)
		for _, f := range it.fields {
			remove(o, f.path)
		}
		meta, _ := o["metadata"].(map[string]any)
		return []any{o["spec"], meta["labels"], meta["annotations"], meta["uid"]}
	}
	return reflect.DeepEqual(rest(object), rest(c.created[it.title()]))
}

// get reads a path of keys and indices; nil where there is nothing.
func get(value any, path []any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[step]
		case int:
			l, _ := value.([]any)
			if step >= len(l) {
				return nil
			}
			value = l[step]
		}
	}
	return value
}

func remove(object map[string]any, path []any) {
	last := len(path) - 1
	if parent, ok := get(object, path[:last]).(map[string]any); ok {
		delete(parent, path[last].(string))
	}
}

// table prints what every object should be and is; onlyWrong leaves out what
// is right.
func (s *show) table(ctx context.Context, onlyWrong bool) ([]finding, error) {
	findings, err := s.cluster.inspect(ctx)
	if err != nil {
		return nil, err
	}
	shown := findings
	if onlyWrong {
		shown = wrong(findings)
	}
	s.out.findings(shown)
	s.out.line("")
	s.out.line("  %d of %d fields are as they should be.", len(findings)-len(wrong(findings)), len(findings))
	return findings, nil
}

func (s *screen) findings(findings []finding) {
	rows := [][]string{{"OBJECT", "FIELD", "WANTED", "IS", "VERDICT", ""}}
	previous := ""
	for _, f := range findings {
		object := f.item.title()
		if object == previous {
			object = ""
		} else {
			previous = object
		}
		verdict := "right"
		if !f.right {
			verdict = "WRONG"
		}
		rows = append(rows, []string{object, f.field.label, text(f.field.wanted), text(f.is), verdict, f.field.note})
	}
	s.table(rows, func(row int, line string) string {
		switch {
		case row == 0:
			return s.dim(line)
		case findings[row-1].right:
			return line
		}
		return s.bad(line)
	})
}

func text(value any) string {
	if value == nil {
		return "none"
	}
	return fmt.Sprint(value)
}
