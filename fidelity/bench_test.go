package fidelity

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// benchKind is record i of a run: files, clocks, tools and, every tenth, a model call with its chunks.
func benchKind(i int) tape.Kind {
	switch i % 10 {
	case 0:
		headers := []tape.HeaderField{{Name: "content-type", Value: "application/json"}, {Name: "user-agent", Value: "agent/1.2.3"}}
		body := fmt.Sprintf(`{"model":"a-model","messages":[{"role":"user","content":"step %d: %s"}]}`, i, strings.Repeat("words ", 20))
		answer := strings.Repeat(`data: {"type":"delta","text":"some words"}`+"\n\n", 8)
		c := &tape.LLMCall{
			Provider: "anthropic", Endpoint: "messages", Model: "a-model", ParamsDigest: sum("params"),
			Exchange: tape.Exchange{
				Method: "POST", URL: "https://api.example.com/v1/messages", RequestHeaders: headers, RequestDigest: sum(body),
				RequestPayload: inline(body), Status: 200, ResponseHeaders: headers, Response: inline(answer),
				Lane: fmt.Sprintf("llm:%d", i/10%8), Arrival: uint64(i/10 + 1),
			},
		}
		for n := range 8 {
			c.Stream = append(c.Stream, tape.Chunk{Offset: int64(44 * n), Length: 44, TMS: int64(n), G: uint64(n + 1)})
		}
		return c
	case 1, 6:
		return &tape.ClockRead{Source: "wall", ValueMS: 1767225600000 + int64(i)}
	case 2:
		out := fmt.Sprintf("on branch main, step %d\n", i)
		return &tape.ProcessSpawn{
			Program: "/usr/bin/git", Args: []string{"status", "--short"}, Stdout: inline(out), Stderr: inline(""),
			StdoutDigest: sum(out), StderrDigest: sum(""), SpawnID: uint64(i), ParentSpawnID: 1,
		}
	case 3:
		return &tape.ClockSleep{DurationMS: int64(i % 1000)}
	case 4:
		return &tape.MCPJSONRPC{
			Server: "files", Method: "tools/call", RequestDigest: sum(fmt.Sprint("q", i)), ResponseDigest: sum(fmt.Sprint("r", i)),
			Request: inline(fmt.Sprintf(`{"id":%d,"method":"tools/call"}`, i)), Response: inline(fmt.Sprintf(`{"id":%d,"result":{}}`, i)),
		}
	}
	path := fmt.Sprintf("src/package%d/file%d.go", i%97, i)
	return &tape.FileRead{File: tape.File{Path: path, ContentHash: sum(path), ContentDigest: sum(path), LenBytes: 1234, Mode: "100644"}}
}

