package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// auditPolicy records each request once, when it is complete. The API server's
// own requests and probes are left out: no test counts them.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- level: None
  users: ["system:apiserver"]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]
- level: Metadata
  verbs: [get, list, watch]
- level: RequestResponse
`

// AuditEvent is one request, as the API server saw it (audit.k8s.io/v1).
type AuditEvent struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"` // always ResponseComplete: a watch appears when it ends
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"` // get, list, watch, create, update, patch, delete, deletecollection
	User       struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	// ObjectRef has no name in a list or a create with generateName, and is
	// zero for requests that are about no resource.
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code   int32  `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`
	// RequestObject and ResponseObject are there for writes only.
	RequestObject            json.RawMessage `json:"requestObject"`
	ResponseObject           json.RawMessage `json:"responseObject"`
	RequestReceivedTimestamp time.Time       `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time       `json:"stageTimestamp"`
}

// AuditLog returns the path of the audit log, one JSON object a line. It has
// no content without Options.Audit.
func (c *ControlPlane) AuditLog() string { return c.path("audit.log") }

// AuditEvents returns the requests so far that match accepts (all where it is
// nil), in the order of their completion. A request is logged just after its
// client has the answer: poll for the events that must be there. To be sure
// that none is missing, make a request of your own afterwards and wait for that.
//
// The log is read on from where the last call ended: what it holds is kept, and
// must not be modified.
func (c *ControlPlane) AuditEvents(match func(*AuditEvent) bool) ([]AuditEvent, error) {
	all, err := c.audit.read(c.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	var events []AuditEvent
	for i := range all {
		if match == nil || match(&all[i]) {
			events = append(events, all[i])
		}
	}
	return events, nil
}

// auditReader reads a log that grows.
type auditReader struct {
	mu     sync.Mutex
	offset int64 // of the first line that has not been read
	events []AuditEvent
}

// read returns all events so far.
func (r *auditReader) read(path string) ([]AuditEvent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(r.offset, io.SeekStart); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		r.events = append(r.events, event)
		r.offset += int64(len(line))
	}
	return r.events, nil
}
