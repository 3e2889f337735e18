package llm

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Telemetry: a program reports what it measured (times, counts, traces), which differs in every run, in number too, and its
// answer says nothing to it. Such a request is equal to any other of its URL.

// otlp are the paths of OTLP over HTTP (opentelemetry.io/docs/specs/otlp), each with the one member of its bodies in JSON.
var otlp = map[string]string{"/v1/metrics": "resourceMetrics", "/v1/traces": "resourceSpans", "/v1/logs": "resourceLogs"}

// protobuf is what else OTLP is sent as.
const protobuf = "application/x-protobuf"

// A collector is a host that takes nothing but telemetry under its paths.
type collector struct {
	host  string // begins with a dot where any host below it is meant
	paths []string
	who   string
}

// collectors are those without OTLP that agents were seen to report to.
var collectors = []collector{
	{"play.googleapis.com", []string{"/log"}, "Google's Clearcut, of gemini-cli"},
	{".rum.aliyuncs.com", nil, "Alibaba's monitoring of users, of qwen-code"},
}

// telemetry identifies a request that reports what a program measured; nil for any other. value is its body in JSON, nil where
// it is none.
func (c *Classifier) telemetry(r *exchange.Request, u *url.URL, value *canonjson.Value) *exchange.Identity {
	if !c.masker.On(maskTelemetry) || r.Method != http.MethodPost || !isOTLP(r, u, value) && !collects(u) {
		return nil
	}
	c.masker.Count(maskTelemetry)
	id := c.plain(r, nil)
	id.Key.Request, id.Telemetry = cas.Sum(nil), true
	return id
}

// maskTelemetry is the name under which this is switched off (package scrub lists it).
const maskTelemetry = "telemetry"

func isOTLP(r *exchange.Request, u *url.URL, value *canonjson.Value) bool {
	for path, member := range otlp {
		if strings.HasSuffix(u.Path, path) {
			if value != nil {
				return value.Kind == canonjson.Object && len(value.Members) == 1 && value.Members[0].Key == member
			}
			kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			return err == nil && kind == protobuf
		}
	}
	return false
}

func collects(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return slices.ContainsFunc(collectors, func(c collector) bool {
		named := host == c.host || strings.HasPrefix(c.host, ".") && strings.HasSuffix(host, c.host)
		return named && (c.paths == nil || slices.Contains(c.paths, u.Path))
	})
}
