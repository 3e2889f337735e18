package scrub_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestHeadersForOpenTelemetry: keys in the headers of its exporters are secrets, other headers are none.
func TestHeadersForOpenTelemetry(t *testing.T) {
	s := scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=Authorization=Basic%20cGstYW5uOnN3MHJkZmlzaC05OQ==,x-tenant=production,x-team=Zk3pQ9vT7xW2mL5r",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
	}})
	for text, hidden := range map[string]bool{
		"cGstYW5uOnN3MHJkZmlzaC05OQ==": true, "sw0rdfish-99": true, "Zk3pQ9vT7xW2mL5r": true, "production": false, "http://collector:4318": false,
	} {
		if got := s.String("it is " + text); strings.Contains(got, text) == hidden {
			t.Errorf("%s: %s", text, got)
		}
	}
}
