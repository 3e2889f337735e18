package roundtrip_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
)

// TestDenied asks where nothing was given: the error says what was asked for and how to give it, without the secret in it.
func TestDenied(t *testing.T) {
	r := newRig(t, &roundtrip.Options{})
	_, err := r.client.Get("https://user:hunter2hunter2@api.example.com:8443/v1?api_key=sk-abcdefghijklmnop")
	var denied *roundtrip.DeniedError
	if !errors.As(err, &denied) || denied.Call != 1 || denied.Host != "api.example.com:8443" || denied.Method != "GET" {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"--net REC", "Config.Net.Tape", "--net allow=api.example.com:8443", "Config.Net.Allow"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if text := denied.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "sk-abc") {
		t.Errorf("a secret stands in %s", text)
	}
	if n := len(r.exchanges()); n != 0 {
		t.Errorf("%d records of what was denied", n)
	}
}

// TestAllow has names stand for themselves alone.
func TestAllow(t *testing.T) {
	for _, c := range []struct {
		allow string
		urls  map[string]bool
	}{
		{"api.example.com", map[string]bool{
			"https://api.example.com/": true, "http://API.example.com/": true, "https://api.example.com:443/": true,
			"http://api.example.com:443/": false, "https://api.example.com:8443/": false, "https://example.com/": false,
			"https://x.api.example.com/": false, "https://api.example.com.evil.org/": false, "https://api.example.com@evil.org/": false,
			"https://api.example.com./": false, "https://evil.org/?api.example.com": false,
		}},
		{"localhost:8080", map[string]bool{
			"http://localhost:8080/": true, "http://localhost/": false, "http://127.0.0.1:8080/": false, "http://[::1]:8080/": false,
		}},
		{"127.0.0.1", map[string]bool{"http://127.0.0.1/": true, "http://localhost/": false, "http://2130706433/": false, "http://[::ffff:127.0.0.1]/": false}},
		{"[::1]:80", map[string]bool{"http://[::1]/": true, "http://[0:0:0:0:0:0:0:1]:80/": true, "https://[::1]/": false}},
		{"2001:DB8::1", map[string]bool{"https://[2001:db8::1]/": true, "https://[2001:db8::2]/": false}},
	} {
		for url, want := range c.urls {
			next := &through{do: answerOf(200, nil, http.NoBody)}
			r := newRig(t, &roundtrip.Options{Allow: []string{c.allow}, Next: next})
			_, err := r.client.Get(url)
			var denied *roundtrip.DeniedError
			if got := err == nil; got != want || got != (next.calls == 1) || !got && !errors.As(err, &denied) {
				t.Errorf("allow %s: %s: %v, %d sent", c.allow, url, err, next.calls)
			}
			if denied == nil {
				continue
			}
			again := newRig(t, &roundtrip.Options{Allow: []string{denied.Host}, Next: next})
			if _, err := again.client.Get(url); err != nil && !strings.Contains(url, "@") {
				t.Errorf("%s: the entry %q that the error names does not let it out: %v", url, denied.Host, err)
			}
		}
	}
}

// TestAllowedName denies a request that is sent to an allowed host and asks it for another one.
func TestAllowedName(t *testing.T) {
	next := &through{do: answerOf(200, nil, http.NoBody)}
	r := newRig(t, &roundtrip.Options{Allow: []string{"front.example.com"}, Next: next})
	req, _ := http.NewRequest(http.MethodGet, "https://front.example.com/", nil)
	req.Host = "behind.example.com"
	_, err := r.client.Do(req)
	var denied *roundtrip.DeniedError
	if !errors.As(err, &denied) || denied.Host != "behind.example.com" || next.calls != 0 {
		t.Errorf("%v, %d sent", err, next.calls)
	}
}

// TestWrongAllow refuses entries that are no host.
func TestWrongAllow(t *testing.T) {
	for _, entry := range []string{"", "*.example.com", "https://example.com", "example.com/", "a b", "example.com:x", "example.com:0", "example.com:99999", "u@h", ":80", "[]"} {
		var wrong *roundtrip.AllowError
		if _, err := roundtrip.New(&roundtrip.Options{Allow: []string{entry}}); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// TestRedirect follows to allowed hosts and no further.
func TestRedirect(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "other") })
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/out":
			http.Redirect(w, r, other.URL+"/x", http.StatusFound)
		case "/in":
			http.Redirect(w, r, "/there", http.StatusFound)
		default:
			io.WriteString(w, "there")
		}
	})
	r := newRig(t, &roundtrip.Options{Allow: []string{hostOf(srv)}})
	if got := r.get(srv.URL + "/in"); got != "there" {
		t.Errorf("got %q", got)
	}
	_, err := r.client.Get(srv.URL + "/out")
	var denied *roundtrip.DeniedError
	if !errors.As(err, &denied) || denied.From != srv.URL+"/out" || denied.Host != hostOf(other) || denied.Call != 4 {
		t.Errorf("%+v, %v", denied, err)
	}
	if n := len(r.exchanges()); n != 3 {
		t.Errorf("%d exchanges, want the two of /in and that of /out", n)
	}
}

// TestUpgrade refuses a WebSocket, also of an upstream that is one.
func TestUpgrade(t *testing.T) {
	next := &through{do: answerOf(http.StatusSwitchingProtocols, nil, http.NoBody)}
	r := newRig(t, &roundtrip.Options{Next: next})
	req, _ := http.NewRequest(http.MethodGet, "http://h/", nil)
	req.Header.Set("Upgrade", "websocket")
	if _, err := r.client.Do(req); !errors.Is(err, roundtrip.ErrUpgrade) || next.calls != 0 {
		t.Errorf("%v", err)
	}
	if _, err := r.client.Get("http://h/"); !errors.Is(err, roundtrip.ErrUpgrade) {
		t.Errorf("%v", err)
	}
}

// TestBounds ends bodies that are too long, either way.
func TestBounds(t *testing.T) {
	next := &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, nil, &pieces{left: []string{strings.Repeat("x", 60), strings.Repeat("y", 60)}})(req)
	}}
	r := newRig(t, &roundtrip.Options{Next: next, MaxBody: 100})
	if _, err := r.client.Post("http://h/", "text/plain", strings.NewReader(strings.Repeat("x", 101))); !errors.Is(err, exchange.ErrTooLarge) || next.calls != 0 {
		t.Errorf("request: %v", err)
	}
	res, err := r.client.Get("http://h/")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	if !errors.Is(err, exchange.ErrTooLarge) || len(got) != 60 {
		t.Errorf("answer: %d bytes, %v", len(got), err)
	}
	if x := r.exchanges(); len(x) != 1 || x[0].Response.Len != 60 || !strings.Contains(x[0].Error, "too large") {
		t.Errorf("%+v", x)
	}
}
