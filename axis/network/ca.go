package network

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
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
