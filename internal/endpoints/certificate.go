package endpoints

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// checkInterval is how often, at most, it is looked whether there is another
// certificate.
const checkInterval = 10 * time.Second

// CertificateFiles makes a TLS configuration of a certificate and its key in PEM
// files, which must be there. When the files change, as in a mounted Secret, new
// connections get the new certificate within seconds. One that cannot be read is
// told of, and the last good one stays.
func CertificateFiles(certFile, keyFile string, logger klog.Logger) (*tls.Config, error) {
	c := &certificateFiles{certFile: certFile, keyFile: keyFile, logger: logger, now: time.Now}
	if err := c.load(); err != nil {
		return nil, err
	}
	c.checked = c.now()
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

// SelfSigned makes a TLS configuration with a new certificate for a host, which
// nobody vouches for: what is sent is encrypted, but clients cannot tell to whom.
func SelfSigned(host string) (*tls.Config, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, []string{"localhost"})
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, nil
}

// certificateFiles is a certificate that is read anew at a handshake, now and
// then: there is nothing to be told of while nobody connects.
type certificateFiles struct {
	certFile, keyFile string
	logger            klog.Logger
	now               func() time.Time

	mu      sync.Mutex
	checked time.Time
	text    []byte // of both files, as last read
	pair    *tls.Certificate
}

func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.checked) >= checkInterval {
		c.checked = now
		if err := c.load(); err != nil {
			c.logger.Error(err, "The certificate could not be read anew; the one before stays in use", "file", c.certFile)
		}
	}
	return c.pair, nil
}

// load reads the files. Between the writing of the two they may not fit together:
// that is an error now, and none later.
func (c *certificateFiles) load() error {
	certPEM, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate's key: %w", err)
	}
	text := bytes.Join([][]byte{certPEM, keyPEM}, []byte{0})
	if c.pair != nil && bytes.Equal(text, c.text) {
		return nil
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("use %s and %s: %w", c.certFile, c.keyFile, err)
	}
	if c.pair != nil {
		c.logger.Info("The certificate has been renewed", "file", c.certFile, "until", pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	c.pair, c.text = &pair, text
	return nil
}
