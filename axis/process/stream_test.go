package process_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestStreamKeeps(t *testing.T) {
	for _, test := range []struct {
		name   string
		stream string
		inline bool
	}{
		{"nothing", "", true},
		{"the longest inline", strings.Repeat("x", tape.InlineLimit), true},
		{"a byte longer", strings.Repeat("x", tape.InlineLimit+1), false},
		{"not UTF-8", "\xff\xfe", false},
		{"half a rune", "caf\xc3", false},
		{"the longest in memory", strings.Repeat("x", spool.Limit), false},
		{"longer", strings.Repeat("0123456789\n", spool.Limit/4), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := cas.NewMemory()
			s := newStream(store)
			if n, err := io.WriteString(s, test.stream); n != len(test.stream) || err != nil {
				t.Fatal(n, err)
			}
			kept, b := finish(t, s, store)
			if string(b) != test.stream || kept.Payload.Inline != test.inline || kept.Payload.Len != int64(len(b)) {
				t.Errorf("%d bytes of %d, inline %v", len(b), len(test.stream), kept.Payload.Inline)
			}
			if !kept.Masked {
				t.Error("not masked")
			}
			if again, err := s.Finish(); again != kept || err != nil {
				t.Error("a second Finish differs", again, err)
			}
			if n, err := io.WriteString(s, "late"); n != 4 || err != nil {
				t.Error("Write after Finish:", n, err)
			}
		})
	}
}

// TestDigestsMask compares what two runs print that differ in volatile facts only, then in more.
func TestDigestsMask(t *testing.T) {
	digest := func(text string) cas.Digest {
		store := cas.NewMemory()
		s := newStream(store)
		io.WriteString(s, text)
		kept, _ := finish(t, s, store)
		return kept.Digest
	}
	if digest("at 2026-01-02T03:04:05Z\n") != digest("at 2026-11-12T13:14:15Z\n") {
		t.Error("a time of day is a difference")
	}
	if digest("one\n") == digest("two\n") {
		t.Error("a word is none")
	}
}

// TestSecretOverWrites cuts a secret at every byte, where the stream is short and where it is spooled.
func TestSecretOverWrites(t *testing.T) {
	for _, before := range []int{0, spool.Limit} {
		for cut := 1; cut < len(secret); cut += 1 + before/spool.Limit*9 {
			store := cas.NewMemory()
			s := newStream(store)
			io.WriteString(s, strings.Repeat(".", before)+secret[:cut])
			io.WriteString(s, secret[cut:]+"\n")
			finish(t, s, store)
			if _, b := finish(t, s, store); bytes.Contains(b, []byte(secret)) || len(b) <= before+1 {
				t.Errorf("cut at %d after %d bytes: %q", cut, before, b[before:])
			}
			for d := range store.All() {
				if b, err := store.Get(d); err != nil || bytes.Contains(b, []byte(secret)) {
					t.Errorf("cut at %d after %d bytes: blob %s holds it (%v)", cut, before, d, err)
				}
			}
		}
	}
}

// TestLongStream passes more than MaskLimit and sees that it costs no memory and is compared by its bytes.
func TestLongStream(t *testing.T) {
	store, err := cas.OpenDir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(store)
	var peak, m runtime.MemStats
	runtime.ReadMemStats(&m)
	begin := m.HeapAlloc
	chunk := bytes.Repeat([]byte("at 2026-01-02T03:04:05Z\n"), 40_000)
	var n int64
	for n <= process.MaskLimit {
		if _, err := s.Write(chunk); err != nil {
			t.Fatal(err)
		}
		n += int64(len(chunk))
		if runtime.ReadMemStats(&m); m.HeapAlloc > peak.HeapAlloc {
			peak = m
		}
	}
	kept, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if kept.Masked || kept.Digest != kept.Payload.Hash || kept.Payload.Len != n {
		t.Errorf("%+v of %d bytes", kept, n)
	}
	if grown := int64(peak.HeapAlloc) - int64(begin); grown > process.MaskLimit/2 {
		t.Errorf("%d bytes of memory for a stream of %d", grown, n)
	}
}

