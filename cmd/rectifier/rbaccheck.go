package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

// reviewTimeout bounds all questions of a check together.
const reviewTimeout = 30 * time.Second

// rightsReport is what a check found.
type rightsReport struct {
	Asked   int            `json:"asked"` // rights that the rules need
	Missing []missingRight `json:"missing"`
	Parked  []parkedRule   `json:"parked"`
}

type missingRight struct {
	Verb        string   `json:"verb"`
	Group       string   `json:"group"`
	Resource    string   `json:"resource"`
	Subresource string   `json:"subresource,omitempty"`
	Namespace   string   `json:"namespace,omitempty"` // empty: at cluster scope
	Name        string   `json:"name,omitempty"`
	Rules       []string `json:"rules"` // empty: all of them
	Optional    bool     `json:"optional"`
	Why         string   `json:"why,omitempty"`
}

type parkedRule struct {
	Rule     string `json:"rule"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// ask asks the cluster which rights are missing, and prints them. It is not
// complete if a rule cannot work.
func (f *rbacFlags) ask(ctx context.Context, s streams, set *rules.Set, options rbac.Options) (complete bool, err error) {
	config, err := f.cluster.config()
	if err != nil {
		return false, err
	}
	config.QPS = -1 // one question for each right, and there are few
	config.Impersonate.UserName = f.as
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, &exitError{exitUsage, fmt.Errorf("prepare the client: %w", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if len(options.Namespaces) > 0 {
		options.Known = alsoServed(options.Known, set, client.Discovery())
	}
	needs := rbac.For(set, options)
	missing, err := rbac.Missing(ctx, needs, reviewer(client.AuthorizationV1().SelfSubjectAccessReviews()))
	if err != nil {
		return false, &exitError{exitCluster, fmt.Errorf("ask the cluster for permissions: %w", err)}
	}
	return len(needs.Parked) == 0 && required(missing) == 0, f.report(s, needs, missing)
}

func required(missing []rbac.Need) int {
	n := 0
	for _, m := range missing {
		if !m.Optional {
			n++
		}
	}
	return n
}

// reviewer asks with SelfSubjectAccessReviews, which every identity may create.
func reviewer(client authorizationclient.SelfSubjectAccessReviewInterface) rbac.Review {
	return func(ctx context.Context, right rbac.Right) (bool, error) {
		review, err := client.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: right.Verb, Group: right.Resource.Group, Resource: right.Resource.Resource,
				Subresource: right.Subresource, Namespace: right.Namespace, Name: right.Name,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
}

// alsoServed adds the scope of custom resources as the cluster serves them. A
// group that cannot be asked tells nothing: what it serves counts as namespaced.
func alsoServed(known func(schema.GroupVersionResource) rbac.Resource, set *rules.Set, client discovery.DiscoveryInterface) func(schema.GroupVersionResource) rbac.Resource {
	clusterScoped := map[schema.GroupVersionResource]bool{}
	asked := map[schema.GroupVersion]bool{}
	for _, resource := range rbac.Watched(set) {
		if gv := resource.GroupVersion(); !known(resource).Builtin && !asked[gv] {
			asked[gv] = true
			list, err := client.ServerResourcesForGroupVersion(gv.String())
			if err != nil {
				continue
			}
			for _, r := range list.APIResources {
				clusterScoped[gv.WithResource(r.Name)] = !r.Namespaced
			}
		}
	}
	return func(resource schema.GroupVersionResource) rbac.Resource {
		out := known(resource)
		out.ClusterScoped = out.ClusterScoped || clusterScoped[resource]
		return out
	}
}

func (f *rbacFlags) report(s streams, needs rbac.Needs, missing []rbac.Need) error {
	if f.output.value != "text" {
		return printData(s, f.output.value, newRightsReport(needs, missing))
	}
	for _, n := range missing {
		if _, err := fmt.Fprintln(s.out, describeMissing(n)); err != nil {
			return fmt.Errorf("print what is missing: %w", err)
		}
	}
	tellParked(s, needs)
	summary := "none is missing"
	if n := len(missing); n > 0 {
		summary = fmt.Sprintf("%s missing, %d of them optional", count(n, "is", "are"), n-required(missing))
	}
	fmt.Fprintf(s.err, "%s: %s\n", count(len(needs.All), "right", "rights"), summary)
	if len(missing) > 0 {
		fmt.Fprint(s.err, howToGrant)
	}
	return nil
}

// howToGrant keeps installations by Helm from a second role beside the chart's.
const howToGrant = `to grant them, with the same --rules, --builtin and --namespace, without --check and --as:
  the Helm chart: rectifier rbac … -o helm > rules-values.yaml, then helm upgrade … -f rules-values.yaml
  anything else:  rectifier rbac … --service-account NAMESPACE/NAME | kubectl apply -f -
`

// describeMissing gives a missing right on one line.
func describeMissing(n rbac.Need) string {
	what := fmt.Sprintf("%s %s %s", n.Verb, n.Target(), n.Scope())
	if n.Name != "" {
		what = fmt.Sprintf("%s %s %s %s", n.Verb, n.Target(), n.Name, n.Scope())
	}
	switch {
	case n.Optional:
		return what + ": optional: " + n.Why
	case len(n.Rules) == 0:
		return what + ": needed for " + n.Why
	}
	return what + ": needed by " + strings.Join(n.Rules, ", ")
}

func newRightsReport(needs rbac.Needs, missing []rbac.Need) rightsReport {
	out := rightsReport{Asked: len(needs.All), Missing: []missingRight{}, Parked: []parkedRule{}}
	for _, n := range missing {
		m := missingRight{
			Verb: n.Verb, Group: n.Resource.Group, Resource: n.Resource.Resource, Subresource: n.Subresource,
			Namespace: n.Namespace, Name: n.Name, Rules: n.Rules, Optional: n.Optional, Why: n.Why,
		}
		if m.Rules == nil {
			m.Rules = []string{} // not null
		}
		out.Missing = append(out.Missing, m)
	}
	for _, p := range needs.Parked {
		out.Parked = append(out.Parked, parkedRule{p.Rule, rules.ResourceName(p.Resource), p.Reason})
	}
	return out
}
