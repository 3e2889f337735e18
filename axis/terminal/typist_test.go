package terminal_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

func TestPassRemembersWhatWasPrintedBefore(t *testing.T) {
	typist := terminal.NewTypist()
	r, w := io.Pipe()
	noted := make(chan struct{})
	go func() {
		io.WriteString(typist, "name? ")
		io.WriteString(w, "ada\n")
		<-noted // the program prints only what answers the keys
		io.WriteString(typist, "age?")
		io.WriteString(w, "36\n")
		<-noted
		w.Close()
	}()
	var to strings.Builder
	var typed []terminal.Input
	err := typist.Pass(&to, r, func(in terminal.Input) {
		in.AtMS = 0 // the wall clock's
		typed = append(typed, in)
		noted <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []terminal.Input{{After: 6, Len: 4}, {After: 10, Len: 3}}; !slices.Equal(typed, want) || to.String() != "ada\n36\n" {
		t.Errorf("typed %v, passed %q", typed, &to)
	}
}

func TestPlayWaitsForThePromptOrForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		typist := terminal.NewTypist()
		r, w := io.Pipe()
		begun := time.Now()
		go typist.Play(w, strings.NewReader("ada\n36\n"), []terminal.Input{{After: 6, Len: 4}, {After: 100, Len: 3}})
		go func() {
			time.Sleep(100 * time.Millisecond)
			io.WriteString(typist, "name? ")
		}()
		buf := make([]byte, 10)
		n, _ := r.Read(buf)
		if got := time.Since(begun); string(buf[:n]) != "ada\n" || got != 100*time.Millisecond {
			t.Errorf("%q after %v", buf[:n], got)
		}
		n, _ = r.Read(buf)
		if got := time.Since(begun); string(buf[:n]) != "36\n" || got != 400*time.Millisecond {
			t.Errorf("%q after %v", buf[:n], got)
		}
	})
}

// TestPlay types what was recorded where the recorded bytes are not those that were typed: a secret among them has been
// replaced by a placeholder of another length.
func TestPlay(t *testing.T) {
	for _, test := range []struct {
		name  string
		from  string
		typed []terminal.Input
		want  []string // write by write
	}{
		{"nothing", "", nil, nil},
		{"as typed", "a\nb\n", []terminal.Input{{Len: 2}, {Len: 2}}, []string{"a\n", "b\n"}},
		{"a longer secret last", "a\n<secret>\n", []terminal.Input{{Len: 2}, {Len: 4}}, []string{"a\n", "<secret>\n"}},
		{"a longer secret first", "<secret>\nb\n", []terminal.Input{{Len: 4}, {Len: 2}}, []string{"<sec", "ret>\nb\n"}},
		{"a shorter secret", "<s>\nb\n", []terminal.Input{{Len: 9}, {Len: 2}}, []string{"<s>\nb\n"}},
		{"more runs than bytes", "a", []terminal.Input{{Len: 1}, {Len: 1}, {Len: 1}}, []string{"a"}},
		{"a run of no length", "ab", []terminal.Input{{Len: 0}, {Len: -1}, {Len: 2}}, []string{"ab"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var to writes
			if err := terminal.NewTypist().Play(&to, strings.NewReader(test.from), test.typed); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(to, test.want) {
				t.Errorf("typed %q, want %q", to, test.want)
			}
		})
	}
}

// writes are what was written, write by write; one of nothing types nothing.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*w = append(*w, string(p))
	}
	return len(p), nil
}

func TestTypistFails(t *testing.T) {
	gone := errors.New("gone")
	r, w := io.Pipe()
	r.CloseWithError(gone)
	typed := 0
	err := terminal.NewTypist().Pass(w, strings.NewReader("x"), func(terminal.Input) { typed++ })
	if !errors.Is(err, gone) || typed != 1 {
		t.Errorf("Pass to a terminal that is gone: %v, %d runs", err, typed)
	}
	if err := terminal.NewTypist().Pass(io.Discard, r, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Pass from a reader that fails: %v", err)
	}
	if err := terminal.NewTypist().Play(w, strings.NewReader("x"), []terminal.Input{{Len: 1}}); !errors.Is(err, gone) {
		t.Errorf("Play to a terminal that is gone: %v", err)
	}
}

// TestPlayHoldsSignalKeys types Ctrl-C no earlier than it was typed, and other keys as soon as their prompt stands.
func TestPlayHoldsSignalKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		typist, begun := terminal.NewTypist(), time.Now()
		typed := []terminal.Input{{Len: 1, AtMS: 1000}, {Len: 1, AtMS: 2000}}
		var at []time.Duration
		to := writerFunc(func(p []byte) (int, error) {
			at = append(at, time.Since(begun))
			return len(p), nil
		})
		if err := typist.Play(to, strings.NewReader("q\x03"), typed); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(at, []time.Duration{0, 2 * time.Second}) {
			t.Errorf("typed at %v", at)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
