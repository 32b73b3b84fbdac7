package main

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// The counter passes on what both sides send, to the last byte, and counts it.
func TestCounter(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	question, answer := bytes.Repeat([]byte("?"), 1_000), bytes.Repeat([]byte("!"), 3_000_000)
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return // the test has ended
		}
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, len(question))); err == nil {
			_, _ = conn.Write(answer)
		}
	}()
	c, err := startCounter("https://" + server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", c.address())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(question); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, answer) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(answer), err)
	}
	_ = conn.Close()
	c.stop()
	if c.up.Load() != int64(len(question)) || c.down.Load() != int64(len(answer)) {
		t.Errorf("counted %d and %d bytes", c.up.Load(), c.down.Load())
	}
}
