package mcp

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// metaPrefix begins the names of the protocol's own members of _meta.
const metaPrefix = "io.modelcontextprotocol/"

// madeUp are the members of _meta that are made up anew in each run.
var madeUp = []string{"progressToken", "traceparent", "tracestate", "baggage", metaPrefix + "subscriptionId"}

// Surface returns what is compared of the params, the result or the error of a redacted message: its canonical JSON without what is
// made up anew in each run (see the package comment), placeholders renumbered, volatile facts masked. method is that of the
// message, of an answer "". Params that are absent or null are {}. What has no canonical form is taken as it stands.
func (l *Log) Surface(method string, value json.RawMessage) []byte {
	b := scrub.Renumber(canonical(method, value))
	if l.mask == nil {
		return b
	}
	return l.mask.Mask(b)
}

// Digest is the digest of Surface: params_digest, result_digest.
func (l *Log) Digest(method string, value json.RawMessage) cas.Digest {
	return cas.Sum(l.Surface(method, value))
}

func canonical(method string, value json.RawMessage) []byte {
	if len(value) == 0 || string(value) == "null" {
		return []byte("{}")
	}
	v, err := canonjson.Parse(value)
	if err != nil {
		return value
	}
	dropMadeUp(method, &v)
	return v.Append(make([]byte, 0, len(value)))
}

// dropMadeUp takes what is made up anew in each run out of the params of a method, or out of a result or an error.
func dropMadeUp(method string, v *canonjson.Value) {
	switch method {
	case "notifications/cancelled":
		drop(v, "requestId")
	case "notifications/progress":
		drop(v, "progressToken")
	}
	dropMeta(v)
}

// dropMeta takes what is made up out of _meta, and _meta where nothing else is in it.
func dropMeta(v *canonjson.Value) {
	i := slices.IndexFunc(v.Members, func(m canonjson.Member) bool { return m.Key == "_meta" })
	if i < 0 || v.Members[i].Value.Kind != canonjson.Object {
		return
	}
	meta := &v.Members[i].Value
	for _, name := range madeUp {
		drop(meta, name)
	}
	if len(meta.Members) == 0 {
		drop(v, "_meta")
	}
}

// drop takes a member out of an object.
func drop(v *canonjson.Value, name string) {
	v.Members = slices.DeleteFunc(v.Members, func(m canonjson.Member) bool { return m.Key == name })
}
