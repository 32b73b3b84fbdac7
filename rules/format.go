package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
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

func (t *text) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if s, ok := d.String(n, path); ok {
		*t = text{s, n}
	}
}

// raw is a part of the file that is read by its own compiler: patches.
type raw struct{ node *yaml.Node }

func (r *raw) DecodeNode(_ *strictyaml.Decoder, n *yaml.Node, _ string) { r.node = n }

// place is embedded where what is missing has to be reported: the mapping
// itself. It is nil in a struct that the file does not hold.
type place struct{ node *yaml.Node }

func (p *place) Locate(n *yaml.Node) { p.node = n }

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
	Lookups      []lookup    `json:"lookups"`
	Variables    []variable  `json:"variables"`
	Condition    *text       `json:"condition"`
	Patch        *patchSpec  `json:"patch"`
	Patches      []patchSpec `json:"patches"`
	Event        eventSpec   `json:"event"`
	Mode         *text       `json:"mode"`
	RecheckAfter *text       `json:"recheckAfter"`
	OptOut       *text       `json:"optOut"`
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
	NamespaceSelector *selector `json:"namespaceSelector"`
	FieldSelector     *text     `json:"fieldSelector"`
	Deleting          bool      `json:"deleting"`
}

// selector is a metav1.LabelSelector with its position.
type selector struct {
	metav1.LabelSelector
	node   *yaml.Node
	broken bool // a part of it could not be read
}

func (s *selector) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path string) {
	s.node = n
	report := d.Report
	strict := *d
	strict.Report = func(at yamldoc.Position, msg string) {
		s.broken = true
		report(at, msg)
	}
	var body selectorBody
	strict.Decode(n, &body, path)
	s.LabelSelector = body.LabelSelector
}

type lookup struct {
	place
	Name          text      `json:"name"`
	Resource      *resource `json:"resource"`
	Namespace     *raw      `json:"namespace"`
	Where         *raw      `json:"where"`
	LabelSelector *raw      `json:"labelSelector"`
	Optional      bool      `json:"optional"`
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
	ApplyConfiguration *raw  `json:"applyConfiguration"`
	Strategic          *raw  `json:"strategic"`
}

type eventSpec struct {
	Reason  *text `json:"reason"`
	Message *text `json:"message"`
}
