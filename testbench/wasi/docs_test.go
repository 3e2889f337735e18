package wasi_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/host"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

var example = sync.OnceValues(func() (string, error) { return build("example") })

// TestTheExampleOfTheDocumentation: what docs/reference/wasi.md shows for Go is testdata/example, and it runs.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/wasi.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/example/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, source) {
		t.Error("docs/reference/wasi.md does not hold testdata/example/main.go as it is")
	}
	for _, f := range host.Functions() {
		if !strings.Contains(string(text), "`"+f.Name+"`") {
			t.Errorf("docs/reference/wasi.md does not name %s", f.Name)
		}
	}
	c := agentConfig(t)
	c.Unused = true // it asks the model once
	var out bytes.Buffer
	if _, err := wasi.Run(t.Context(), testbench.New(t, c), compiled(t, example), &wasi.Options{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if want := "Let me look.\n M main.go\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
