package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/live"
)

// explainedController is what a running controller has told of a rule on the
// object. It may be over by now: nobody takes an Event back.
type explainedController struct {
	Reason string `json:"reason"`
	Note   string `json:"note"`
	Count  int    `json:"count"`
	Last   string `json:"last"` // when it was told the last time

	last time.Time
}

// addReports adds to the rules what a controller has told of them, or a note
// that this cannot be known.
func (o *explainedObject) addReports(ctx context.Context, cluster *live.Cluster, object map[string]any) {
	reports, err := cluster.Reports(ctx, engine.ReportingController, object)
	if err != nil {
		o.Notes = append(o.Notes, "what a controller has reported is not known: "+err.Error())
		return
	}
	told := map[string][]explainedController{}
	for _, r := range reports {
		told[r.Rule] = append(told[r.Rule], explainedController{
			Reason: r.Reason, Note: strings.TrimPrefix(r.Note, fmt.Sprintf("rule %s: ", r.Rule)), Count: r.Count,
			Last: r.Last.UTC().Format(time.RFC3339), last: r.Last,
		})
	}
	for i := range o.Rules {
		o.Rules[i].Controller = told[o.Rules[i].Rule]
	}
}

// controller prints what a controller has told, and when.
func (p *explainPrinter) controller(reports []explainedController) {
	for _, r := range reports {
		often := ""
		if r.Count > 1 {
			often = fmt.Sprintf(", %d times", r.Count)
		}
		p.line(2, fmt.Sprintf("the controller reported %s ago: %s%s: %s", duration.HumanDuration(time.Since(r.last)), oneLine(r.Reason), often, oneLine(r.Note)))
	}
}
