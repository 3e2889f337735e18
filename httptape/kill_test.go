package httptape_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// recordForEver records a tape over and over, and prints a line whenever one stands. All exchanges of one tape are of one
// generation; one of them has a blob.
func recordForEver(path string) {
	for generation := 0; ; generation++ {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Generation", fmt.Sprint(generation))
			w.Write(bytes.Repeat(fmt.Appendf(nil, "%d ", generation), 5000))
		}))
		tr, err := httptape.Open(path, &httptape.Options{Mode: httptape.ModeRecordOnly})
		for i := 0; err == nil && i < 3; i++ {
			var res *http.Response
			if res, err = tr.Client().Get(fmt.Sprintf("%s/%d", srv.URL, i)); err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		}
		if err == nil {
			err = tr.Close()
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		srv.Close()
		fmt.Println(generation)
	}
}

// TestKilled: whenever a process that records is killed, the tape is one that it had finished. HTTPTAPE_KILLS sets how often
// (default 12).
func TestKilled(t *testing.T) {
	kills := 12
	fmt.Sscan(os.Getenv("HTTPTAPE_KILLS"), &kills)
	path := filepath.Join(t.TempDir(), "killed")
	scratch := t.TempDir()
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "HTTPTAPE_TEST_RECORD="+path, "TMPDIR="+scratch)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || strings.TrimSpace(first) != "0" {
			t.Errorf("the recorder says %q, %v", first, err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(30 * time.Millisecond)))) // the moment of the kill, no synchronisation
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		ofOneGeneration(t, path)
		if left := onDisk(t, scratch); len(left) > 0 {
			t.Fatalf("the killed recorder left %d bytes in the temporary directory", len(left))
		}
	}
	// The next recording clears up.
	recordAt(t, path, &httptape.Options{Mode: httptape.ModeRecordOnly}, say("last"), func(c *http.Client, url string) { get(t, c, url) })
	if _, err := os.Stat(path + ".tape.cas"); err == nil {
		t.Error("blobs are left that nothing names")
	}
}

func ofOneGeneration(t *testing.T, path string) {
	t.Helper()
	if got := lines(t, path); len(got) != 3 {
		t.Fatalf("%d records", len(got))
	}
	f, err := tape.Open(path+".tape", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := make(map[string]bool)
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range tape.ExchangeOf(r.Kind).ResponseHeaders {
			if h.Name == "X-Generation" {
				seen[h.Value] = true
			}
		}
	}
	if len(seen) != 1 {
		t.Errorf("the tape holds generations %v", seen)
	}
}
