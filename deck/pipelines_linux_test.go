package deck_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPipelinesBreakAsTheyDid: whether who writes into a pipeline finds that nobody reads any more is a race that a replay decides as it was.
func TestPipelinesBreakAsTheyDid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ writer, reader, want string }{
		"the writer had time":                     {"echo a; sleep 0.1; echo b", "read x; $GET >/dev/null", "writer 0"},
		"the reader was faster":                   {"echo a; $GET >/dev/null; echo b", "read x; sleep 0.1", "writer 141"},
		"the writer closes its output, then ends": {"echo a >a; $GET | cat a -", "read x; sleep 0.1", "writer 141"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.upstream("slow.example", func(w http.ResponseWriter, _ *http.Request) { // a replay does not wait
				time.Sleep(400 * time.Millisecond)
				fmt.Fprint(w, "answer")
			})
			get := fmt.Sprintf("%s=get %s http://slow.example/", programVar, ownProgram(t))
			script := fmt.Sprintf(`(sh -c '%s'; echo "writer $?" >&2) | sh -c '%s'`, c.writer, c.reader)
			res, out := b.sh(strings.ReplaceAll(script, "$GET", get))
			if !strings.Contains(out, c.want) {
				t.Fatalf("recorded: %q, want %q", out, c.want)
			}
			v, _ := b.replay(res.Recording, nil)
			b.green(v)
		})
	}
}

// TestKilledWhileHeld: who loses patience with a child that is held up at its end, since its order is that of then, kills one that had done
// all that it does: it has ended as it was about to.
func TestKilledWhileHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("slow.example", func(w http.ResponseWriter, _ *http.Request) { // a replay does not wait
		time.Sleep(400 * time.Millisecond)
		fmt.Fprint(w, "answer")
	})
	late := filepath.Join(t.TempDir(), "late")
	const script = `sh -c '%s=get %s http://slow.example/ >/dev/null; : >done; exit 7' & held=$!
sh -c '[ ! -e %s ] || { until [ -e done ]; do :; done; n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; kill $0; }' $held
wait`
	res, out := b.sh(fmt.Sprintf(script, programVar, ownProgram(t), late))
	if err := os.WriteFile(late, nil, 0o600); err != nil {
		t.Fatal(out, err)
	}
	v, _ := b.replay(res.Recording, nil)
	b.green(v)
}
