package gvr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
)

// world is what is known about the resources of the cluster. It has no lock: Manager.mu guards it.
type world struct {
	// discovered is the newest result of discovery, nil until the first one; discoveryError is why the newest
	// attempt failed, "" if it did not.
	discovered     *snapshot
	discoveryError string
	// discoveryRefused says that the newest attempt was refused: by who asks, not by what happens.
	discoveryRefused bool

	// crds is what the CRD watch has shown. crdsLive says that the watch works, so that crds is complete and current.
	crds     map[schema.GroupResource]crd
	crdsLive bool
	// deleted remembers for a while which CRDs the watch saw go, since discovery still lists them for a moment.
	deleted map[schema.GroupResource]time.Time
}

// notAnswered is the reason before the first answer of discovery.
const notAnswered = "discovery has not answered yet"

// deletedGrace is longer than discovery may lag behind the deletion of a CRD.
const deletedGrace = 30 * time.Second

type presence int

const (
	unknown presence = iota // neither start nor stop an informer
	absent
	present
)

// verdict is the answer to: is this resource served?
type verdict struct {
	presence presence
	info     Info      // if present
	uid      types.UID // of the CRD; "" if there is none or it may not be read
	reason   string    // if not present
}

// resolve decides about one resource.
func (w *world) resolve(gvr schema.GroupVersionResource, now time.Time) verdict {
	definition, isCRD := w.crds[gvr.GroupResource()]
	if w.crdsLive {
		if isCRD {
			return definition.verdict(gvr.Version)
		}
		if at, ok := w.deleted[gvr.GroupResource()]; ok && now.Sub(at) < deletedGrace {
			return verdict{presence: absent, reason: "its CRD was deleted"}
		}
	}
	if w.discovered == nil {
		reason := notAnswered
		if w.discoveryError != "" {
			reason = "discovery: " + w.discoveryError
		}
		return verdict{reason: reason}
	}
	found, ok := w.discovered.resources[gvr]
	if !ok {
		return w.discovered.missing(gvr)
	}
	if !found.watchable {
		return verdict{presence: absent, reason: "served, but it can not be listed and watched"}
	}
	v := verdict{presence: present, info: found.info}
	if isCRD {
		v.uid = definition.uid
		if fromCRD, ok := definition.info(gvr.Version); ok {
			v.info.ReplicasPath, v.info.Preferred = fromCRD.ReplicasPath, fromCRD.Preferred
		}
	}
	return v
}

func (c *crd) verdict(version string) verdict {
	info, served := c.info(version)
	switch {
	case !c.established:
		return verdict{presence: absent, reason: "its CRD is not established yet"}
	case !served:
		return verdict{presence: absent, reason: versionNotServed(c.servedVersions())}
	default:
		return verdict{presence: present, info: info, uid: c.uid}
	}
}

// preferredVersion is the one that the API server prefers: the newest stable one. It is empty if there is none.
func preferredVersion(versions []string) string {
	if len(versions) == 0 {
		return ""
	}
	return slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings)
}

func versionNotServed(available []string) string {
	slices.SortFunc(available, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return fmt.Sprintf("version not served (available: %s)", strings.Join(available, ", "))
}

// snapshot is one result of discovery. It is immutable.
type snapshot struct {
	resources map[schema.GroupVersionResource]discoveredResource
	// failed are the group versions that could not be asked; what they served before is still in resources.
	failed map[schema.GroupVersion]bool
}

type discoveredResource struct {
	info      Info
	watchable bool
	// doubtful: the newest discovery did not list it. Once can be an API server that has just started, with its
	// CRDs not read yet; twice in a row is believed.
	doubtful bool
}

func (s *snapshot) missing(gvr schema.GroupVersionResource) verdict {
	if s.failed[gvr.GroupVersion()] {
		return verdict{reason: fmt.Sprintf("discovery of %s failed", gvr.GroupVersion())}
	}
	var available []string
	for other := range s.resources {
		if other.GroupResource() == gvr.GroupResource() {
			available = append(available, other.Version)
		}
	}
	if len(available) > 0 {
		return verdict{presence: absent, reason: versionNotServed(available)}
	}
	return verdict{presence: absent, reason: "not served by the cluster"}
}

// newSnapshot reads the answer of discovery. previous may be nil.
func newSnapshot(lists []*metav1.APIResourceList, failed map[schema.GroupVersion]bool, previous *snapshot) *snapshot {
	s := &snapshot{resources: map[schema.GroupVersionResource]discoveredResource{}, failed: failed}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // no rule can name it either
		}
		s.add(gv, list.APIResources)
	}
	if previous != nil {
		s.keep(previous)
	}
	s.prefer()
	return s
}

// keep takes over what an earlier look has found, and this one may only have missed.
func (s *snapshot) keep(previous *snapshot) {
	for gvr, old := range previous.resources {
		if _, ok := s.resources[gvr]; ok {
			continue
		}
		if s.failed[gvr.GroupVersion()] {
			s.resources[gvr] = old
		} else if !old.doubtful {
			old.doubtful = true
			s.resources[gvr] = old
		}
	}
}

// prefer fills in which version of a resource is preferred.
func (s *snapshot) prefer() {
	versions := map[schema.GroupResource][]string{}
	for gvr := range s.resources {
		versions[gvr.GroupResource()] = append(versions[gvr.GroupResource()], gvr.Version)
	}
	for gvr, r := range s.resources {
		r.info.Preferred = ""
		_, isBuiltin := builtinKinds[schema.GroupKind{Group: gvr.Group, Kind: r.info.Kind}]
		if preferred := preferredVersion(versions[gvr.GroupResource()]); preferred != gvr.Version && !isBuiltin {
			r.info.Preferred = preferred
		}
		s.resources[gvr] = r
	}
}

func (s *snapshot) add(gv schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		gvr := gv.WithResource(r.Name)
		s.resources[gvr] = discoveredResource{
			info:      Info{Resource: gvr, Kind: r.Kind, Namespaced: r.Namespaced, ReplicasPath: builtinReplicasPath(gvr.GroupResource())},
			watchable: slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch"),
		}
	}
	for _, r := range resources {
		name, subresource, _ := strings.Cut(r.Name, "/")
		found, ok := s.resources[gv.WithResource(name)]
		if !ok {
			continue
		}
		switch subresource {
		case "status":
			found.info.HasStatus = true
		case "scale":
			found.info.HasScale = true
		}
		s.resources[gv.WithResource(name)] = found
	}
}

// doubtful says whether a second look at discovery is needed soon.
func (s *snapshot) doubtful() bool {
	for _, r := range s.resources {
		if r.doubtful {
			return true
		}
	}
	return false
}
