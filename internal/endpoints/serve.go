package endpoints

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// What a client may take, at most. Whoever asks slowly is cut off.
const (
	headerTimeout = 5 * time.Second  // until the request is there, and for a TLS handshake
	readTimeout   = 10 * time.Second // bodies are not read
	writeTimeout  = 30 * time.Second // to evaluate a request, and to take the answer
	idleTimeout   = time.Minute      // between requests: more than a scrape interval
	maxHeader     = 16 << 10         // bytes; tokens have a few thousand
	// maxConnections are those of a listener at once: see crowd.
	maxConnections = 100
	// maxStreams are the requests at once on a connection of HTTP/2. Streams that
	// are reset at once (CVE-2023-44487) do not get beyond it: net/http counts
	// them until their handler has returned, and closes a connection on which too
	// many wait.
	maxStreams = 20
	// closeGrace is how long requests that are under way may take in the end.
	closeGrace = 3 * time.Second
)

// Serve answers requests until ctx ends, and then lets those that are under way
// finish. It closes the listener. TLS, with HTTP/1.1 and 2, is used if there is a
// configuration for it.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, config *tls.Config) error {
	return serve(ctx, listener, newServer(klog.FromContext(ctx), handler, config))
}

func newServer(logger klog.Logger, handler http.Handler, config *tls.Config) *http.Server {
	return &http.Server{
		Handler:           counted(contained(logger, handler)),
		ConnContext:       withGuest,
		TLSConfig:         config.Clone(), // the server adds to it, and others may share it
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          log.New(connectionLog{logger}, "", 0),
	}
}

func serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	listener = &crowd{Listener: listener, max: maxConnections}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	var err error
	if server.TLSConfig != nil {
		err = server.ServeTLS(listener, "", "") // its certificate is in the configuration
	} else {
		err = server.Serve(listener)
	}
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	<-closed
	return nil
}

// connectionLog takes what net/http has to say of connections, such as failed
// handshakes: anybody can cause as many of those as they like.
type connectionLog struct{ logger klog.Logger }

func (l connectionLog) Write(p []byte) (int, error) {
	l.logger.V(2).Info("A connection failed", "reason", strings.TrimSpace(string(p)))
	return len(p), nil
}

// contained makes a panic an error of its request. What it was about is not
// logged, for that may hold anything.
func contained(logger klog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p) // it is meant for net/http
			default:
				logger.Error(nil, "Panic while a request was answered", "path", r.URL.Path, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
				answer(w, http.StatusInternalServerError, "this failed; the log tells more")
			}
		}()
		next.ServeHTTP(w, r)
	})
}
