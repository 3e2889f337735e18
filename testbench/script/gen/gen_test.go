package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/script.md")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := withReference(page); err != nil || !bytes.Equal(page, want) {
		t.Errorf("docs/reference/script.md: %v: go generate ./testbench/script writes another one", err)
	}
	if want, err := typeStub(); err != nil || !bytes.Equal(script.Stub(), want) {
		t.Errorf("tapedeck.pyi: %v: go generate ./testbench/script writes another one", err)
	}
}

func TestTheStubIsPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here: nothing reads the stub")
	}
	path := filepath.Join(t.TempDir(), "tapedeck.pyi")
	if err := os.WriteFile(path, script.Stub(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
