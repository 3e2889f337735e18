package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestMillionRecords keeps a recording of a million records with every command that reads one whole, and holds the memory
// of each against a bound: none may grow with the tape. It is the long form: TAPEDECK_LONG=1 go test -run MillionRecords
// ./cmd/tapedeck (about a minute; TAPEDECK_LONG=N takes N records).
func TestMillionRecords(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("TAPEDECK_LONG"))
	if err != nil {
		t.Skip("the long form needs TAPEDECK_LONG=1")
	}
	if n == 1 {
		n = 1_000_000
	}
	dir := t.TempDir()
	exe := filepath.Join(dir, "tapedeck")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec := filepath.Join(dir, ".tapedeck", "long.rec")
	writeLong(t, rec, n)
	const bound = 96 << 20 // bytes of resident memory; the program itself takes 20 MB
	for _, args := range []string{
		"verify long", "show long", "show long --json", "show long --grep nowhere|request.12345,", "show long --tail 10 --errors", "gc",
		"pack long long.tar.zst", "unpack long.tar.zst -o again.rec",
	} {
		cmd := exec.Command(exe, strings.Fields(args)...)
		cmd.Dir = dir
		var errs bytes.Buffer
		cmd.Stderr = &errs // what goes to stdout is thrown away: the memory of this process counts as its child's first
		begun := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, &errs)
		}
		rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10 // Linux gives KiB
		t.Logf("%-34s %6.1f s %4d MB", args, time.Since(begun).Seconds(), rss>>20)
		if rss > bound {
			t.Errorf("%s took %d MB", args, rss>>20)
		}
	}
}

// writeLong writes a finished recording of n records.
func writeLong(t *testing.T, dir string, n int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "run.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := bufio.NewWriterSize(f, 1<<20)
	w, err := tape.NewWriter(b, &tape.Header{Producer: "test", Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	r := tape.NewRecorder(w, nil)
	for i := range n {
		p, err := r.Payload(fmt.Appendf(nil, "the answer to request %d, which is short", i))
		if err != nil {
			t.Fatal(err)
		}
		k := &tape.HTTPExchange{Exchange: tape.Exchange{
			Method: "GET", URL: fmt.Sprintf("https://api.example.com/%d", i), Status: 200, Response: p, Lane: "http:api.example.com",
		}}
		if err := r.Record(k); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf(`{"id":"long","format":1,"state":"finished","program":{"path":"/bin/true"},"argv":["true"],"cwd":"/",`+
		`"stdin":null,"axes":{},"records":%d,"started_at":"2026-01-01T00:00:00Z","exit":{"code":0}}`, n)
	if err := os.WriteFile(filepath.Join(dir, "recording.json"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
}