// benchBytes encodes a tape of n records. Where different is set, one record in a thousand is another one and one in ten
// thousand is inserted.
func benchBytes(b testing.TB, n int, different bool) []byte {
	b.Helper()
	var buf bytes.Buffer
	w, err := tape.NewWriter(&buf, &tape.Header{Producer: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	seq := uint64(0)
	put := func(k tape.Kind) {
		rec := &tape.Record{Seq: seq, VirtualTimeMS: 1767225600000 + int64(seq), MonotonicMS: int64(seq), Kind: k, G: seq + 1}
		if err := w.Append(rec); err != nil {
			b.Fatal(err)
		}
		seq++
	}
	for i := range n {
		if different && i%10_000 == 5000 {
			put(&tape.EnvRead{VarName: "INSERTED"})
		}
		k := benchKind(i)
		if different && i%1000 == 500 {
			k = benchKind(i + 10*n)
		}
		put(k)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

// recordsIn yields the records of an encoded tape.
func recordsIn(b testing.TB, encoded []byte) Records {
	r, err := tape.NewReader(bytes.NewReader(encoded), "bench")
	if err != nil {
		b.Fatal(err)
	}
	return r.Records()
}

// BenchmarkTapes compares two tapes of 1,000,000 records (20,000 with -short) and reports x_load: how long it took, loading
// included, by how long loading both alone took in the same process. 1 is for free; less is because both are read at once.
// x_load_cpu is the same of the time on the processors. One run each is enough:
//
//	go test ./fidelity -run '^$' -bench BenchmarkTapes -benchtime 1x
//
// Modes that hold the records (aligned, lanes) are held against loading both tapes into slices, as they do.
func BenchmarkTapes(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 20_000
	}
	recorded := benchBytes(b, n, false)
	for _, replay := range []struct {
		name  string
		bytes []byte
	}{{"same", recorded}, {"different", benchBytes(b, n, true)}} {
		for _, c := range benchCompares {
			b.Run(replay.name+"/"+c.name, func(b *testing.B) { benchCompare(b, recorded, replay.bytes, c) })
		}
	}
}

// A benchmarked is one way to compare.
type benchmarked struct {
	name    string
	holds   bool // the records of both tapes
	compare func(recorded, replay Records) (*Report, error)
}

var benchCompares = []benchmarked{
	{"semantic", false, func(a, b Records) (*Report, error) { return Compare(Semantic, a, b) }},
	{"byte-identical", false, func(a, b Records) (*Report, error) { return Compare(ByteIdentical, a, b) }},
	{"outcome", false, func(a, b Records) (*Report, error) { return Compare(Outcome, a, b) }},
	{"phase-aware", false, func(a, b Records) (*Report, error) { return Compare(PhaseAware, a, b) }},
	{"aligned", true, func(a, b Records) (*Report, error) { return CompareTapes(Semantic, a, b, &TapeOptions{Aligned: true}) }},
	{"lanes", true, func(a, b Records) (*Report, error) { return CompareLanes(Semantic, a, b, nil) }},
}

func benchCompare(b *testing.B, recorded, replay []byte, c benchmarked) {
	var loads, compares, loadsCPU, comparesCPU time.Duration
	var divergences int
	for range b.N {
		runtime.GC()
		begun, cpu := time.Now(), cputime.Spent()
		keep := [2][]*tape.Record{}
		for s, encoded := range [][]byte{recorded, replay} {
			for rec, err := range recordsIn(b, encoded) {
				if err != nil {
					b.Fatal(err)
				}
				if c.holds {
					keep[s] = append(keep[s], rec)
				}
			}
		}
		loads += time.Since(begun)
		loadsCPU += cputime.Spent() - cpu
		runtime.KeepAlive(keep)
		runtime.GC()
		begun, cpu = time.Now(), cputime.Spent()
		r, err := c.compare(recordsIn(b, recorded), recordsIn(b, replay))
		compares += time.Since(begun)
		comparesCPU += cputime.Spent() - cpu
		if err != nil {
			b.Fatal(err)
		}
		divergences = r.Total()
	}
	b.ReportMetric(compares.Seconds()/loads.Seconds(), "x_load")
	b.ReportMetric(comparesCPU.Seconds()/loadsCPU.Seconds(), "x_load_cpu")
	b.ReportMetric(loads.Seconds()/float64(b.N), "load_s")
	b.ReportMetric(compares.Seconds()/float64(b.N), "compare_s")
	b.ReportMetric(float64(divergences), "divergences")
	b.ReportMetric(0, "ns/op")
}

// TestMemoryOfPositionalComparisonIsBounded compares tapes of which one is ten times as long as the other: what is held at any
// time is no more, that is it does not grow with the tape.
func TestMemoryOfPositionalComparisonIsBounded(t *testing.T) {
	n := 20_000
	if longTests() {
		n = 1_000_000
	}
	for _, different := range []bool{false, true} {
		short, long := heldBy(t, n/10, different), heldBy(t, n, different)
		t.Logf("different %v: %d kB held for %d records, %d kB for %d", different, short>>10, n/10, long>>10, n)
		slack := uint64(4 << 20)
		if different {
			slack += MaxDivergences * 2 << 10 // the list, which is full in the longer one
		}
		if long > short+slack {
			t.Errorf("different %v: %d bytes held for %d records, %d for %d", different, short, n/10, long, n)
		}
	}
}

// heldBy is the most, in bytes, that comparing two tapes of n records holds beside the tapes themselves.
func heldBy(t *testing.T, n int, different bool) uint64 {
	t.Helper()
	recorded, replay := benchBytes(t, n, false), benchBytes(t, n, different)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	probed := func(yield func(*tape.Record, error) bool) {
		at := 0
		for rec, err := range recordsIn(t, recorded) {
			if at++; at%(n/20) == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
			}
			if !yield(rec, err) {
				return
			}
		}
	}
	if _, err := Compare(Semantic, probed, recordsIn(t, replay)); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive([][]byte{recorded, replay})
	return most
}
