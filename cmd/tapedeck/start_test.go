package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// TestInitializationIsLittle asks of each package of ours what it allocates before main, which every command pays, and a recording twice.
// What is large belongs behind sync.OnceValue, expressions into package lazyregexp.
func TestInitializationIsLittle(t *testing.T) {
	const most = 32 << 10 // bytes; a few more where the race detector looks on
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := regexp.MustCompile(`(?m)^init github\.com/tapedeck-dev/tapedeck/(\S+) .* clock, (\d+) bytes`).FindAllSubmatch(out, -1)
	if len(found) < 10 {
		t.Fatalf("%d packages of ours:\n%s", len(found), out)
	}
	for _, f := range found {
		n, _ := strconv.Atoi(string(f[2]))
		if tested := string(f[1]) == "cmd/tapedeck"; !tested && n > most { // which has what its tests make, too
			t.Errorf("%s allocates %d bytes before main, at most %d are well", f[1], n, most)
		}
	}
}
