package engine

import "github.com/rectifier-dev/rectifier/rules"

// Results of PATCH requests that are no class of their errors.
const (
	patchSuccess     = "success"
	patchIneffective = "ineffective" // accepted, but not all of it was kept
	patchDenied      = "denied"      // by admission
	patchInvalid     = "invalid"     // the object, or the request, as it is
)

// patchResult is what an error of a request is counted as.
func patchResult(f failure) string {
	switch {
	case f.class == refused && f.passing:
		return patchDenied
	case f.class == refused:
		return patchInvalid
	}
	return string(f.class)
}

// countPatch counts a request that has been sent. What was not (its body could
// not be rendered, the rules have changed, the lease is lost, the engine stops)
// is none.
func (d *decision) countPatch(request *rules.Request, result string) {
	if d.sent {
		d.metrics.patches.WithLabelValues(d.key.Resource.String(), request.Subresource, result).Inc()
	}
}
