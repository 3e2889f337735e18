package terminal_test

import (
	"errors"
	"fmt"
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
		in.AtMS, in.IdleMS = 0, 0 // the wall clock's
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
		go typist.Play(w, strings.NewReader("ada\n36\n"), []terminal.Input{{After: 6, Len: 4}, {After: 100, Len: 3}}, nil, nil)
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
			if err := terminal.NewTypist().Play(&to, strings.NewReader(test.from), test.typed, nil, nil); err != nil {
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
	if err := terminal.NewTypist().Play(w, strings.NewReader("x"), []terminal.Input{{Len: 1}}, nil, nil); !errors.Is(err, gone) {
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
		if err := typist.Play(to, strings.NewReader("q\x03"), typed, nil, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(at, []time.Duration{0, 2 * time.Second}) {
			t.Errorf("typed at %v", at)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// at runs Play in a bubble and returns when each run of one byte was typed. printed is what the program prints, and when.
func at(t *testing.T, typed []terminal.Input, printed map[time.Duration]string) (runs []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		typist, begun := terminal.NewTypist(), time.Now()
		for when, text := range printed {
			time.AfterFunc(when, func() { io.WriteString(typist, text) })
		}
		to := writerFunc(func(p []byte) (int, error) {
			runs = append(runs, time.Since(begun))
			return len(p), nil
		})
		if err := typist.Play(to, strings.NewReader(strings.Repeat("x", len(typed))), typed, nil, nil); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // until all is printed
	})
	return runs
}

func TestPlayKeepsApart(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name    string
		typed   []terminal.Input
		printed map[time.Duration]string
		want    []time.Duration
	}{
		{
			"Escape, and a key a while after it",
			[]terminal.Input{{Len: 1, AtMS: 500, IdleMS: 10}, {Len: 1, AtMS: 550, IdleMS: 60}, {Len: 1, AtMS: 9000, IdleMS: 8510}}, nil,
			[]time.Duration{10 * ms, 60 * ms, 160 * ms},
		},
		{
			"a prompt, and who reads the answer",
			[]terminal.Input{{After: 4, Len: 1, AtMS: 1000, IdleMS: 500}}, map[time.Duration]string{200 * ms: "name", 250 * ms: "?"},
			[]time.Duration{350 * ms},
		},
		{
			"a program that is slower than it was to start",
			[]terminal.Input{{After: 4, Len: 1, AtMS: 1000}}, map[time.Duration]string{1900 * ms: "name"},
			[]time.Duration{1900 * ms},
		},
		{
			"a program that prints less, waited for once",
			[]terminal.Input{{After: 10, Len: 1}, {After: 15, Len: 1}}, map[time.Duration]string{0: "12345678", 400 * ms: "90123"},
			[]time.Duration{300 * ms, 400 * ms},
		},
		{
			"a person who read for an hour",
			[]terminal.Input{{After: 10, Len: 1, AtMS: 3_600_000}}, nil,
			[]time.Duration{5000 * ms},
		},
	} {
		if got := at(t, test.typed, test.printed); !slices.Equal(got, test.want) {
			t.Errorf("%s: typed at %v, want %v", test.name, got, test.want)
		}
	}
}

// TestPlayResizes gives the terminal its sizes between the keys.
func TestPlayResizes(t *testing.T) {
	var did writes
	typed := []terminal.Input{{Len: 1}, {Rows: 9, Cols: 8, Width: 7, Height: 6}, {Len: 1}, {Rows: 5, Cols: 4}}
	err := terminal.NewTypist().Play(&did, strings.NewReader("a<secret>"), typed, func(s terminal.Size) {
		did = append(did, fmt.Sprint(s))
	}, nil)
	if want := []string{"a", "{9 8 7 6}", "<secret>", "{5 4 0 0}"}; err != nil || !slices.Equal(did, want) {
		t.Errorf("%q, %v, want %q", did, err, want)
	}
}

// TestStoppedProgram has a clock that stands still while the program is stopped.
func TestStoppedProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		typist := terminal.NewTypist()
		typist.Continue() // was not stopped
		time.Sleep(time.Second)
		typist.Pause()
		typist.Pause()
		time.Sleep(time.Hour)
		typist.Continue()
		if got, want := typist.Resized(terminal.Size{Rows: 2, Cols: 3}), (terminal.Input{AtMS: 1000, IdleMS: 3_601_000, Rows: 2, Cols: 3}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestPassPipeEnds(t *testing.T) {
	for from, want := range map[string]string{"": "\x04", "line\n": "line\n\x04", "half": "half\x04\x04", "key\r": "key\r\x04"} {
		var to strings.Builder
		if err := terminal.NewTypist().PassPipe(&to, strings.NewReader(from), func(terminal.Input) {}); err != nil || to.String() != want {
			t.Errorf("%q is typed as %q, %v", from, &to, err)
		}
	}
}
