package exchange_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// BenchmarkSocketMessage records messages of 1 KiB, of which no two are equal, on a tape on the disk: text is JSON.
func BenchmarkSocketMessage(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "run.tape"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w, err := tape.NewWriter(f, &tape.Header{Producer: "test"})
	if err != nil {
		b.Fatal(err)
	}
	rec := tape.NewRecorder(w, nil)
	g := &rig{t: b, tap: exchange.NewTap(rec, classifier{}, newScrubber(), nil)}
	s := g.socket("https://h.test/any")
	var messages [][]byte
	for i := range 1000 {
		messages = append(messages, fmt.Appendf(nil, `{"type":"input","n":%d,"text":"%s"}`, i, strings.Repeat("some words, ", 82)))
	}
	b.SetBytes(int64(len(messages[0])))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m := messages[i%len(messages)]
		i++
		if err := s.Message(exchange.FromServer, &exchange.SocketMessage{Opcode: exchange.TextMessage, Payload: m}); err != nil {
			b.Fatal(err)
		}
	}
}
