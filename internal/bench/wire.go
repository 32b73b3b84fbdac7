package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/clientcmd"
)

// Measures of what goes over the network, TLS and HTTP/2 included.
func wireOfSync(objects string) measure {
	return sized("bytes from kube-apiserver to sync", objects, megabytes)
}

var (
	wireOfUpdate = measure{"bytes from kube-apiserver per irrelevant update (status)", kilobytes}
	wireUp       = measure{"bytes to kube-apiserver per irrelevant update (status)", kilobytes}
)

// wire counts what contenders receive to read all objects, and then for each update.
func (s *suite) wire(ctx context.Context) error {
	counted, err := startCounter(s.plane.AdminConfig().Host)
	if err != nil {
		return err
	}
	defer counted.stop()
	kubeconfig, err := s.plane.kubeconfigVia(counted.address(), s.dir)
	if err != nil {
		return err
	}
	contenders := []contender{s.ours(), s.typedJSON(), s.typedProtobuf(), s.dynamic(deploymentsResource)}
	return s.takeTurns(ctx, s.few(), contenders, func(ctx context.Context, c contender) error {
		c.kubeconfig = kubeconfig
		before := counted.down.Load()
		_, err := s.whileIdle(ctx, c, func(ctx context.Context, p *process) error {
			down, up := counted.down.Load(), counted.up.Load()
			s.add(wireOfSync(objects(s.plane.seeded, s.plane.size)), c.name, toMegabytes(float64(down-before)))
			l := s.steady(s.plane.heartbeat)
			l.count = min(l.count, l.pace) // a second is enough: bytes hardly differ
			if err := s.writeAll(ctx, l); err != nil {
				return err
			}
			if err := p.rest(ctx); err != nil {
				return err
			}
			s.add(wireOfUpdate, c.name, float64(counted.down.Load()-down)/float64(l.count)/1e3)
			s.add(wireUp, c.name, float64(counted.up.Load()-up)/float64(l.count)/1e3)
			return nil
		})
		return err
	})
}

// kubeconfigVia writes a kubeconfig for the API server at another address. The
// certificate is for the host, which is the same.
func (p *plane) kubeconfigVia(address, dir string) (path string, err error) {
	config, err := clientcmd.LoadFromFile(p.KubeconfigFile())
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + address
	}
	path = filepath.Join(dir, "kubeconfig-via")
	return path, clientcmd.WriteToFile(*config, path)
}

// counter is a proxy that copies bytes and counts them. It understands none.
type counter struct {
	listener net.Listener
	target   string       // host:port
	down, up atomic.Int64 // bytes from the target, and to it
	open     sync.WaitGroup
}

// startCounter listens on loopback for connections to the server at a URL. The
// caller calls stop.
func startCounter(server string) (*counter, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	c := &counter{listener: listener, target: target.Host}
	c.open.Go(c.accept)
	return c, nil
}

func (c *counter) address() string { return c.listener.Addr().String() }

// stop ends when all connections have.
func (c *counter) stop() {
	_ = c.listener.Close()
	c.open.Wait()
}

func (c *counter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return // stopped
		}
		c.open.Go(func() { c.serve(client) })
	}
}

// serve copies in both directions until either side ends the connection.
func (c *counter) serve(client net.Conn) {
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		_ = client.Close()
		return // as if it had been refused
	}
	var both sync.WaitGroup
	copyTo := func(to, from net.Conn, count *atomic.Int64) {
		_, _ = io.Copy(countingWriter{to, count}, from) // it ends with the connection
		_, _ = to.Close(), from.Close()
	}
	both.Go(func() { copyTo(client, server, &c.down) })
	both.Go(func() { copyTo(server, client, &c.up) })
	both.Wait()
}

// countingWriter counts what has been written.
type countingWriter struct {
	io.Writer
	count *atomic.Int64
}

func (w countingWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.count.Add(int64(n))
	return n, err
}
