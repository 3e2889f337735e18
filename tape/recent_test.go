package tape_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestPayloadsMadeBefore asks a recorder for the payloads of more texts than it remembers, again and again, in memory that is written
// over: each is what MakePayload makes.
func TestPayloadsMadeBefore(t *testing.T) {
	store := cas.NewMemory()
	w, err := tape.NewWriter(new(bytes.Buffer), &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: store})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var room []byte
			for i := range 2000 {
				room = append(room[:0], text(i%300)...)
				got, err := rec.Payload(room)
				if err != nil {
					t.Error(err)
					return
				}
				want, err := tape.MakePayload(store, []byte(text(i%300)))
				if err != nil || got.Hash != want.Hash || got.Text != want.Text || got.Inline != want.Inline || got.Len != want.Len {
					t.Errorf("%d: %+v, want %+v, %v", i, got, want, err)
				}
				clear(room)
			}
		})
	}
	all.Wait()
}

// text is the i-th of many: empty, short, not UTF-8, too long for a record.
func text(i int) string {
	switch i % 5 {
	case 0:
		return ""
	case 1:
		return fmt.Sprint("text ", i)
	case 2:
		return fmt.Sprint("bytes \xff ", i)
	case 3:
		return strings.Repeat(fmt.Sprint(i), tape.InlineLimit)
	}
	return strings.Repeat("x", i)
}

// TestPayloadAgainIsNoWork counts what a payload that was made before allocates.
func TestPayloadAgainIsNoWork(t *testing.T) {
	w, err := tape.NewWriter(new(bytes.Buffer), &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, nil)
	b := []byte("On branch main\n")
	n := testing.AllocsPerRun(100, func() {
		if _, err := rec.Payload(b); err != nil {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
