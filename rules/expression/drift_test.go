package expression

import (
	"sort"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// TestLanguageIsKubernetes keeps the two lists from drifting apart: every
// function of a ValidatingAdmissionPolicy is here under the same name, with
// the same overloads, and there is none of our own.
func TestLanguageIsKubernetes(t *testing.T) {
	upstream := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).StoredExpressionsEnv()
	theirs, ours := overloads(upstream), overloads(base())
	var missing, extra []string
	for id := range theirs {
		if !ours[id] && !authorizer(id) {
			missing = append(missing, id)
		}
	}
	for id := range ours {
		// escapeKey comes with MutatingAdmissionPolicy's patches, not with the base list.
		if !theirs[id] && !strings.HasPrefix(id, "jsonpatch.escapeKey ") {
			extra = append(extra, id)
		}
	}
	sort.Strings(missing)
	sort.Strings(extra)
	if len(missing) > 0 {
		t.Errorf("functions of Kubernetes that are missing here:\n%s", strings.Join(missing, "\n"))
	}
	if len(extra) > 0 {
		t.Errorf("functions that Kubernetes does not have:\n%s", strings.Join(extra, "\n"))
	}
	if len(theirs) < 150 {
		t.Errorf("only %d overloads found upstream: the comparison compares nothing", len(theirs))
	}
}

func overloads(env *cel.Env) map[string]bool {
	ids := map[string]bool{}
	for name, fn := range env.Functions() {
		for _, o := range fn.OverloadDecls() {
			ids[name+" "+o.ID()] = true
		}
	}
	return ids
}

// authorizer names what reads the authorizer of an admission request, which a
// stored object does not have.
func authorizer(id string) bool {
	for _, part := range []string{"authorizer", "_authorized", "_allowed", "resourcecheck", "groupcheck", "pathcheck", "decision_"} {
		if strings.Contains(id, part) {
			return true
		}
	}
	return false
}
