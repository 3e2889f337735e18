package fidelity

import (
	"cmp"
	"hash/maphash"
	"maps"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TokenMask is the mask of the value of a header that looks made up on both sides: long, letters and digits mixed.
const TokenMask = "header-token"

// transportHeaders are those of requests that say nothing of what a program asks for: what HTTP itself needs, what names a trace,
// an attempt, what counts those and what is left of their time. A * stands for the rest of a name.
var transportHeaders = []string{
	"amz-sdk-invocation-id", "amz-sdk-request", "b3", "baggage", "connection", "content-length", "date", "grpc-timeout", "host", "http2-settings",
	"keep-alive", "proxy-connection", "sec-websocket-key", "sentry-trace", "te", "traceparent", "tracestate", "trailer",
	"transfer-encoding", "uber-trace-id", "upgrade", "x-amzn-trace-id", "x-b3-*", "x-cloud-trace-context", "x-datadog-*",
	"x-client-request-id", "x-request-id", "x-retry-count", "x-stainless-retry-count",
}

// TransportHeaders lists the headers of requests that do not compare between lanes, in lower case. A * at the end of one stands for
// the rest of a name.
func TransportHeaders() []string { return slices.Clone(transportHeaders) }

// HeaderIn reports whether a list such as TransportHeaders has a header, whatever the case of its letters.
func HeaderIn(list []string, name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(list, func(pattern string) bool {
		ok, err := path.Match(strings.ToLower(pattern), name)
		return ok && err == nil
	})
}

// headerFindings compares the headers of two requests. A value that differs is masked as any text is, or is one that a program makes
// up; another secret is a divergence that says no byte of either.
func (c *maskings) headerFindings(lane string, of pair, at int) (out []finding) {
	fieldsA, okA := requestHeaders(of.a.rec.Kind)
	fieldsB, okB := requestHeaders(of.b.rec.Kind)
	if c.o.Headers == nil || !okA || !okB {
		return nil
	}
	category, was, now := prefixOf(of.a.rec.Kind)+"_request_headers", c.headersOf(fieldsA), c.headersOf(fieldsB)
	for _, name := range sortedKeys(was, now) {
		if was[name] == now[name] {
			continue
		}
		f := finding{category: category, title: "the header " + name + " changed"}
		f.values = [2]any{was[name], now[name]}
		places, alike := c.align(was[name], now[name])
		if !alike && isToken(was[name]) && isToken(now[name]) {
			places, alike = []hidden{{mask: TokenMask, was: was[name], now: now[name]}}, true
		}
		if !alike && c.headerVaries(name, was[name], now[name], of) {
			places, alike = []hidden{{mask: Varies, was: was[name], now: now[name]}}, true
		}
		switch {
		case signature.MatchString(was[name]) && signature.MatchString(now[name]) && signsOther(fieldsA, fieldsB):
		case credential.MatchString(name) && slices.ContainsFunc(places, func(h hidden) bool { return h.mask == SecretMask }):
			f.title, f.values = "the header "+name+" holds another secret", [2]any{verbatim("one"), verbatim("another")}
			out = append(out, f)
		case !alike:
			out = append(out, f)
		default:
			for i := range places {
				places[i].place = "header " + name
			}
			c.hide(lane, of, at, places)
		}
	}
	return out
}

// signature is an authorization that is made anew of each request, its headers among it (AWS's Signature Version 4).
var signature = lazyregexp.New(`^AWS4-[A-Z0-9-]+ `)

// unsigned are the headers that no signer has in its signature, for whoever passes a request on may change them.
var unsigned = []string{"authorization", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"}

// signsOther reports whether signatures are of other headers, those among them that do not compare: then they differ too, and say nothing more.
func signsOther(a, b []tape.HeaderField) bool {
	signed := func(fields []tape.HeaderField) []tape.HeaderField {
		return slices.DeleteFunc(slices.Clone(fields), func(f tape.HeaderField) bool { return HeaderIn(unsigned, f.Name) })
	}
	return !slices.Equal(signed(a), signed(b))
}

func requestHeaders(k tape.Kind) ([]tape.HeaderField, bool) {
	if ex := tape.ExchangeOf(k); ex != nil {
		return ex.RequestHeaders, true
	}
	open, ok := k.(*tape.WSOpen)
	if !ok {
		return nil, false
	}
	return open.RequestHeaders, true
}

func (c *maskings) headersOf(fields []tape.HeaderField) map[string]string {
	out := make(map[string]string)
	for _, f := range fields {
		name, value := strings.ToLower(f.Name), f.Value
		if !c.o.Headers(name) {
			continue
		}
		if name == "content-type" {
			value = withoutBoundary(value)
		}
		if before, ok := out[name]; ok {
			value = before + ", " + value
		}
		out[name] = value
	}
	return out
}

// withoutBoundary returns a content type without what separates its parts, which is made up for each request.
func withoutBoundary(value string) string {
	kind, params, err := mime.ParseMediaType(value)
	if err != nil || params["boundary"] == "" {
		return value
	}
	delete(params, "boundary")
	return cmp.Or(mime.FormatMediaType(kind, params), value)
}

// credential is the name of a header that says who asks: another secret there is no chance. A session's id, which is hidden as a
// secret is, is made up anew in each run.
var credential = lazyregexp.New(`(^|-)(authorization|api[_-]?key|apikey|auth|(auth|access|private|api)-token)$`)

// token is a value that a program makes up: 16 characters and more without a blank.
var token = lazyregexp.New(`^[A-Za-z0-9+/=_.:-]{16,}$`)

func isToken(s string) bool {
	return token.MatchString(s) && masks.Fits("id", s, "") && strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' }) >= 0
}

// headerHash tells the requests of two callers apart, as far as their headers compare.
func (c *maskings) headerHash(k tape.Kind) uint64 {
	fields, ok := requestHeaders(k)
	if c.o.Headers == nil || !ok {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(seed)
	of := c.headersOf(fields)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		put(&h, name, c.o.masked(of[name]))
	}
	return h.Sum64()
}
