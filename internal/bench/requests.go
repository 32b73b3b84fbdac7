package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// request is a kind of request about a resource.
type request struct{ verb, resource string } // PATCH, deployments/scale

// requestTotal is a line of the API server's metrics.
var (
	requestTotal = []byte("apiserver_request_total{")
	label        = regexp.MustCompile(`(verb|resource|subresource)="([^"]*)"`)
)

// requests returns how many requests of each kind the API server has answered. A
// watch counts when it has ended.
func (p *plane) requests(ctx context.Context) (map[request]int, error) {
	metrics, err := p.client.RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	counts := map[request]int{}
	for line := range bytes.Lines(metrics) {
		if !bytes.HasPrefix(line, requestTotal) {
			continue
		}
		labels := map[string]string{}
		for _, m := range label.FindAllSubmatch(line, -1) {
			labels[string(m[1])] = string(m[2])
		}
		fields := strings.Fields(string(line))
		n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return nil, fmt.Errorf("read the metrics of the API server: %w", err)
		}
		counts[request{labels["verb"], strings.TrimSuffix(labels["resource"]+"/"+labels["subresource"], "/")}] += int(n)
	}
	return counts, nil
}

// since returns what has come since an earlier count.
func since(before, after map[request]int) map[request]int {
	difference := map[request]int{}
	for r, n := range after {
		if n -= before[r]; n != 0 && r.resource != "" {
			difference[r] = n
		}
	}
	return difference
}

// of counts the requests about one resource with its subresources; verb "" is all.
func of(counts map[request]int, verb, resource string) (n int) {
	for r, c := range counts {
		if (r.resource == resource || strings.HasPrefix(r.resource, resource+"/")) && (verb == "" || r.verb == verb) {
			n += c
		}
	}
	return n
}
