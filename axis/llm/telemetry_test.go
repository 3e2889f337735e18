package llm_test

import (
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestTelemetry tells what reports measures, whatever these are, from what only looks like it.
func TestTelemetry(t *testing.T) {
	on := llm.NewClassifier(scrub.NewMasker(nil))
	off := llm.NewClassifier(scrub.NewMasker(&scrub.MaskOptions{Disabled: []string{"telemetry"}}))
	for _, tt := range []struct {
		method, url, kind string
		a, b              string
		want              bool
	}{
		{"POST", "https://ab.test/otlp/v1/metrics", "application/json", `{"resourceMetrics":[1]}`, `{"resourceMetrics":[2,3]}`, true},
		{"POST", "https://ab.test/v1/traces", "application/json", `{"resourceSpans":[1]}`, `{"resourceSpans":[]}`, true},
		{"POST", "https://ab.test/v1/logs", "application/x-protobuf", "\x0a\x01a", "\x0a\x01b", true},
		{"POST", "https://play.googleapis.com/log", "text/plain", "one", "two", true},
		{"POST", "https://x1-default-sea.rum.aliyuncs.com/", "application/json", `{"a":1}`, `{"a":2}`, true},
		{"POST", "https://ab.test/v1/logs", "application/json", `{"logs":[1]}`, `{"logs":[2]}`, false},
		{"POST", "https://ab.test/v1/metrics", "application/json", `{"resourceMetrics":[1],"to":1}`, `{"resourceMetrics":[1],"to":2}`, false},
		{"POST", "https://ab.test/v1/metrics", "application/json", `{"resourceSpans":[1]}`, `{"resourceSpans":[2]}`, false},
		{"POST", "https://ab.test/v1/metrics/x", "application/json", `{"resourceMetrics":[1]}`, `{"resourceMetrics":[2]}`, false},
		{"POST", "https://ab.test/v1/logs", "text/plain", "one", "two", false},
		{"PUT", "https://ab.test/v1/metrics", "application/json", `{"resourceMetrics":[1]}`, `{"resourceMetrics":[2]}`, false},
		{"POST", "https://play.googleapis.com/login", "text/plain", "one", "two", false},
		{"POST", "https://example.com/log", "text/plain", "one", "two", false},
		{"POST", "https://rum.aliyuncs.com.example.com/", "text/plain", "one", "two", false},
	} {
		ask := func(c *llm.Classifier, body string) *exchange.Identity {
			id, err := c.Classify(&exchange.Request{
				Method: tt.method, URL: tt.url, Header: http.Header{"Content-Type": {tt.kind}}, Body: []byte(body),
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		a, b := ask(on, tt.a), ask(on, tt.b)
		if a.Telemetry != tt.want || (a.Key == b.Key) != tt.want {
			t.Errorf("%s %s %s: telemetry %t, equal %t; want %t", tt.method, tt.url, tt.a, a.Telemetry, a.Key == b.Key, tt.want)
		}
		if a, b := ask(off, tt.a), ask(off, tt.b); a.Telemetry || a.Key == b.Key {
			t.Errorf("%s %s: telemetry, though that is switched off", tt.url, tt.a)
		}
	}
}