// TestFinishWaitsForWrite finishes while the store still holds a Write up.
func TestFinishWaitsForWrite(t *testing.T) {
	store := slowStore{cas.NewMemory(), make(chan struct{}), make(chan struct{})}
	s := newStream(store)
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := s.Write(make([]byte, 2*spool.Limit)); err != nil {
			t.Error(err)
		}
	})
	<-store.begun
	wait.Go(func() {
		if kept, err := s.Finish(); err != nil || kept.Payload.Len != 2*spool.Limit {
			t.Error(kept, err)
		}
	})
	close(store.proceed)
	wait.Wait()
}

// TestFinishAmongWrites finishes at some moment of a stream that never ends: whole writes are kept.
func TestFinishAmongWrites(t *testing.T) {
	store := cas.NewMemory()
	s := newStream(store)
	begun, done := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; ; i++ {
			if _, err := io.WriteString(s, "abcd"); err != nil {
				t.Error(err)
			}
			if i == 100 {
				close(begun)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	<-begun
	_, b := finish(t, s, store)
	close(done)
	wait.Wait()
	if len(b) < 400 || strings.Trim(string(b), "abcd") != "" || len(b)%4 != 0 {
		t.Errorf("%d bytes", len(b))
	}
}

func TestStoreFails(t *testing.T) {
	for _, size := range []int{tape.InlineLimit + 1, 2 * spool.Limit} {
		s := newStream(fullStore{cas.NewMemory()})
		s.Write(make([]byte, size)) // whether it fails here already is the size's matter
		if kept, err := s.Finish(); kept != nil || !errors.Is(err, errFull) {
			t.Errorf("%d bytes: %v, %v", size, kept, err)
		}
	}
}

// TestTerminalStreamGoesOn draws the second row of a secret where what was held before it has been passed on.
func TestTerminalStreamGoesOn(t *testing.T) {
	t.Parallel()
	const first, second = "sk-ant-api03-Qm4xT9v", "Lr2Wp8Zk1Nd5Hs7Gb3Yc"
	store := cas.NewMemory()
	s := process.NewTerminalStream(store, scrub.New(scrub.Key{}, nil), masks.New(nil), 24, 80)
	s.Resize(24, 20)
	head := strings.Repeat("a line\r\n", 1<<20/8-8) + "\x1b[2J\x1b[5;1H" + first
	head += strings.Repeat("\x1b[m", (1<<20-len(head))/3)
	head += strings.Repeat("\x00", 1<<20-len(head))
	io.WriteString(s, head)
	io.WriteString(s, "\x1b[6;1H"+second+"\x1b[8;1Hnext")
	_, b := finish(t, s, store)
	tail := "\x1b[6;1H" + strings.Repeat("*", len(second)) + "\x1b[8;1Hnext"
	if text := string(b); !strings.HasSuffix(text, tail) || strings.Count(text, "a line\r\n") != 1<<20/8-8 {
		t.Errorf("%d bytes, which end in %q", len(text), text[len(text)-60:])
	}
}

// TestTerminalStream masks what only the screen has whole, of the size that it has then, and replaces the rest.
func TestTerminalStream(t *testing.T) {
	const key = "sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0Ae"
	store := cas.NewMemory()
	sc := scrub.New(scrub.Key{}, nil)
	s := process.NewTerminalStream(store, sc, masks.New(nil), 24, 80)
	io.WriteString(s, "a "+key+"\r\n")
	s.Resize(24, 20)
	io.WriteString(s, "\x1b[2J\x1b[5;1H"+key[:20]+"\x1b[6;1H"+key[20:40]+"\x1b[7;1H"+key[40:]+"\x1b[8;1Hnext")
	_, b := finish(t, s, store)
	want := "a " + sc.String(key) + "\r\n\x1b[2J\x1b[5;1H" + strings.Repeat("*", 20) + "\x1b[6;1H" + strings.Repeat("*", 20) + "\x1b[7;1H" + strings.Repeat("*", len(key)-40) + "\x1b[8;1Hnext"
	if string(b) != want {
		t.Errorf("%q, want %q", b, want)
	}
}
