package tape_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
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

// BenchmarkLoad loads typed, validated records from memory, and the same tape with encoding/json into structs of the same
// fields, which it does not validate. x-json is how much faster the one is than the other, in time of the processor.
func BenchmarkLoad(b *testing.B) {
	bin := benchTape(b, benchRecords(b))
	var std, ours time.Duration
	b.ReportAllocs()
	for b.Loop() {
		begun := cputime.Spent()
		if err := loadAllStd(bin); err != nil {
			b.Fatal(err)
		}
		std += cputime.Spent() - begun
		begun = cputime.Spent()
		for range 8 { // as long as the other: the clock is coarse
			if err := loadAllOurs(bin); err != nil {
				b.Fatal(err)
			}
		}
		ours += (cputime.Spent() - begun) / 8
	}
	b.ReportMetric(float64(std)/float64(ours), "x-json")
	b.ReportMetric(float64(len(bin)*b.N)/ours.Seconds()/1e6, "MB/s")
	b.ReportMetric(0, "ns/op")
}

// loadAllOurs reads a tape and drops its records, as loadAllStd does.
func loadAllOurs(bin []byte) error {
	r, err := tape.NewReader(bytes.NewReader(bin), "bench")
	if err != nil {
		return err
	}
	for _, err := range r.Records() {
		if err != nil {
			return err
		}
	}
	return nil
}

// loadAllStd reads a tape with encoding/json.
func loadAllStd(bin []byte) error {
	lines := bufio.NewReaderSize(bytes.NewReader(bin), 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := loadStd(line); err != nil {
			return err
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

// BenchmarkAppend records to a file, and writes the same lines to another with the same system calls: a tape is handed on in whole lines, and
// of writes that do not end where a page does the kernel makes half as much again as of those of a bufio.Writer. x-raw is the time of the
// one over the time of the other, that of the processor, kernel and all, for the pace of the disk is nobody's doing; the
// median of the rounds, each of appendRound records: -benchtime 20x is 1,000,000 records. Big are the records of a run with
// calls of a model, small are clocks and files.
func BenchmarkAppend(b *testing.B) {
	const appendRound = 50_000
	big := benchRecords(b)
	var small []*tape.Record
	for _, r := range big {
		switch r.Kind.(type) {
		case *tape.ClockRead, *tape.ClockSleep, *tape.FileRead:
			small = append(small, r)
		}
	}
	for name, records := range map[string][]*tape.Record{"big": big, "small": small} {
		b.Run(name, func(b *testing.B) {
			lines := bytes.SplitAfter(benchTape(b, records), []byte("\n"))[1:]
			lines = lines[:len(records)]
			var size int64
			var ratios []float64
			var took time.Duration
			for b.Loop() {
				raw, _ := timeFile(b, func(f *os.File) error { return copyLines(f, lines, appendRound) })
				ours, n := timeFile(b, func(f *os.File) error { return recordAll(f, records, appendRound) })
				ratios = append(ratios, float64(ours)/float64(raw))
				size, took = size+n, took+ours
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "x-raw")
			b.ReportMetric(float64(took.Nanoseconds())/float64(appendRound*len(ratios)), "ns/record")
			b.ReportMetric(float64(size)/took.Seconds()/1e6, "MB/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// timeFile returns how long write takes with a new file, and how long the file is then, in bytes.
func timeFile(b *testing.B, write func(*os.File) error) (time.Duration, int64) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "run.tape")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	begun := cputime.Spent()
	err = errors.Join(write(f), f.Close())
	took := cputime.Spent() - begun
	info, statErr := os.Stat(path)
	if err := errors.Join(err, statErr, os.Remove(path)); err != nil {
		b.Fatal(err)
	}
	return took, info.Size()
}

// recordAll records n records, as a program does that knows their kinds alone.
func recordAll(f *os.File, records []*tape.Record, n int) error {
	w, err := tape.NewWriter(f, &tape.Header{Producer: "bench"})
	if err != nil {
		return err
	}
	rec := tape.NewRecorder(w, nil)
	for i := range n {
		if err := rec.Record(records[i%len(records)].Kind); err != nil {
			return err
		}
	}
	return rec.Flush()
}

// copyLines writes n finished lines, whole ones at a time.
func copyLines(f *os.File, lines [][]byte, n int) error {
	var buf []byte
	for i := range n {
		if buf = append(buf, lines[i%len(lines)]...); len(buf) >= 64<<10 || i == n-1 {
			if _, err := f.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}

// off is a recorder that is not there; the compiler does not know it.
var off *tape.Recorder

// BenchmarkNilRecorder is the cost of a hook where nothing is recorded, with all that one calls: no time worth a name, no
// allocation.
func BenchmarkNilRecorder(b *testing.B) {
	const hooks = 1000
	k, body := &tape.ClockSleep{}, []byte("a body")
	b.ReportAllocs()
	for b.Loop() {
		for range hooks {
			if p, err := off.Payload(body); p != nil || err != nil || off.Record(k) != nil || off.Enabled() {
				b.Fatal("a nil recorder does something")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hooks), "ns/hook")
}
