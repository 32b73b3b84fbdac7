package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.yaml.in/yaml/v3"
)

// The shape of a rule file: what may be written, before anything is compiled.
// Field names are the json tags; docs/rules.md explains each of them.

// Group, version and kind of a rule document.
const (
	APIVersion = "rectifier.dev/v1alpha1"
	Kind       = "Rule"
)

// text is a string of the file that remembers where it stands, so that what
// is wrong inside it (CEL, a pointer, a selector) can be shown there.
type text struct {
	value string
	node  *yaml.Node
}

// raw is a part of the file that is read by its own compiler: patches.
type raw struct{ node *yaml.Node }

// place is embedded where what is missing has to be reported: the mapping
// itself. It is nil in a struct that the file does not hold.
type place struct{ node *yaml.Node }

func (p *place) locate(n *yaml.Node) { p.node = n }

type document struct {
	APIVersion text     `json:"apiVersion"`
	Kind       text     `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name        text              `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type spec struct {
	Description  string      `json:"description"`
	Resource     *resource   `json:"resource"`
	Resources    []resource  `json:"resources"`
	Match        match       `json:"match"`
	Lookups      *raw        `json:"lookups" later:"true"`
	Variables    []variable  `json:"variables"`
	Condition    *text       `json:"condition"`
	Patch        *patchSpec  `json:"patch"`
	Patches      []patchSpec `json:"patches"`
	Event        eventSpec   `json:"event"`
	Mode         *text       `json:"mode"`
	RecheckAfter *raw        `json:"recheckAfter" later:"true"`
	OptOut       *raw        `json:"optOut" later:"true"`
}

type resource struct {
	place
	Group    *text `json:"group"`
	Version  text  `json:"version"`
	Resource text  `json:"resource"`
}

type match struct {
	Namespaces        []text    `json:"namespaces"`
	ExcludeNamespaces []text    `json:"excludeNamespaces"`
	Names             []text    `json:"names"`
	ExcludeNames      []text    `json:"excludeNames"`
	LabelSelector     *selector `json:"labelSelector"`
	NamespaceSelector *raw      `json:"namespaceSelector" later:"true"`
	FieldSelector     *text     `json:"fieldSelector"`
	Deleting          bool      `json:"deleting"`
}

// selector is a metav1.LabelSelector with its position.
type selector struct {
	metav1.LabelSelector
	node *yaml.Node
}

type variable struct {
	place
	Name       text `json:"name"`
	Expression text `json:"expression"`
}

type patchSpec struct {
	place
	Subresource        *text `json:"subresource"`
	Merge              *raw  `json:"merge"`
	JSON               *raw  `json:"json"`
	ApplyConfiguration *raw  `json:"applyConfiguration" later:"true"`
	Strategic          *raw  `json:"strategic"`
}

type eventSpec struct {
	Reason  *text `json:"reason"`
	Message *text `json:"message"`
}
