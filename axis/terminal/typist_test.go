package terminal_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

func TestPassRemembersWhatWasPrintedBefore(t *testing.T) {
	typist := terminal.NewTypist()
	r, w := io.Pipe()
	go func() {
		io.WriteString(typist, "name? ")
		io.WriteString(w, "ada\n")
		io.WriteString(typist, "age?")
		io.WriteString(w, "36\n")
		w.Close()
	}()
	var to strings.Builder
	var typed []terminal.Input
	if err := typist.Pass(&to, r, func(in terminal.Input) { typed = append(typed, in) }); err != nil {
		t.Fatal(err)
	}
	if len(typed) != 2 || typed[0].After != 6 || typed[0].Len != 4 || typed[1].Len != 3 || to.String() != "ada\n36\n" {
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
