package network

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// maxLeaves bounds the cache of minted certificates. A run rarely speaks to more than a few dozen hosts.
const maxLeaves = 1024

// maxCommonName is the longest common name of a certificate, in bytes (RFC 5280, ub-common-name).
const maxCommonName = 64

// The validity of every certificate. It begins long ago because a program's clock may be virtual.
var (
	notBefore = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2099, 12, 31, 23, 59, 59, 0, time.UTC)
)

// A CA is the certificate authority of one run. It exists in memory only; its key is never written.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // shared by all leaves: a key each would cost time and protect nothing

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// NewCA makes an authority with fresh P-256 keys.
func NewCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the run's CA: %w", err)
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the run's CA: %w", err)
	}
	cert, err := selfSigned(key)
	if err != nil {
		return nil, fmt.Errorf("make the run's CA: %w", err)
	}
	return &CA{cert: cert, key: key, leaf: leaf, leaves: make(map[string]*tls.Certificate)}, nil
}

func selfSigned(key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "Tapedeck recorder of this run", Organization: []string{"Tapedeck"}},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// serial returns a positive random number of at most 127 bits.
func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b[:])
}

// PEM returns the authority's certificate.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

// Certificate returns the certificate of one host, a name or a literal IP address, minted on the first call. The error
// is that of a name that no certificate can hold.
func (ca *CA) Certificate(host string) (*tls.Certificate, error) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if c := ca.leaves[host]; c != nil {
		return c, nil
	}
	c, err := ca.mint(host)
	if err != nil {
		return nil, fmt.Errorf("certificate for %q: %w", host, err)
	}
	if len(ca.leaves) >= maxLeaves {
		clear(ca.leaves)
	}
	ca.leaves[host] = c
	return c, nil
}

func (ca *CA) mint(host string) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: serial(),
		NotBefore:    notBefore,
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if len(host) <= maxCommonName {
		template.Subject = pkix.Name{CommonName: host}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, ca.leaf.Public(), ca.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, ca.cert.Raw}, PrivateKey: ca.leaf}, nil
}

// maxBundle bounds the system's file of roots, in bytes. Real ones have about a quarter of a megabyte.
const maxBundle = 16 << 20

// bundlePaths are the files in which systems keep their trusted roots.
var bundlePaths = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch, Alpine
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL 6
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL 7 and newer
	"/etc/ssl/cert.pem",                                 // Alpine, BSD, macOS
}

// bundleVars are the variables by which runtimes and tools take a file of roots in place of the system's.
// NODE_EXTRA_CA_CERTS and DENO_CERT add to theirs.
var bundleVars = []string{
	"SSL_CERT_FILE",                         // OpenSSL, Go, Rust's native roots, uv
	"NODE_EXTRA_CA_CERTS",                   // Node, Bun, Electron
	"REQUESTS_CA_BUNDLE",                    // Python requests
	"CURL_CA_BUNDLE",                        // curl, requests
	"GIT_SSL_CAINFO",                        // git
	"AWS_CA_BUNDLE",                         // botocore, AWS CLI and SDKs
	"DENO_CERT",                             // Deno
	"PIP_CERT",                              // pip
	"CARGO_HTTP_CAINFO",                     // cargo
	"CODEX_CA_CERTIFICATE",                  // codex
	"HTTPLIB2_CA_CERTS",                     // Python httplib2
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",      // gRPC
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",    // gcloud
	"NIX_SSL_CERT_FILE",                     // Nix
	"BUNDLE_SSL_CA_CERT",                    // Ruby's bundler
	"PERL_LWP_SSL_CA_FILE", "HTTPS_CA_FILE", // Perl
}

// BundlePaths returns the files in which systems keep their trusted roots. Where one exists inside a jail, a bundle is
// bound over it: some runtimes look nowhere else.
func BundlePaths() []string { return slices.Clone(bundlePaths) }

// Env returns the environment, "NAME=value", that makes programs trust the roots in the file at bundlePath. Java keeps
// its roots in a store of its own and is not covered.
func Env(bundlePath string) []string {
	env := make([]string, len(bundleVars))
	for i, name := range bundleVars {
		env[i] = name + "=" + bundlePath
	}
	return env
}

// Bundle returns what Roots has, and behind it the authority's own certificate, as PEM.
func (ca *CA) Bundle() []byte {
	var roots []byte
	if f := Roots(); f != nil {
		defer f.Close()
		roots, _ = io.ReadAll(io.NewSectionReader(f, 0, maxBundle)) // the authority alone suffices for most
	}
	return append(roots, ca.BehindRoots()...)
}

// BehindRoots is the authority's own certificate, as PEM that may stand behind others.
func (ca *CA) BehindRoots() []byte { return append([]byte("\n"), ca.PEM()...) }

// Roots opens the system's trusted roots: those of SSL_CERT_FILE, else the first of BundlePaths that can be read and is a bundle by its
// size; nil for none: a system without any leaves the authority alone, which suffices for all but passthrough.
func Roots() *os.File {
	paths := bundlePaths
	if own := os.Getenv("SSL_CERT_FILE"); own != "" {
		paths = append([]string{own}, paths...)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() { // a shell's <(…): it is read at places
			if f, err = spooled(f); err == nil {
				info, err = f.Stat()
			}
		}
		if err == nil && info.Size() > 0 && info.Size() <= maxBundle {
			return f
		}
		f.Close()
	}
	return nil
}

// spooled is a file of what can be read from f, which it closes. No name leads to it.
func spooled(f *os.File) (*os.File, error) {
	defer f.Close()
	to, err := os.CreateTemp("", "tapedeck-roots-")
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(to, io.LimitReader(f, maxBundle+1))
	return to, errors.Join(err, os.Remove(to.Name()))
}
