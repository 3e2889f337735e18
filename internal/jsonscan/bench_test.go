package jsonscan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// transcript is a line as agents write them: some keys, and text that is JSON or source itself.
func transcript() []byte {
	text := strings.Repeat("The file has \"quoted\" words,\n\ttabs, a \\ and some prose that goes on for a while without any of them. ", 30)
	b := fmt.Appendf(nil, `{"uuid":"0b2c","parentUuid":null,"timestamp":"2026-01-01T00:00:00.000Z","sessionId":"x","version":"1.0","message":{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":"c1","name":"read","input":{"path":"src/main.go","limit":100,"offset":-1.5e3}}],"usage":{"input_tokens":1234,"output_tokens":56,"cached":true}}}`,
		AppendText(nil, text))
	return b
}

// BenchmarkSkip steps over a line. x-json is how much faster that is than json.Valid, which does the same.
func BenchmarkSkip(b *testing.B) {
	line := transcript()
	var std, ours time.Duration
	var s Scanner
	for b.Loop() {
		begun := time.Now()
		for range 100 {
			if !json.Valid(line) {
				b.Fatal("not valid")
			}
		}
		std += time.Since(begun)
		begun = time.Now()
		for range 100 {
			s.Reset(line)
			if s.Skip(); s.End() != nil {
				b.Fatal(s.Err())
			}
		}
		ours += time.Since(begun)
	}
	b.ReportMetric(float64(std)/float64(ours), "x-json")
	b.ReportMetric(float64(100*len(line)*b.N)/ours.Seconds()/1e6, "MB/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStream steps over the elements of a long list.
func BenchmarkStream(b *testing.B) {
	list := "[" + strings.Repeat(string(transcript())+",", 1000) + "{}]"
	b.SetBytes(int64(len(list)))
	for b.Loop() {
		s := NewStream(strings.NewReader(list), 1<<20)
		for s.Begin('['); s.More(']'); {
			s.Raw()
		}
		if s.End() != nil {
			b.Fatal(s.Err())
		}
	}
}

// BenchmarkText decodes strings that are full of escapes.
func BenchmarkText(b *testing.B) {
	line := AppendText(nil, string(transcript()))
	b.SetBytes(int64(len(line)))
	var s Scanner
	for b.Loop() {
		s.Reset(line)
		if s.TextBytes(); s.End() != nil {
			b.Fatal(s.Err())
		}
	}
}
