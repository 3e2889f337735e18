package tape_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cas/castest"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func newRecorder(t testing.TB, buf *bytes.Buffer, o *tape.RecorderOptions) *tape.Recorder {
	t.Helper()
	w, err := tape.NewWriter(buf, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return tape.NewRecorder(w, o)
}

func loadAll(t testing.TB, b []byte) []*tape.Record {
	t.Helper()
	r, err := tape.NewReader(bytes.NewReader(b), "tape")
	if err != nil {
		t.Fatal(err)
	}
	var all []*tape.Record
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

func TestProducersSideBySideGetOneOrder(t *testing.T) {
	const producers, each = 16, 100
	var buf bytes.Buffer
	var ticks int64
	rec := newRecorder(t, &buf, &tape.RecorderOptions{Now: func() (int64, int64) { ticks++; return ticks, ticks }})
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() { produce(t, rec, p, each) })
	}
	wg.Wait()
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	all := loadAll(t, buf.Bytes())
	if len(all) != producers*each || rec.Count() != len(all) {
		t.Fatalf("%d records on the tape, %d counted", len(all), rec.Count())
	}
	next := map[string]int{} // what each producer recorded stands in its own order
	var g uint64
	for i, r := range all {
		if r.Seq != uint64(i) || r.G <= g || r.MonotonicMS != int64(i+1) {
			t.Fatalf("record %d has seq %d, g %d behind %d, time %d", i, r.Seq, r.G, g, r.MonotonicMS)
		}
		g = r.G
		k := r.Kind.(*tape.WSClose)
		if k.Code != next[k.Reason] {
			t.Fatalf("producer %s: %d where %d was due", k.Reason, k.Code, next[k.Reason])
		}
		next[k.Reason]++
	}
}

func produce(t *testing.T, rec *tape.Recorder, producer, n int) {
	for i := range n {
		rec.Ordinal() // a chunk that stands elsewhere
		if err := rec.Record(&tape.WSClose{Code: i, Reason: fmt.Sprint(producer)}); err != nil {
			t.Error(err)
		}
		if i%10 == 0 {
			if err := rec.Flush(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRecorderStampsPhaseTimeAndOrdinal(t *testing.T) {
	var buf bytes.Buffer
	rec := newRecorder(t, &buf, &tape.RecorderOptions{Now: func() (int64, int64) { return 1700000000000, 5 }})
	if g := rec.Ordinal(); g != 1 {
		t.Errorf("first ordinal is %d", g)
	}
	rec.SetPhase(tape.PhaseRuntimeFinalize)
	raw := []tape.RawBytes{{Key: "name", Bytes: []byte("\xff")}}
	if err := rec.RecordRaw(&tape.EnvRead{VarName: "\xff"}, raw); err != nil {
		t.Fatal(err)
	}
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"record","seq":0,"phase":"runtime_finalize","virtual_time_ms":1700000000000,"monotonic_ms":5,` +
		`"kind":{"kind":"env_read","name":"` + "\ufffd" + `"},"g":2,"raw":{"name":"/w=="}}`
	if _, got, _ := strings.Cut(buf.String(), "\n"); got != want+"\n" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRecorderPutsPayloadsBeforeItReturns(t *testing.T) {
	store := cas.NewMemory()
	rec := newRecorder(t, &bytes.Buffer{}, &tape.RecorderOptions{Store: store})
	for _, tt := range []struct {
		in     string
		inline bool
	}{
		{"", true}, {strings.Repeat("a", tape.InlineLimit), true}, {strings.Repeat("a", tape.InlineLimit+1), false},
		{strings.Repeat("é", tape.InlineLimit/2), true}, {"\xff", false},
	} {
		p, err := rec.Payload([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		if p.Inline != tt.inline || p.Len != int64(len(tt.in)) || p.Hash != cas.Sum([]byte(tt.in)) {
			t.Errorf("payload of %d bytes: %+v", len(tt.in), p)
		}
		if b, err := p.Bytes(store); err != nil || string(b) != tt.in {
			t.Errorf("payload of %d bytes resolves to %d, %v", len(tt.in), len(b), err)
		}
	}
}

// TestBorrowedPayloadsAreWrittenAsOthers: the memory of one may be used again once its record is written, and other payloads are copies.
func TestBorrowedPayloadsAreWrittenAsOthers(t *testing.T) {
	texts := []string{"", "some text", strings.Repeat("long ", tape.InlineLimit), "\xff\x00"}
	made := func(payload func(*tape.Recorder, []byte) (*tape.Payload, error)) string {
		var buf bytes.Buffer
		rec := newRecorder(t, &buf, &tape.RecorderOptions{Now: func() (wall, monotonic int64) { return 1, 1 }})
		b := make([]byte, 0, 2*len(texts[2]))
		for _, text := range texts {
			b = append(b[:0], text...)
			p, err := payload(rec, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := rec.Record(&tape.WSMessage{Opcode: "text", Payload: p}); err != nil {
				t.Fatal(err)
			}
		}
		if err := rec.Flush(); err != nil {
			t.Fatal(err)
		}
		return buf.String()
	}
	borrowed := made((*tape.Recorder).Borrow)
	copied := made(func(rec *tape.Recorder, b []byte) (*tape.Payload, error) {
		p, err := rec.Payload(b)
		clear(b)
		return p, err
	})
	if borrowed != copied {
		t.Errorf("got\n%swant\n%s", borrowed, copied)
	}
}

var errFull = errors.New("no space left")

func TestTheFirstFailureSticks(t *testing.T) {
	for name, fail := range map[string]func(*tape.Recorder, *castest.Fake) error{
		"payload": func(r *tape.Recorder, s *castest.Fake) error {
			s.FailPut = func() error { return errFull }
			_, err := r.Payload([]byte("\xff"))
			return err
		},
		"record": func(r *tape.Recorder, _ *castest.Fake) error {
			return r.Record(&tape.PolicyVerdict{State: []byte(`{"cut`)})
		},
		"no kind": func(r *tape.Recorder, _ *castest.Fake) error { return r.Record(nil) },
		"beside the tape": func(r *tape.Recorder, _ *castest.Fake) error {
			r.Fail(nil)
			r.Fail(errFull)
			r.Fail(errors.New("a later one"))
			return errFull
		},
	} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			store := castest.NewFake()
			var told []error
			var rec *tape.Recorder
			rec = newRecorder(t, &buf, &tape.RecorderOptions{Store: store, Failed: func(err error) {
				told = append(told, err, rec.Err())
			}})
			if err := fail(rec, store); err == nil || !errors.Is(rec.Err(), err) {
				t.Errorf("failed with %v and keeps %v", err, rec.Err())
			}
			if err := rec.Record(&tape.ClockSleep{}); err == nil {
				t.Error("recorded behind a gap")
			}
			if err := rec.Flush(); err == nil {
				t.Error("flushed as if nothing was lost")
			}
			if n := len(loadAll(t, buf.Bytes())); n != 0 || rec.Count() != 0 {
				t.Errorf("%d records on the tape, %d counted", n, rec.Count())
			}
			if len(told) != 2 || !errors.Is(told[0], rec.Err()) || !errors.Is(told[1], rec.Err()) {
				t.Errorf("told of %v", told)
			}
		})
	}
}

