package endpoints

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2/textlogger"
)

// mounted are the files of a Secret as the kubelet mounts them: links through a
// folder that is replaced as a whole.
type mounted struct {
	*testing.T
	dir string
	n   int
}

func (m *mounted) put(certPEM, keyPEM []byte) {
	m.Helper()
	m.n++
	data := filepath.Join(m.dir, "..data-"+string(rune('a'+m.n)))
	if err := os.Mkdir(data, 0o755); err != nil {
		m.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": certPEM, "tls.key": keyPEM} {
		if err := os.WriteFile(filepath.Join(data, name), text, 0o600); err != nil {
			m.Fatal(err)
		}
	}
	link := filepath.Join(m.dir, "..tmp")
	if err := os.Symlink(filepath.Base(data), link); err != nil {
		m.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(m.dir, "..data")); err != nil {
		m.Fatal(err)
	}
}

func certificateOf(t *testing.T, host string) (certPEM, keyPEM []byte) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, keyPEM
}

// A certificate that is renewed is in use soon, without a restart; one that cannot
// be used is not.
func TestCertificatesAreRenewed(t *testing.T) {
	m := &mounted{T: t, dir: t.TempDir()}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	first, firstKey := certificateOf(t, "first")
	second, secondKey := certificateOf(t, "second")
	m.put(first, firstKey)
	var log lockedBuffer
	c := &certificateFiles{
		certFile: filepath.Join(m.dir, "tls.crt"), keyFile: filepath.Join(m.dir, "tls.key"),
		logger: textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))),
	}
	now := time.Now()
	c.now = func() time.Time { return now }
	if err := c.load(); err != nil {
		t.Fatal(err)
	}
	c.checked = now
	s := start(t, text("hello"), &tls.Config{GetCertificate: c.get}, nil)
	shown := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return strings.Split(conn.ConnectionState().PeerCertificates[0].Subject.CommonName, "@")[0]
	}
	want := func(name string) {
		t.Helper()
		if got := shown(); got != name {
			t.Errorf("the certificate of %s is shown, not of %s", got, name)
		}
	}
	want("first")
	m.put(second, secondKey)
	want("first") // it is not looked at each handshake
	now = now.Add(checkInterval)
	want("second")
	m.put(first, secondKey)
	now = now.Add(checkInterval)
	want("second")
	if err := os.Remove(c.certFile); err != nil {
		t.Fatal(err)
	}
	now = now.Add(checkInterval)
	want("second")
	text := log.String()
	if strings.Count(text, "could not be read anew") != 2 || strings.Count(text, "has been renewed") != 1 || strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("the log: %s", text)
	}
}

func TestCertificatesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	logger := textlogger.NewLogger(textlogger.NewConfig())
	if _, err := CertificateFiles(certFile, keyFile, logger); err == nil || !strings.Contains(err.Error(), "read the certificate: open") {
		t.Errorf("no file: %v", err)
	}
	certPEM, keyPEM := certificateOf(t, "a")
	_, other := certificateOf(t, "b")
	for name, text := range map[string][]byte{certFile: certPEM, keyFile: other} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := CertificateFiles(certFile, keyFile, logger); err == nil || !strings.Contains(err.Error(), "private key does not match public key") {
		t.Errorf("another key: %v", err)
	}
	if err := os.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := CertificateFiles(certFile, keyFile, logger); err != nil {
		t.Error(err)
	}
}
