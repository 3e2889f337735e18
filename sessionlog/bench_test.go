package sessionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// readLog is a session: answers, calls and results, and what a kernel says between them.
func readLog(tb testing.TB) []byte {
	tb.Helper()
	text := strings.Repeat("The file has \"quoted\" words,\n\ttabs and some prose that goes on for a while without any of them. ", 12)
	content := json.RawMessage(jsonscan.AppendText(nil, text))
	call := ToolCall{ID: "call_0123456789", Name: "read_file", Arguments: json.RawMessage(`{"path":"src/main.go","limit":200}`)}
	events := []Event{
		&LLMCompleted{Common: Common{Turn: 1}, Message: Message{Role: "assistant", Content: content, ToolCalls: []ToolCall{call}}},
		&ToolRequested{Common: Common{Turn: 1}, Calls: []ToolCall{call}},
		&ToolGated{Common: Common{Turn: 1, Category: "syscall"}, CallID: call.ID, Tool: call.Name, Reason: "ask_user"},
		&Suspended{Common: Common{Turn: 1}, Reason: "ask_user", PendingCalls: []string{call.ID}},
		&Resumed{Common: Common{Turn: 1}, Approved: []string{call.ID}},
		&ToolCompleted{Common: Common{Turn: 1}, Results: []ToolResult{{CallID: call.ID, Output: content}}},
		&CheckpointTaken{Common: Common{Turn: 1}, HistoryLen: 12},
		&PageIn{Common: Common{Turn: 1}, EntryCount: 3},
	}
	var log []byte
	for i := range 4000 {
		var err error
		if log, err = AppendEnvelope(log, uint64(i), events[i%len(events)], &Stamp{G: uint64(i + 1)}); err != nil {
			tb.Fatal(err)
		}
		log = append(log, '\n')
	}
	return log
}

// stdEntry is an entry as one reads it with encoding/json: the kind first, the rest on demand.
type stdEntry struct {
	Seq   uint64 `json:"seq"`
	G     uint64 `json:"g"`
	Event struct {
		Kind     Kind            `json:"kind"`
		Turn     int             `json:"turn"`
		Category string          `json:"category"`
		Message  json.RawMessage `json:"message"`
		Calls    json.RawMessage `json:"calls"`
		Results  json.RawMessage `json:"results"`
	} `json:"event"`
}

// BenchmarkRead reads the entries of a log, and the same lines with encoding/json. x-json is how much faster the one is.
func BenchmarkRead(b *testing.B) {
	log := readLog(b)
	compare(b, log, func() error {
		for _, err := range NewReader(bytes.NewReader(log), "bench", nil).Entries() {
			if err != nil {
				return err
			}
		}
		return nil
	}, func(line []byte) error { return json.Unmarshal(line, new(stdEntry)) })
}

// BenchmarkEvents reads the typed events of a log; encoding/json reads maps, as the format asks of it: unknown keys are kept.
func BenchmarkEvents(b *testing.B) {
	log := readLog(b)
	compare(b, log, func() error {
		r := NewReader(bytes.NewReader(log), "bench", nil)
		for range r.Events() {
			continue
		}
		return r.Err()
	}, func(line []byte) error { return json.Unmarshal(line, new(map[string]any)) })
}

// compare measures one way of reading a log against another, line by line.
func compare(b *testing.B, log []byte, ours func() error, std func([]byte) error) {
	b.Helper()
	var fast, slow time.Duration
	for b.Loop() {
		begun := cputime.Spent()
		for lines := bufio.NewReaderSize(bytes.NewReader(log), 1<<20); ; {
			line, err := lines.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = std(line)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		slow += cputime.Spent() - begun
		begun = cputime.Spent()
		for range 4 { // as long as the other
			if err := ours(); err != nil {
				b.Fatal(err)
			}
		}
		fast += (cputime.Spent() - begun) / 4
	}
	b.ReportMetric(float64(slow)/float64(fast), "x-json")
	b.ReportMetric(float64(len(log)*b.N)/fast.Seconds()/1e6, "MB/s")
	b.ReportMetric(0, "ns/op")
}