// failingWriter takes its first n bytes.
type failingWriter struct{ n int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return len(b) + w.n, errFull
	}
	return len(b), nil
}

func TestAFullDiskEndsTheTape(t *testing.T) {
	w, err := tape.NewWriter(&failingWriter{n: 200}, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, nil)
	if err := rec.Record(&tape.EnvRead{VarName: strings.Repeat("a", 1000)}); err != nil {
		t.Fatal(err)
	}
	if err := rec.Flush(); !errors.Is(err, errFull) {
		t.Errorf("Flush: %v", err)
	}
	if err := w.Append(&tape.Record{Kind: &tape.ClockSleep{}}); !errors.Is(err, errFull) {
		t.Errorf("Append: %v", err)
	}
	if _, err := tape.NewWriter(&failingWriter{n: 20}, &tape.Header{}); !errors.Is(err, errFull) {
		t.Errorf("NewWriter: %v", err)
	}
}

func TestFlushIsTheBarrier(t *testing.T) {
	var buf bytes.Buffer
	var synced []int
	w, err := tape.NewWriter(&buf, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Sync: func() error { synced = append(synced, buf.Len()); return nil }})
	if err := rec.Record(&tape.ClockSleep{}); err != nil {
		t.Fatal(err)
	}
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := len(loadAll(t, buf.Bytes())); n != 1 || len(synced) != 1 || synced[0] != buf.Len() {
		t.Errorf("%d records, synced at %v of %d bytes", n, synced, buf.Len())
	}
}

func TestANilRecorderCostsNothing(t *testing.T) {
	var rec *tape.Recorder
	k, body := &tape.ClockSleep{}, []byte("\xff")
	allocs := testing.AllocsPerRun(100, func() {
		p, err := rec.Payload(body)
		if p != nil || err != nil || rec.Record(k) != nil || rec.RecordRaw(k, nil) != nil || rec.Ordinal() != 0 ||
			rec.Flush() != nil || rec.Count() != 0 || rec.Err() != nil || rec.Store() != nil || rec.Enabled() {
			t.Error("a nil recorder did something")
		}
		rec.SetPhase(tape.PhaseRuntimeFinalize)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestARecordIsNotAllocated(t *testing.T) {
	w, err := tape.NewWriter(io.Discard, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, nil)
	p, err := rec.Payload([]byte("a body"))
	if err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(100, func() {
		err := errors.Join(
			rec.Record(&tape.LLMCall{Model: "m", Exchange: tape.Exchange{RequestDigest: p.Hash, RequestPayload: p, Response: p}}),
			rec.Record(&tape.FileWrite{File: tape.File{Path: "a", ContentHash: p.Hash, LenBytes: p.Len, Content: p}}),
			rec.Record(&tape.EnvRead{VarName: "A", Value: p}),
			rec.RecordRaw(&tape.ProcessSpawn{Program: "p", Stdout: p, Stderr: p}, nil),
		)
		if err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
