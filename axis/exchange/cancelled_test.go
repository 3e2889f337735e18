package exchange_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestLastOfCancelled gives the last chunk of an answer that the program had cancelled a moment after the others, for it may
// have been this one that it did not want; any other answer comes at once.
func TestLastOfCancelled(t *testing.T) {
	const text = "abc"
	chunks := []tape.Chunk{{Length: 1}, {Offset: 1, Length: 1}, {Offset: 2, Length: 1}}
	for name, tt := range map[string]struct {
		cut    string
		chunks []tape.Chunk
		speed  float64
		want   bool
	}{
		"cancelled":                  {tape.Cancelled, chunks, 0, true},
		"cancelled, one chunk":       {tape.Cancelled, nil, 0, false},
		"cancelled, at its own pace": {tape.Cancelled, chunks, 1, false},
		"whole":                      {"", chunks, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ex := &tape.Exchange{
					Method: "GET", Status: 200, Error: tt.cut, Stream: tt.chunks,
					Response: &tape.Payload{Hash: cas.Sum([]byte(text)), Text: text, Inline: true, Len: int64(len(text))},
				}
				b, err := exchange.OpenAnswer(nil, ex, &exchange.AnswerOptions{Speed: tt.speed})
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				begun, before := time.Now(), time.Duration(0)
				for range max(1, len(tt.chunks)) {
					before = time.Since(begun)
					if _, err := b.Next(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if waited := time.Since(begun) - before; (waited > 0) != tt.want || before > 0 {
					t.Errorf("the last came after %v, the others after %v", waited, before)
				}
			})
		})
	}
}
