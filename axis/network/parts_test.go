package network

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestSniff(t *testing.T) {
	tests := []struct {
		sent string
		want protocol
	}{
		{"GET / HTTP/1.1\r\n", protoHTTP},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", protoHTTP},
		{"M-SEARCH * HTTP/1.1\r\n", protoHTTP},
		{"\x16\x03\x01", protoTLS},
		{"", protoNone},
		{"GE", protoOther},
		{" GET /", protoOther},
		{"SSH-2.0-OpenSSH_9.6 x", protoOther},
		{"get / HTTP/1.1\r\n", protoOther},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZ /", protoOther},
	}
	for _, tt := range tests {
		a, b := net.Pipe()
		go func() {
			io.WriteString(a, tt.sent)
			a.Close()
		}()
		c := newConn(b, new(Names))
		if got := sniff(c); got != tt.want {
			t.Errorf("%q is %d, want %d", tt.sent, got, tt.want)
		}
		if rest, _ := io.ReadAll(c); string(rest) != tt.sent {
			t.Errorf("%q was left as %q", tt.sent, rest)
		}
	}
}

func TestUpstreams(t *testing.T) {
	us, err := parseUpstreams(map[string]string{
		"api.Example.com":      "http://127.0.0.1:9000/base/",
		"ollama:11434":         "http://127.0.0.1:9001",
		"[2001:db8::1]:443":    "https://h.example",
		"only443.example:443":  "http://127.0.0.1:9002",
		"escaped.example.com.": "http://h.example/a%2Fb",
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ url, want string }{
		{"https://api.example.com/v1/messages?beta=true", "http://127.0.0.1:9000/base/v1/messages?beta=true"},
		{"http://api.example.com/", "http://127.0.0.1:9000/base/"},
		{"http://api.example.com:8080/", ""},
		{"http://ollama:11434/api/chat", "http://127.0.0.1:9001/api/chat"},
		{"http://ollama/api/chat", ""},
		{"https://[2001:db8::1]/x", "https://h.example/x"},
		{"http://only443.example/", ""},
		{"https://escaped.example.com/c%2Fd%20e?q=%2F", "http://h.example/a%2Fb/c%2Fd%20e?q=%2F"},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if base := us.find(u.Hostname(), portOf(u)); base != nil {
			got = under(base, u).String()
		}
		if got != tt.want {
			t.Errorf("%s goes to %q, want %q", tt.url, got, tt.want)
		}
	}
}

func TestBadUpstreams(t *testing.T) {
	for name, to := range map[string]string{
		"a": "ftp://h/", "b": "127.0.0.1:80", "c": "http://", "d": "http://h/?q", "e:x": "http://h", "": "http://h", "f:70000": "http://h", "g": "http://h\x00",
	} {
		if _, err := New(&Config{CA: nil, Names: new(Names), Upstreams: map[string]string{name: to}}); err == nil {
			t.Errorf("%q=%q was taken", name, to)
		}
	}
}

func TestReduceEncodings(t *testing.T) {
	tests := []struct{ given, want []string }{
		{nil, nil},
		{[]string{"gzip, deflate, br, zstd"}, []string{"gzip, deflate, br, zstd"}},
		{[]string{"GZIP;q=0.5, compress", "*"}, []string{"GZIP;q=0.5"}},
		{[]string{"dcb"}, []string{"identity"}},
		{[]string{""}, []string{"identity"}},
		{[]string{"br ;q=1,, ;q=1"}, []string{"br ;q=1"}},
	}
	for _, tt := range tests {
		h := make(http.Header)
		if tt.given != nil {
			h["Accept-Encoding"] = tt.given
		}
		reduceEncodings(h)
		if got := h["Accept-Encoding"]; !slices.Equal(got, tt.want) {
			t.Errorf("%q became %q, want %q", tt.given, got, tt.want)
		}
	}
}

func TestProxyFunc(t *testing.T) {
	proxy := proxyFunc(proxyConfig([]string{"https_proxy=http://proxy.example:3128", "NO_PROXY=.internal.example", "OTHER"}))
	for host, want := range map[string]string{
		"https://api.example.com/": "http://proxy.example:3128", "http://api.example.com/": "", "https://x.internal.example/": "",
	} {
		r, _ := http.NewRequest("GET", host, nil)
		got := ""
		if u, err := proxy(r); err != nil {
			t.Error(err)
		} else if u != nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%s goes through %q, want %q", host, got, want)
		}
	}
}

// TestErrorText holds that the same failure reads the same in every run.
func TestErrorText(t *testing.T) {
	var texts []string
	for range 2 {
		l := listenLoopback(t)
		l.Close()
		_, err := net.Dial("tcp", l.Addr().String())
		texts = append(texts, errorText(&url.Error{Op: "Get", URL: "x", Err: err}))
	}
	if texts[0] != texts[1] {
		t.Errorf("%q and %q", texts[0], texts[1])
	}
	if got := errorText(errors.Join(errCancelled, io.EOF)); got != tape.Cancelled {
		t.Errorf("got %q", got)
	}
}
