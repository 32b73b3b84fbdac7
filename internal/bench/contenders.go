package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rectifier is the real binary with the built-in rule and no limit of writes. At
// most half of its workers are on one resource, so that it has twice as many as
// the others have for theirs.
func (s *suite) rectifier(name string, args ...string) contender {
	args = append([]string{"run", "--qps=-1", "--profiling", fmt.Sprint("--workers=", 2*s.workers)}, args...)
	return contender{name: name, program: "rectifier", args: args}
}

func (s *suite) typed(name string, args ...string) contender {
	return contender{name: name, program: "typed", args: append([]string{fmt.Sprint("--workers=", s.workers)}, args...)}
}

func (s *suite) ours() contender          { return s.rectifier(ours) }
func (s *suite) typedJSON() contender     { return s.typed(typedJSON) }
func (s *suite) typedProtobuf() contender { return s.typed(typedProtobuf, "--protobuf") }

// readers are all who read all objects.
func (s *suite) readers() []contender {
	return append(s.plotted(),
		s.rectifier(oursWhole, "--full-objects"),
		contender{name: cacheAlone, program: "cache"},
		s.dynamic(deploymentsResource))
}

func (s *suite) dynamic(resource schema.GroupVersionResource) contender {
	return contender{name: plainDynamic, program: "dynamic", args: []string{
		fmt.Sprintf("--resource=%s.%s.%s", resource.Resource, resource.Version, resource.Group),
	}}
}

// plotted are those whose growth with the number of objects is shown.
func (s *suite) plotted() []contender {
	return []contender{s.ours(), s.typedJSON(), s.typedProtobuf()}
}
