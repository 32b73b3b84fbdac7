package gvr

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// Protobuf is read of API servers of these minor versions of Kubernetes 1. What an API server leaves out of JSON, and where
// it has null, follows from the tags of its Go types; what Rectifier makes of protobuf, from the tags of ours, and no object
// shows a difference. Of these versions the tags of stable APIs were compared: they say the same. Version 1.33 and older have
// a null creationTimestamp in each template, 1.34 has a null list in ResourceSlices. What newer ones will have is not known.
const (
	oldestProtobuf = 35
	newestProtobuf = 37 // that of k8s.io/api in go.mod
)

// An API server is upgraded beneath a process that runs on. So its version counts for a short time; watches, which need
// it, are opened every few minutes.
const (
	versionCounts  = 5 * time.Second
	versionTimeout = 5 * time.Second
)

// serverVersion tells whether protobuf may be read of the API server. It is safe for concurrent use.
type serverVersion struct {
	client rest.Interface

	mu    sync.Mutex
	asked time.Time
	known bool // that its JSON says what we make of protobuf
}

// readsProtobuf asks the server for its version, if it has not told it just now. Without an answer it is false, for this
// once: a server that is starting must not have its resources read as JSON until their watches end.
func (s *serverVersion) readsProtobuf(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked.IsZero() && time.Since(s.asked) < versionCounts {
		return s.known
	}
	ctx, cancel := context.WithTimeout(silent(ctx), versionTimeout)
	defer cancel()
	text, err := s.client.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) {
		return false
	}
	s.known, s.asked = err == nil && comparesInJSON(text), time.Now()
	return s.known
}

// comparesInJSON looks at what /version answers. An API server that emulates an older one encodes by its own types.
func comparesInJSON(text []byte) bool {
	var info apiversion.Info
	if err := json.Unmarshal(text, &info); err != nil {
		return false
	}
	v, err := version.ParseGeneric(info.GitVersion)
	return err == nil && v.Major() == 1 && v.Minor() >= oldestProtobuf && v.Minor() <= newestProtobuf
}
