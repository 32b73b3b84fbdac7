package endpoints

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// crowd is a listener that holds a number of connections at once. One more takes
// the place of the one that has been waiting for its next request for longest, or
// has not sent its first: so clients that say nothing keep nobody waiting, least
// of all the kubelet with its probe. If all are being answered, the new one is
// closed.
type crowd struct {
	net.Listener
	max int

	mu     sync.Mutex
	guests []*guest // in the order in which they came, or were last answered
}

// guest is a connection of a crowd.
type guest struct {
	net.Conn
	of *crowd

	// The crowd guards these.
	busy int  // requests that are being answered
	gone bool // it had to give way, or has been closed
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g, ok := c.admit(conn); ok {
			return g, nil
		}
		_ = conn.Close()
	}
}

func (c *crowd) admit(conn net.Conn) (*guest, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.guests) >= c.max {
		i := slices.IndexFunc(c.guests, func(g *guest) bool { return g.busy == 0 })
		if i < 0 {
			return nil, false
		}
		c.guests[i].gone = true
		_ = c.guests[i].Conn.Close() // the server notices, and closes the guest
		c.guests = slices.Delete(c.guests, i, i+1)
	}
	g := &guest{Conn: conn, of: c}
	c.guests = append(c.guests, g)
	return g, true
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.of.leave(g)
	return g.Conn.Close()
}

func (c *crowd) leave(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.gone = true
	c.remove(g)
}

func (c *crowd) remove(g *guest) {
	if i := slices.Index(c.guests, g); i >= 0 {
		c.guests = slices.Delete(c.guests, i, i+1)
	}
}

// begin and end stand around the answer to a request. One whose connection had
// to give way while it was read is not answered: begin reports false.
func (g *guest) begin() bool {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	if g.gone {
		return false
	}
	g.busy++
	return true
}

func (g *guest) end() {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	if g.busy--; !g.gone { // it has been answered last
		g.of.remove(g)
		g.of.guests = append(g.of.guests, g)
	}
}

type guestKey struct{}

// withGuest is for http.Server.ConnContext.
func withGuest(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return context.WithValue(ctx, guestKey{}, conn)
}

// counted tells the crowd that a connection is being answered.
func counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
			if !g.begin() {
				panic(http.ErrAbortHandler)
			}
			defer g.end()
		}
		next.ServeHTTP(w, r)
	})
}
