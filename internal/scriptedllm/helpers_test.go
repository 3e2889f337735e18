package scriptedllm

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// post sends one request to a fresh endpoint and returns the answer with its whole body.
func post(t *testing.T, opts *Options, path, body string) (*http.Response, string) {
	t.Helper()
	return postTo(t, New(opts), path, body)
}

func postTo(t *testing.T, e *Endpoint, path, body string) (*http.Response, string) {
	t.Helper()
	srv := httptest.NewServer(e)
	defer srv.Close()
	resp, err := srv.Client().Post(srv.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// events splits a stream into its events' data.
func events(t *testing.T, stream string) []object {
	t.Helper()
	var out []object
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		out = append(out, decode(t, data))
	}
	return out
}

func decode(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return o
}

// at walks into decoded JSON by keys and indices; nil where there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(object)
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// joined concatenates the strings that stand at a path of the events.
func joined(list []object, path ...any) string {
	var b strings.Builder
	for _, o := range list {
		s, _ := at(o, path...).(string)
		b.WriteString(s)
	}
	return b.String()
}
