package network

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newCA(t testing.TB) *CA {
	t.Helper()
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestCertificates(t *testing.T) {
	ca := newCA(t)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("the CA's PEM holds no certificate")
	}
	long := strings.Repeat("label.", 20) + "example.com" // beyond what a common name takes
	for _, host := range []string{"api.example.com", "a_b.example.com", "203.0.113.9", "2001:db8::1", long} {
		for _, now := range []time.Time{time.Unix(1_000_000_000, 0), time.Now(), time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)} {
			c, err := ca.Certificate(host)
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(c.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: now}); err != nil {
				t.Errorf("%s at %v: %v", host, now, err)
			}
		}
	}
}

func TestCertificateIsCachedWithinBounds(t *testing.T) {
	ca := newCA(t)
	a, _ := ca.Certificate("a.example")
	b, _ := ca.Certificate("a.example")
	if a != b {
		t.Error("the same host got two certificates")
	}
	for i := range maxLeaves + 10 {
		if _, err := ca.Certificate(strings.Repeat("x", i%60+1) + ".example"); err != nil {
			t.Fatal(err)
		}
	}
	if len(ca.leaves) > maxLeaves {
		t.Errorf("the cache holds %d certificates", len(ca.leaves))
	}
}

func TestCertificateForImpossibleName(t *testing.T) {
	if _, err := newCA(t).Certificate("nämé\x00"); err == nil {
		t.Error("a name that no certificate can hold got one")
	}
}

func TestBundle(t *testing.T) {
	ca := newCA(t)
	path := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(path, bytes.TrimSpace(newCA(t).PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", path)
	b := ca.Bundle()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b)
	if n := bytes.Count(b, []byte("-----BEGIN CERTIFICATE-----\n")); n != 2 || !bytes.HasSuffix(b, ca.PEM()) {
		t.Errorf("the bundle has %d certificates, want the system's and our own behind it", n)
	}
	for _, entry := range Env("/x/ca.pem") {
		if name, value, _ := strings.Cut(entry, "="); name == "" || value != "/x/ca.pem" {
			t.Errorf("bad entry %q", entry)
		}
	}
}
