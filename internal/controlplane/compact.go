package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// CompactEtcd makes etcd forget all versions but the current ones, as it happens
// every five minutes in a cluster: lists and watches from an older resourceVersion
// are refused with 410 (Expired) from now on, unless the API server has the
// versions in its watch cache.
func (c *ControlPlane) CompactEtcd(ctx context.Context) error {
	var newest struct {
		Header struct{ Revision string }
	}
	if err := c.askEtcd(ctx, "kv/range", `{"key": "AA==", "count_only": true}`, &newest); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	request := fmt.Sprintf(`{"revision": %q, "physical": true}`, newest.Header.Revision)
	if err := c.askEtcd(ctx, "kv/compaction", request, &struct{}{}); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	return nil
}

// askEtcd calls a method of etcd's API through its JSON gateway.
func (c *ControlPlane) askEtcd(ctx context.Context, method, body string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.plane.Etcd.URL.JoinPath("v3", method).String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: the answer is %s", method, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
