package network

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program finds a real client, or skips.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed here: %v", name, err)
	}
	return path
}

// caFile writes what a program is told to trust.
func caFile(t *testing.T, g *rig) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, g.srv.cfg.CA.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCurl records and replays curl, over HTTP/1.0, which it names in the TLS handshake, HTTP/1.1 and HTTP/2.
func TestCurl(t *testing.T) {
	curl := program(t, "curl")
	for _, version := range []string{"--http1.0", "--http1.1", "--http2"} {
		t.Run(version, func(t *testing.T) {
			run := func(g *rig) []byte {
				var stderr bytes.Buffer
				cmd := exec.Command(curl, "-sS", version, "-d", "body", "--compressed",
					"--connect-to", "api.example.com:443:"+g.real("api.example.com:443"), "https://api.example.com/curl")
				cmd.Env = append(os.Environ(), "CURL_CA_BUNDLE="+caFile(t, g), "HTTPS_PROXY=", "https_proxy=", "ALL_PROXY=", "all_proxy=")
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("curl: %v\n%s", err, stderr.Bytes())
				}
				return out
			}
			g := newRig(t, upstreamOf(t, echo))
			first := run(g)
			if want := `POST /curl "body"`; string(first) != want {
				t.Fatalf("got %q, want %q", first, want)
			}
			if second := run(replayRig(g, nil)); !bytes.Equal(first, second) {
				t.Errorf("replay gave %q, want %q", second, first)
			}
		})
	}
}

// TestStrictPython has Python's TLS check the certificates by RFC 5280, as it does by default from 3.13 on.
func TestStrictPython(t *testing.T) {
	python := program(t, "python3")
	g := newRig(t, upstreamOf(t, echo))
	script := `
import ssl, socket, sys
ctx = ssl.create_default_context(cafile=sys.argv[1])
ctx.verify_flags |= getattr(ssl, "VERIFY_X509_STRICT", 0)
host, port = sys.argv[2].rsplit(":", 1)
with ctx.wrap_socket(socket.create_connection((host, int(port))), server_hostname="api.example.com") as s:
    s.sendall(b"GET /py HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n")
    out = b""
    while True:
        b = s.recv(65536)
        if not b: break
        out += b
sys.stdout.buffer.write(out)
`
	out, err := exec.Command(python, "-c", script, caFile(t, g), g.real("api.example.com:443")).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("GET /py")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNodeRefusal sees a Node program that does not trust the CA on the tape: it closes after the handshake.
func TestNodeRefusal(t *testing.T) {
	node := program(t, "node")
	g := newRig(t, nil)
	script := `
const [host, port] = process.argv[1].split(":");
require("https").get({host, port, servername: "api.example.com", path: "/"}, () => process.exit(9)).on("error", () => process.exit(0));
`
	if out, err := exec.Command(node, "-e", script, g.real("api.example.com:443")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkTLSRefused(t, g.waitRefused(), "api.example.com")
}
