package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// diskLog is a Log that writes to a directory.
func diskLog(t testing.TB, dir string, s *scrub.Scrubber) (*mcp.Log, *tape.Recorder) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "run.tape"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, err := tape.NewWriter(f, &tape.Header{})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: openStore(t, dir)})
	return mcp.NewLog(rec, s, masks.New(nil), nil), rec
}

func openStore(t testing.TB, dir string) *cas.Dir {
	t.Helper()
	store, err := cas.OpenDir(filepath.Join(dir, "run.tape.cas"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func readTape(t testing.TB, dir string) (all []tape.Kind) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "run.tape"))
	if err != nil {
		t.Fatal(err)
	}
	return kindsOf(t, b)
}

// answering is a server that answers every line with a result of so many bytes.
func answering(in io.Reader, out io.WriteCloser, size int) {
	defer out.Close()
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", size/45+1)[:size]
	for s := bufio.NewScanner(in); s.Scan(); {
		m, _, err := mcp.Parse(s.Bytes())
		if err != nil || len(m) == 0 {
			continue
		}
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", m[0].ID, text)
		if m[0].Method == "initialize" {
			answer = ansInit + "\n"
		}
		if _, err := io.WriteString(out, answer); err != nil {
			return
		}
	}
}

// talkTo connects a client with a server of answering, through a relay where log is there.
func talkTo(t testing.TB, log *mcp.Log, size int) (w *os.File, r *bufio.Reader, end func()) {
	inR, inW, _ := os.Pipe()
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go answering(inR, outW, size)
	if log == nil {
		return inW, bufio.NewReaderSize(outR, 64<<10), func() { inW.Close() }
	}
	clientR, clientW, _ := os.Pipe()
	backR, backW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = mcp.Relay(context.Background(), &mcp.RelayOptions{
			Log: log, Opened: &mcp.Opened{Transport: mcp.Stdio, Program: "server"},
			ClientIn: clientR, ClientOut: backW, ServerIn: inW, ServerOut: outR,
		})
	}()
	return clientW, bufio.NewReaderSize(backR, 64<<10), func() { clientW.Close(); <-done }
}

func ask(t testing.TB, w io.Writer, r *bufio.Reader, line string) {
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := r.ReadSlice('\n')
		if err == nil {
			return
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			t.Fatal(err)
		}
	}
}

const askRead = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/home/me/notes.txt"}}}`

// BenchmarkRelayedCall is a call of a tool through two pipes, in turns bare and through a Relay onto a tape on disk. It reports the medians
// in us, what a Relay adds to one in ms, and how many times as long it takes. A small result may take 0.3 ms more at most.
func BenchmarkRelayedCall(b *testing.B) {
	for _, size := range []int{100, 10 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("result=%d", size), func(b *testing.B) {
			log, _ := diskLog(b, b.TempDir(), scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{"API_KEY=aBcD1234eFgH5678"}}))
			took := map[bool][]time.Duration{}
			asks := map[bool]func(line string){}
			for _, relayed := range []bool{false, true} {
				var to *mcp.Log
				if relayed {
					to = log
				}
				w, r, end := talkTo(b, to, size)
				defer end()
				ask(b, w, r, askInit)
				asks[relayed] = func(line string) {
					began := time.Now()
					ask(b, w, r, line)
					took[relayed] = append(took[relayed], time.Since(began))
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				line := fmt.Sprintf(askRead, i+1)
				asks[false](line)
				asks[true](line)
			}
			bare, relay := median(took[false]), median(took[true])
			b.ReportMetric(float64(bare.Nanoseconds())/1e3, "bare-us")
			b.ReportMetric(float64(relay.Nanoseconds())/1e3, "relay-us")
			b.ReportMetric(float64((relay-bare).Nanoseconds())/1e6, "added-ms")
			b.ReportMetric(float64(relay)/float64(bare), "ratio")
			b.ReportMetric(0, "ns/op") // of both
			if added := relay - bare; size == 100 && added > 300*time.Microsecond {
				b.Errorf("a Relay adds %v to a call", added)
			}
		})
	}
}

func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}
