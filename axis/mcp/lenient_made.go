package mcp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// madeUp is the answer to what a client begins with that was recorded with a client of another kind, or not at all; nil for none. What a
// server says of itself is the same to both kinds. Some clients set the level of the log before anything else, wherever the server has
// one.
func (l *lenientIndex) madeUp(m *Message) []byte {
	switch {
	case m.Method == "logging/setLevel": // which asks for nothing that could be on a tape
		return emptyAnswer(m.ID)
	case l.headless():
		return l.guessed(m)
	case m.Method == methodInitialize:
		return l.discovered(m)
	}
	return nil
}

// discovered is the answer to initialize from one to server/discover.
func (l *lenientIndex) discovered(m *Message) []byte {
	for _, d := range l.results(methodDiscover) {
		r := canonjson.Value{Kind: canonjson.Object}
		add := func(key string, value json.RawMessage) {
			if val, err := canonjson.Parse(value); err == nil {
				r.Members = append(r.Members, canonjson.Member{Key: key, Value: val})
			}
		}
		add("protocolVersion", []byte(`"`+wantedVersion(m)+`"`))
		add("capabilities", member(d.Result, "capabilities"))
		add("serverInfo", member(member(d.Result, "_meta"), metaPrefix+"serverInfo"))
		add("instructions", member(d.Result, "instructions"))
		return answerOf(m.ID, "result", r.Append(nil))
	}
	return nil
}

// guessed is what a headless tape shows of its server: that it has what was asked of it, and of that what was named.
func (l *lenientIndex) guessed(m *Message) []byte {
	has := make(map[string]any)
	var result map[string]any
	for _, o := range offers {
		if !l.asksOf(o.name) {
			continue
		}
		has[o.name] = struct{}{}
		if m.Method == o.list && len(l.results(o.list)) == 0 {
			result = map[string]any{o.name: l.named(o.use, o.by, o.entry)}
		}
	}
	if m.Method == methodInitialize {
		result = map[string]any{
			"protocolVersion": wantedVersion(m), "capabilities": has,
			"serverInfo": map[string]string{"name": tape.MCPServer(l.transcripts[0].Server), "version": "unknown"},
		}
	}
	b, err := json.Marshal(result)
	if result == nil || err != nil {
		return nil
	}
	return answerOf(m.ID, "result", b)
}

// results lists the answers to a method that hold a result.
func (l *lenientIndex) results(method string) (out []*Message) {
	for _, t := range l.transcripts {
		for _, c := range t.calls {
			if c.method != method || c.answer == nil {
				continue
			}
			if m, ok := messageOf(c.answer, l.book.store); ok && m.Result != nil {
				out = append(out, m)
			}
		}
	}
	return out
}

// wantedVersion is the version that a client which begins with initialize is answered by: its own, where that has it.
func wantedVersion(m *Message) string {
	const newest = "2025-11-25"
	wanted := str(member(m.Params, "protocolVersion"))
	if len(wanted) == len(newest) && wanted <= newest && strings.Trim(wanted, "0123456789-") == "" {
		return wanted
	}
	return newest
}

// headless reports whether the tape begins behind what a client begins with, as those of other producers do that hold calls alone. How
// the server answered a beginning with an error is not that.
func (l *lenientIndex) headless() bool {
	return !slices.ContainsFunc(l.transcripts, func(t *transcript) bool {
		return t.Methods[methodInitialize] > 0 || t.Methods[methodDiscover] > 0
	})
}

// offers are what a server may have, each with the method that lists it, the one that uses one of it, and by what member that names it.
var offers = []struct {
	name, list, use, by string
	entry               func(name string) map[string]any
}{

	{"tools", "tools/list", "tools/call", "name", func(name string) map[string]any {
		return map[string]any{"name": name, "inputSchema": map[string]string{"type": "object"}}
	}},
	{"prompts", "prompts/list", "prompts/get", "name", func(name string) map[string]any {
		return map[string]any{"name": name}
	}},
	{"resources", "resources/list", "resources/read", "uri", func(uri string) map[string]any {
		return map[string]any{"name": uri, "uri": uri}
	}},
}

// asksOf reports whether the client asked for anything of that kind.
func (l *lenientIndex) asksOf(kind string) bool {
	for _, t := range l.transcripts {
		for method := range t.Methods {
			if strings.HasPrefix(method, kind+"/") {
				return true
			}
		}
	}
	return false
}

// named lists what requests of a method name by a member of their params, each once, in recorded order.
func (l *lenientIndex) named(method, by string, entry func(name string) map[string]any) []map[string]any {
	entries, seen := []map[string]any{}, make(map[string]bool)
	for _, t := range l.transcripts {
		for _, c := range t.calls {
			m, ok := messageOf(c.request, l.book.store)
			if c.method != method || !ok {
				continue
			}
			if name := str(member(m.Params, by)); name != "" && !seen[name] {
				seen[name] = true
				entries = append(entries, entry(name))
			}
		}
	}
	return entries
}
