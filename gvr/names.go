package gvr

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A manifest names its kind, a rule names the plural resource, and only a cluster or a CRD knows for sure which
// belongs to which. This file is for when neither is there.

// ResourceCandidates returns the plural resource names that a kind may have, the likeliest first: deployments for
// Deployment; gateways, gatewaies for Gateway (Kubernetes' own guess is the second, its API is the first). The kind
// in lower case comes last, since some resources have no plural form. It is never empty for a non-empty kind.
func ResourceCandidates(kind string) []string {
	singular := strings.ToLower(kind)
	if singular == "" {
		return nil
	}
	var names []string
	switch stem, y := strings.CutSuffix(singular, "y"); {
	case y && endsInVowel(stem):
		names = []string{singular + "s", stem + "ies"}
	case y:
		names = []string{stem + "ies", singular + "s"}
	case strings.HasSuffix(singular, "ex") || strings.HasSuffix(singular, "ix"):
		names = []string{singular + "es", singular[:len(singular)-2] + "ices"}
	case hasAnySuffix(singular, "s", "x", "z", "ch", "sh"):
		names = []string{singular + "es", singular + "s"}
	default:
		names = []string{singular + "s"}
	}
	return append(names, singular)
}

// KindMatches says whether a kind can be the one behind a plural resource name. For built-in kinds it is exact, for
// all others it means that the name is one of ResourceCandidates.
func KindMatches(gk schema.GroupKind, resource string) bool {
	if b, ok := builtinKinds[gk]; ok {
		return b.resource == resource
	}
	return slices.Contains(ResourceCandidates(gk.Kind), resource)
}

// ClusterScoped says whether a built-in kind is cluster-scoped. It is false for kinds that are not built in.
func ClusterScoped(gk schema.GroupKind) bool {
	b, ok := builtinKinds[gk]
	return ok && !b.namespaced
}

func endsInVowel(s string) bool { return hasAnySuffix(s, "a", "e", "i", "o", "u") }

func hasAnySuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(s, suffix) })
}
