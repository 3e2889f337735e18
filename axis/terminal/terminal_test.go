package terminal_test

import (
	"io"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

func TestParseMode(t *testing.T) {
	for text, want := range map[string]terminal.Mode{
		"": terminal.Auto, "auto": terminal.Auto, "on": terminal.On, "off": terminal.Off,
	} {
		if got, err := terminal.ParseMode(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"ON", "yes", " auto"} {
		if _, err := terminal.ParseMode(text); err == nil {
			t.Errorf("%q is a mode", text)
		}
	}
}

// TestNoTerminal asks for everything of a file that is no terminal, and of none.
func TestNoTerminal(t *testing.T) {
	file, err := os.Open("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, f := range []*os.File{file, nil} {
		if c := terminal.NewCaller([3]any{f, nil, t.Output()}); c != nil {
			t.Errorf("a terminal %+v", c)
		}
	}
	var none *terminal.Caller
	none.Release(true)
	none.Close()
	if w := none.Writer(file); w != io.Writer(file) || !none.Foreground() {
		t.Error("no terminal is in the background, or changes what is written")
	}
	if host, size := terminal.Host([3]any{file, nil, t.Output()}); host != nil || size != (terminal.Size{}) {
		t.Errorf("a host terminal %v of size %v", host, size)
	}
	if terminal.Is(file) {
		t.Error("a file is a terminal")
	}
}
