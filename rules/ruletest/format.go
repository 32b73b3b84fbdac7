package ruletest

import (
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
)

// The shape of a RuleTest file: what may be written, before anything of it is
// read. Field names are the json tags; docs/testing.md explains each of them.

// Kind is the kind of a test document; its apiVersion is that of rules.
const Kind = "RuleTest"

// text is a string of the file that remembers where it stands.
type text struct {
	value string
	node  *yaml.Node
}

func (t *text) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if s, ok := d.String(n, path); ok {
		*t = text{s, n}
	}
}

// raw is a part of the file that is plain data: objects and patches.
type raw struct{ node *yaml.Node }

func (r *raw) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if d.NotNull(n, path) {
		r.node = n
	}
}

// place is embedded where what is missing has to be reported.
type place struct{ node *yaml.Node }

func (p *place) Locate(n *yaml.Node) { p.node = n }

type document struct {
	APIVersion text     `json:"apiVersion"`
	Kind       text     `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	place
	Name        text              `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type spec struct {
	place
	Rules     []text     `json:"rules"`
	CRDs      []text     `json:"crds"`
	Now       *text      `json:"now"`
	Namespace *text      `json:"namespace"`
	Context   []raw      `json:"context"`
	Cases     []caseSpec `json:"cases"`
}

type caseSpec struct {
	place
	Name       text        `json:"name"`
	Object     *raw        `json:"object"`
	ObjectFile *text       `json:"objectFile"`
	ObjectName *text       `json:"objectName"`
	Expect     *expectSpec `json:"expect"`
}

type expectSpec struct {
	place
	Outcome     text       `json:"outcome"`
	Rules       *[]text    `json:"rules"`
	Object      *raw       `json:"object"`
	ExactObject *raw       `json:"exactObject"`
	Patch       *raw       `json:"patch"`
	Error       *text      `json:"error"`
	Event       *eventSpec `json:"event"`
}

type eventSpec struct {
	place
	Reason  *text `json:"reason"`
	Message *text `json:"message"`
}
