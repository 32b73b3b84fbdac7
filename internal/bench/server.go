package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Measures of kube-apiserver while statuses are updated. What it needs to send an
// update is far less than what it needs to write it: so it sends each to many.
var (
	serverOfUpdate = measure{"CPU of kube-apiserver per update (status) that nobody watches", microseconds}
	serverOfWatch  = map[string]measure{
		"JSON":     {"CPU of kube-apiserver to send an update (status) to one watch more, JSON", microseconds},
		"protobuf": {"CPU of kube-apiserver to send an update (status) to one watch more, protobuf", microseconds},
	}
)

// watchers is how many watch at once.
const watchers = 20

// nobody is what there is instead of them, to compare with.
const nobody = "nobody"

// accepts are how watchers want what they get, by the name of the format; nobody
// wants nothing.
var accepts = map[string]string{
	nobody:     "",
	"JSON":     "application/json",
	"protobuf": "application/vnd.kubernetes.protobuf;stream=watch",
}

// server measures what an update costs the API server, and what each watch adds.
func (s *suite) server(ctx context.Context) error {
	formats := []contender{{name: nobody}, {name: "JSON"}, {name: "protobuf"}}
	costs := map[string][]float64{}
	err := s.takeTurns(ctx, s.few(), formats, func(ctx context.Context, format contender) error {
		stop, err := s.plane.watchMany(ctx, accepts[format.name])
		if err != nil {
			return err
		}
		defer stop()
		cost, err := s.updates(ctx, nil, 0, s.steady(s.plane.heartbeat))
		costs[format.name] = append(costs[format.name], toMicroseconds(cost.server))
		return err
	})
	if err != nil {
		return err
	}
	s.add(serverOfUpdate, apiServer, costs[nobody]...)
	for _, format := range formats[1:] {
		for round, cost := range costs[format.name] {
			s.add(serverOfWatch[format.name], apiServer, (cost-costs[nobody][round])/watchers)
		}
	}
	return nil
}

// watchMany opens watches of all Deployments, each with a connection of its own as
// programs have, and throws away what comes. The caller calls stop. A format of ""
// is no watch.
func (p *plane) watchMany(ctx context.Context, accept string) (stop func(), err error) {
	ctx, stop = context.WithCancel(ctx)
	if accept == "" {
		return stop, nil
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	now, err := p.client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return stop, fmt.Errorf("list Deployments: %w", err)
	}
	url := strings.TrimSuffix(p.AdminConfig().Host, "/") + "/apis/apps/v1/deployments?watch=true&resourceVersion=" + now.ResourceVersion
	for range watchers {
		if err := p.watchOnce(ctx, url, accept); err != nil {
			return stop, err
		}
	}
	return stop, nil
}

// watchOnce returns when the API server has begun to answer. The watch ends with ctx.
func (p *plane) watchOnce(ctx context.Context, url, accept string) error {
	tls, err := rest.TLSConfigFor(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", "gzip") // set here, nobody unpacks it
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("watch Deployments: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return fmt.Errorf("watch Deployments: %s", response.Status)
	}
	go func() {
		_, _ = io.Copy(io.Discard, response.Body) // it ends with the watch
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	}()
	return nil
}
