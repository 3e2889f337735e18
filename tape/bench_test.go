package tape_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// benchRecords is a run in small: clocks, files, a call of a model with its chunks, a process.
func benchRecords(b testing.TB) []*tape.Record {
	b.Helper()
	response := payload(b, strings.Repeat(`data: {"type":"delta","text":"some words"}`+"\n\n", 40))
	var headers []tape.HeaderField
	for i := range 8 {
		headers = append(headers, tape.HeaderField{Name: fmt.Sprintf("x-header-%d", i), Value: "a value of some length"})
	}
	chunks := make([]tape.Chunk, 40)
	for i := range chunks {
		chunks[i] = tape.Chunk{Offset: int64(44 * i), Length: 44, TMS: int64(i), G: uint64(i + 1)}
	}
	kinds := []tape.Kind{
		&tape.ClockRead{Source: "wall", ValueMS: 1767225600000},
		&tape.ClockSleep{DurationMS: 1000},
		&tape.FileRead{File: tape.File{Path: "src/main.go", ContentHash: response.Hash, LenBytes: 1234}},
		&tape.LLMCall{Provider: "anthropic", Endpoint: "messages", Model: "a-model", ParamsDigest: response.Hash,
			Exchange: tape.Exchange{
				Method: "POST", URL: "https://api.example.com/v1/messages", RequestHeaders: headers, RequestDigest: response.Hash,
				RequestPayload: response, Status: 200, ResponseHeaders: headers, Response: response, Stream: chunks,
				Lane: "a lane", Arrival: 1,
			}},
		&tape.ProcessSpawn{Program: "git", Args: []string{"status", "--short"}, Stdout: response, Stderr: payload(b, ""), SpawnID: 2},
	}
	var all []*tape.Record
	for i := range 500 {
		all = append(all, &tape.Record{
			Seq: uint64(i), VirtualTimeMS: 1767225600000 + int64(i), MonotonicMS: int64(i), Kind: kinds[i%len(kinds)], G: uint64(i + 1),
		})
	}
	return all
}

func payload(t testing.TB, text string) *tape.Payload {
	t.Helper()
	p, err := tape.MakePayload(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func benchTape(b testing.TB, records []*tape.Record) []byte {
	return save(b, &tape.Header{Producer: "bench"}, records)
}

// BenchmarkLoad against BenchmarkLoadEncodingJSON is what the hand-written codec buys.
func BenchmarkLoad(b *testing.B) {
	bin := benchTape(b, benchRecords(b))
	b.SetBytes(int64(len(bin)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := tape.NewReader(bytes.NewReader(bin), "bench")
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range r.Records() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkLoadEncodingJSON reads the same tape into structs of the same fields.
func BenchmarkLoadEncodingJSON(b *testing.B) {
	bin := benchTape(b, benchRecords(b))
	b.SetBytes(int64(len(bin)))
	b.ReportAllocs()
	for b.Loop() {
		lines := bufio.NewReaderSize(bytes.NewReader(bin), 64<<10)
		for {
			line, err := lines.ReadSlice('\n')
			if err == io.EOF {
				break
			}
			if err := loadStd(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}

type stdRecord struct {
	Type      string          `json:"type"`
	Seq       uint64          `json:"seq"`
	Phase     string          `json:"phase"`
	Virtual   int64           `json:"virtual_time_ms"`
	Monotonic int64           `json:"monotonic_ms"`
	Kind      json.RawMessage `json:"kind"`
	G         uint64          `json:"g"`
}

type stdPayload struct {
	Hash string `json:"content_hash"`
	Text string `json:"text"`
	Len  int64  `json:"len_bytes"`
}

type stdCall struct {
	RequestDigest   string      `json:"request_digest"`
	Response        *stdPayload `json:"response"`
	Provider        string      `json:"provider"`
	Endpoint        string      `json:"endpoint"`
	Model           string      `json:"model"`
	ParamsDigest    string      `json:"params_digest"`
	Method          string      `json:"method"`
	URL             string      `json:"url"`
	RequestHeaders  [][2]string `json:"request_headers"`
	RequestPayload  *stdPayload `json:"request_payload"`
	Status          int         `json:"status"`
	ResponseHeaders [][2]string `json:"response_headers"`
	Stream          []stdChunk  `json:"stream"`
	Lane            string      `json:"lane"`
	Arrival         uint64      `json:"arrival"`
}

type stdChunk struct {
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	TMS    int64  `json:"t_ms"`
	G      uint64 `json:"g"`
}

type stdProcess struct {
	Program  string      `json:"program"`
	Args     []string    `json:"args"`
	Cwd      *string     `json:"cwd"`
	ExitCode int         `json:"exit_code"`
	Duration int64       `json:"duration_ms"`
	Stdout   *stdPayload `json:"stdout_payload"`
	Stderr   *stdPayload `json:"stderr_payload"`
	SpawnID  uint64      `json:"spawn_id"`
}

type stdFile struct {
	Path string `json:"path"`
	Hash string `json:"content_hash"`
	Len  int64  `json:"len_bytes"`
}

type stdClock struct {
	Source   string `json:"source"`
	Value    int64  `json:"value_ms"`
	Duration int64  `json:"duration_ms"`
}

// loadStd reads a line as one would with encoding/json: the record, then its kind.
func loadStd(line []byte) error {
	var r stdRecord
	if err := json.Unmarshal(line, &r); err != nil || r.Kind == nil {
		return err
	}
	var name struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(r.Kind, &name); err != nil {
		return err
	}
	var k any
	switch name.Kind {
	case "llm_call":
		k = new(stdCall)
	case "process_spawn":
		k = new(stdProcess)
	case "file_read":
		k = new(stdFile)
	default:
		k = new(stdClock)
	}
	return json.Unmarshal(r.Kind, k)
}

// BenchmarkAppend against BenchmarkAppendRaw is what the format costs over copying lines to a file.
func BenchmarkAppend(b *testing.B) {
	records := benchRecords(b)
	f := benchFile(b)
	w, err := tape.NewWriter(f, &tape.Header{Producer: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(benchTape(b, records))))
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range records {
			if err := w.Append(r); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		f.Truncate(0)
		f.Seek(0, io.SeekStart)
	}
}

// BenchmarkAppendRaw writes finished lines through a bufio.Writer.
func BenchmarkAppendRaw(b *testing.B) {
	bin := benchTape(b, benchRecords(b))
	lines := bytes.SplitAfter(bin, []byte("\n"))
	f := benchFile(b)
	w := bufio.NewWriterSize(f, 64<<10)
	b.SetBytes(int64(len(bin)))
	for b.Loop() {
		for _, line := range lines {
			w.Write(line)
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		f.Truncate(0)
		f.Seek(0, io.SeekStart)
	}
}

func benchFile(b *testing.B) *os.File {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "run.tape"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

// BenchmarkNilRecorder is the cost of a hook where nothing is recorded: no time worth a name, no allocation.
func BenchmarkNilRecorder(b *testing.B) {
	var rec *tape.Recorder
	body := []byte("a body")
	b.ReportAllocs()
	for b.Loop() {
		if rec.Enabled() {
			b.Fatal("a nil recorder is on")
		}
		p, _ := rec.Payload(body)
		rec.Record(nil)
		rec.Ordinal()
		rec.Flush()
		if p != nil {
			b.Fatal("a nil recorder made a payload")
		}
	}
}
