package network

import (
	"bytes"
	"io"
	"os"
	"slices"
)

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

// Bundle returns the system's trusted roots and the authority's own certificate, as PEM. The system's are those of
// SSL_CERT_FILE, else of the first of BundlePaths that can be read; a system without any leaves the authority alone,
// which suffices for all but passthrough.
func (ca *CA) Bundle() []byte {
	roots := systemRoots()
	if len(roots) > 0 && !bytes.HasSuffix(roots, []byte("\n")) {
		roots = append(roots, '\n')
	}
	return append(roots, ca.PEM()...)
}

func systemRoots() []byte {
	paths := bundlePaths
	if own := os.Getenv("SSL_CERT_FILE"); own != "" {
		paths = append([]string{own}, paths...)
	}
	for _, path := range paths {
		if b := readRoots(path); len(b) > 0 {
			return b
		}
	}
	return nil
}

// readRoots returns the file, or nil where it cannot be read or is no bundle by its size.
func readRoots(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var size int64
	if info, err := f.Stat(); err == nil {
		size = min(info.Size(), maxBundle)
	}
	const ours = 4 << 10 // room for what Bundle appends
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead+ours))
	if _, err := b.ReadFrom(io.LimitReader(f, maxBundle+1)); err != nil || b.Len() > maxBundle {
		return nil
	}
	return b.Bytes()
}
