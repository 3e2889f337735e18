package tape_test

import (
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// kindNames are all kinds that the package knows.
var kindNames = []string{
	"clock_read", "clock_sleep", "llm_call", "http_exchange", "file_read", "file_write", "file_delete", "process_spawn",
	"mcp_json_rpc", "mcp_open", "mcp_text", "mcp_close", "ws_open", "ws_message", "ws_close", "tls_refused", "net_refused", "name_lookup", "dir_list", "env_read", "file_stat",
	"random_read", "policy_verdict",
}

// A source draws the values of a record. Each optional one may be zero.
type source struct{ t *rapid.T }

func (s source) text() string    { return rapid.String().Draw(s.t, "text") }
func (s source) int() int64      { return rapid.Int64().Draw(s.t, "int") }
func (s source) duration() int64 { return rapid.Int64Min(0).Draw(s.t, "duration") }
func (s source) id() uint64      { return rapid.Uint64().Draw(s.t, "id") }
func (s source) yes() bool       { return rapid.Bool().Draw(s.t, "yes") }
func (s source) some() int       { return rapid.IntRange(0, 3).Draw(s.t, "some") }
func (s source) port() int       { return rapid.IntRange(-1<<31, 1<<31-1).Draw(s.t, "port") }

func (s source) digest() cas.Digest {
	if s.yes() {
		return cas.Digest{}
	}
	return cas.Sum([]byte(s.text()))
}

func (s source) textOrNull() *string {
	if s.yes() {
		return nil
	}
	text := s.text()
	return &text
}

func (s source) intOrNull() *int64 {
	if s.yes() {
		return nil
	}
	n := s.int()
	return &n
}

func (s source) texts() (all []string) {
	for range s.some() {
		all = append(all, s.text())
	}
	return all
}

// payload draws one that is there.
func (s source) payload() *tape.Payload {
	text := s.text()
	p := &tape.Payload{Hash: cas.Sum([]byte(text)), Text: text, Inline: true, Len: int64(len(text))}
	if s.yes() {
		p = tape.PayloadOf(p.Hash, rapid.Int64Min(0).Draw(s.t, "length"))
	}
	p.Extra = s.extra()
	return p
}

func (s source) payloadOrNone() *tape.Payload {
	if s.yes() {
		return nil
	}
	return s.payload()
}

func (s source) headers() (all []tape.HeaderField) {
	for range s.some() {
		all = append(all, tape.HeaderField{Name: s.text(), Value: s.text()})
	}
	return all
}

func (s source) chunks() (all []tape.Chunk) {
	for range s.some() {
		all = append(all, tape.Chunk{Offset: s.int(), Length: s.int(), TMS: s.int(), G: s.id()})
	}
	return all
}

// chunkFields draws further keys of chunks.
func (s source) chunkFields(chunks []tape.Chunk) (all []tape.ChunkField) {
	for i := range chunks {
		for _, f := range s.extra() {
			all = append(all, tape.ChunkField{Chunk: i, Field: f})
		}
	}
	return all
}

// json draws a value that is no zero: a null would be read as absent.
func (s source) json() json.RawMessage {
	return rapid.SampledFrom([]json.RawMessage{
		json.RawMessage(`{"a": [1, 2.50, -1e+3], "b":"\u00e9\/"}`), json.RawMessage(`[]`), json.RawMessage(`true`),
		json.RawMessage(`"text"`), json.RawMessage(`0`),
	}).Draw(s.t, "json")
}

func (s source) jsonOrNone() json.RawMessage {
	if s.yes() {
		return nil
	}
	return s.json()
}

func (s source) extra() (all []tape.Field) {
	for i := range s.some() {
		all = append(all, tape.Field{Name: fmt.Sprintf("later_%d%s", i, s.text()), Value: s.json()})
	}
	return all
}

func (s source) raw() (all []tape.RawBytes) {
	for range s.some() {
		all = append(all, tape.RawBytes{Key: s.text(), Bytes: rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(s.t, "raw")})
	}
	return all
}

func (s source) exchange() tape.Exchange {
	stream := s.chunks()
	return tape.Exchange{
		Method: s.text(), URL: s.text(), RequestHeaders: s.headers(), RequestDigest: s.digest(),
		RequestPayload: s.payloadOrNone(), Status: s.port(), ResponseHeaders: s.headers(), Response: s.payload(),
		Stream: stream, StreamExtra: s.chunkFields(stream), Lane: s.text(), Arrival: s.id(), Error: s.text(),
	}
}

func (s source) file() tape.File {
	return tape.File{
		Path: s.text(), ContentHash: s.digest(), LenBytes: s.int(), Content: s.payloadOrNone(), Before: s.payloadOrNone(),
		ContentDigest: s.digest(), Mode: s.text(), SpawnID: s.id(), Extra: s.extra(),
	}
}

func (s source) kind(name string) tape.Kind {
	switch name {
	case "clock_read":
		return &tape.ClockRead{Source: rapid.SampledFrom([]string{"wall", "monotonic"}).Draw(s.t, "source"), ValueMS: s.int(), Extra: s.extra()}
	case "clock_sleep":
		return &tape.ClockSleep{DurationMS: s.duration(), Extra: s.extra()}
	case "llm_call":
		return &tape.LLMCall{
			Provider: s.text(), Endpoint: s.text(), Model: s.text(), ParamsDigest: s.digest(), Usage: s.jsonOrNone(),
			Exchange: s.exchange(), Connection: s.id(), Opcode: s.text(), Extra: s.extra(),
		}
	case "http_exchange":
		return &tape.HTTPExchange{Exchange: s.exchange(), Extra: s.extra()}
	case "file_read":
		return &tape.FileRead{File: s.file()}
	case "file_write":
		return &tape.FileWrite{File: s.file()}
	case "file_delete":
		f := s.file()
		f.ContentHash, f.LenBytes = cas.Digest{}, 0
		return &tape.FileDelete{File: f}
	case "process_spawn":
		return &tape.ProcessSpawn{
			Program: s.text(), Args: s.texts(), Cwd: s.textOrNull(), ExitCode: s.port(), DurationMS: s.duration(),
			Stdout: s.payload(), Stderr: s.payload(), SpawnID: s.id(), ParentSpawnID: s.id(), Signal: s.text(),
			Stdin: s.payloadOrNone(), StdoutDigest: s.digest(), StderrDigest: s.digest(), Extra: s.extra(),
		}
	case "mcp_json_rpc":
		return &tape.MCPJSONRPC{
			Server: s.text(), Method: s.text(), RequestDigest: s.digest(), ResponseDigest: s.digest(), LatencyMS: s.int(),
			Request: s.payload(), Response: s.payload(), From: s.text(), Conversation: s.id(), Transport: s.text(),
			Arrival: s.id(), Answered: s.id(), ParamsDigest: s.digest(), ResultDigest: s.digest(), Exchange: s.id(),
			AnswerExchange: s.id(), Error: s.text(), Extra: s.extra(),
		}
	}
	return s.ownKind(name)
}

func (s source) ownKind(name string) tape.Kind {
	switch name {
	case "mcp_open":
		return &tape.MCPOpen{
			Server: s.text(), Conversation: s.id(), Transport: s.text(), Program: s.text(), Args: s.texts(), Env: s.texts(), Cwd: s.text(),
			URL: s.text(), Protocol: s.text(), Extra: s.extra(),
		}
	case "mcp_text":
		return &tape.MCPText{
			Server: s.text(), Conversation: s.id(), From: s.text(), Arrival: s.id(), Payload: s.payloadOrNone(), Extra: s.extra(),
		}
	case "mcp_close":
		return &tape.MCPClose{
			Server: s.text(), Conversation: s.id(), Arrival: s.id(), ExitCode: s.intOrNull(), Signal: s.text(), Error: s.text(),
			By:    s.text(),
			Extra: s.extra(),
		}
	case "ws_open":
		return &tape.WSOpen{
			URL: s.text(), Lane: s.text(), Arrival: s.id(), RequestHeaders: s.headers(), ResponseHeaders: s.headers(),
			Status: s.port(), Connection: s.id(), Extra: s.extra(),
		}
	case "ws_message":
		return &tape.WSMessage{
			Connection: s.id(), Direction: s.text(), Opcode: s.text(), Payload: s.payloadOrNone(), Extra: s.extra(),
		}
	case "ws_close":
		return &tape.WSClose{Connection: s.id(), Code: s.port(), Reason: s.text(), Extra: s.extra()}
	case "tls_refused":
		return &tape.TLSRefused{Host: s.text(), Port: s.port(), Reason: s.text(), Extra: s.extra()}
	case "net_refused":
		return &tape.NetRefused{Addr: s.text(), Port: s.port(), Reason: s.text(), Extra: s.extra()}
	case "name_lookup":
		return &tape.NameLookup{Host: s.text(), Type: s.text(), Result: s.text(), Extra: s.extra()}
	case "dir_list":
		return &tape.DirList{Path: s.text(), NamesDigest: s.digest(), Names: s.payloadOrNone(), Extra: s.extra()}
	case "env_read":
		return &tape.EnvRead{VarName: s.text(), Value: s.payloadOrNone(), Extra: s.extra()}
	case "file_stat":
		return &tape.FileStat{Path: s.text(), Type: s.text(), LenBytes: s.int(), Mode: s.text(), Extra: s.extra()}
	case "random_read":
		return &tape.RandomRead{Length: s.int(), Payload: s.payloadOrNone(), Extra: s.extra()}
	case "policy_verdict":
		return &tape.PolicyVerdict{
			PolicySet: s.text(), ActionID: s.text(), Tool: s.text(), ParamsDigest: s.digest(),
			ParamsPayload: s.payloadOrNone(), State: s.jsonOrNone(), Verdict: s.jsonOrNone(), Extra: s.extra(),
		}
	}
	return &tape.Unknown{KindName: name}
}

func (s source) record() *tape.Record {
	phase := tape.PhaseUserScript
	if s.yes() {
		phase = tape.PhaseRuntimeFinalize
	}
	return &tape.Record{
		Seq: s.id(), Phase: phase, VirtualTimeMS: s.int(), MonotonicMS: s.int(), G: s.id(), Raw: s.raw(), Extra: s.extra(),
		Kind: s.kind(rapid.SampledFrom(kindNames).Draw(s.t, "kind")),
	}
}

func (s source) header() *tape.Header {
	h := &tape.Header{Version: 1, Producer: s.text(), ScriptPath: s.textOrNull(), Argv: s.texts(), Extra: s.extra()}
	if s.yes() {
		began := s.int()
		h.StartedAtUnixMS = &began
	}
	return h
}
