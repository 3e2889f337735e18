// Package derivetest makes tapes of conversations with a model for tests.
package derivetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Tape is a tape that a test makes record by record.
type Tape struct {
	T     testing.TB
	Path  string
	f     *os.File
	Store *cas.Dir
	Rec   *tape.Recorder
	At    uint64 // arrival
}

// NewTape begins a tape in a directory of its own.
func NewTape(t testing.TB) *Tape {
	t.Helper()
	tt := &Tape{T: t, Path: filepath.Join(t.TempDir(), "x.tape")}
	var err error
	if tt.f, err = os.Create(tt.Path); err != nil {
		t.Fatal(err)
	}
	w, err := tape.NewWriter(tt.f, &tape.Header{Producer: recording.Producer, Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if tt.Store, err = cas.OpenDir(tt.Path+tape.StoreSuffix, nil); err != nil {
		t.Fatal(err)
	}
	tt.Rec = tape.NewRecorder(w, nil)
	return tt
}

// Record appends a record.
func (tt *Tape) Record(k tape.Kind) {
	tt.T.Helper()
	if err := tt.Rec.Record(k); err != nil {
		tt.T.Fatal(err)
	}
}

// Call records a call of Anthropic's messages in a lane, whose answer is said or, where that is no JSON, cut.
func (tt *Tape) Call(lane, request, response string) *tape.LLMCall {
	tt.T.Helper()
	tt.At++
	k := &tape.LLMCall{Provider: "anthropic", Endpoint: "messages", Model: "m", Usage: json.RawMessage(`{"input_tokens":10,"output_tokens":1}`)}
	k.Lane, k.Arrival, k.Status, k.Method, k.URL = lane, tt.At, 200, "POST", "https://api.anthropic.com/v1/messages"
	k.RequestPayload, k.Response = tt.Payload(request), tt.Payload(response)
	tt.Record(k)
	return k
}

// Payload keeps s.
func (tt *Tape) Payload(s string) *tape.Payload {
	tt.T.Helper()
	p, err := tape.MakePayload(tt.Store, []byte(s))
	if err != nil {
		tt.T.Fatal(err)
	}
	return p
}

// Close ends the tape.
func (tt *Tape) Close() {
	tt.T.Helper()
	if err := tt.Rec.Flush(); err != nil {
		tt.T.Fatal(err)
	}
	if err := tt.f.Close(); err != nil {
		tt.T.Fatal(err)
	}
}

// Asks is a request with a history; tools may be "".
func Asks(system, tools string, messages ...string) string {
	return fmt.Sprintf(`{"model":"m","system":%q,"tools":[%s],"messages":[%s]}`, system, tools, strings.Join(messages, ","))
}

// ReadTool declares a tool.
const ReadTool = `{"name":"read"}`

// User is what a user said.
func User(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }

// Model is what a model said.
func Model(text string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}]}`, text)
}

// Uses is a call of a tool, in a history.
func Uses(id string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"read","input":{}}]}`, id)
}

// Gives is what a tool gave.
func Gives(id, text string) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, id, text)
}

// Says is an answer.
func Says(text string) string {
	return fmt.Sprintf(`{"type":"message","content":[{"type":"text","text":%q}],"stop_reason":"end_turn"}`, text)
}

// Calls is an answer that calls a tool.
func Calls(id string) string {
	return fmt.Sprintf(`{"type":"message","content":[{"type":"tool_use","id":%q,"name":"read","input":{"p":1}}],"stop_reason":"tool_use"}`, id)
}

// Cut is an answer that says text and does not end.
func Cut(text string) string {
	return fmt.Sprintf("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":%q}}\n\n", text)
}

// Summary is a text that is known again.
const Summary = "The user wanted a file. It was written, and named hello.txt."
