package deck_test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestNamesAndSocketsAreRecorded: each name that a program looks up, each datagram and each Unix socket of the host's that it asks for
// is on the tape once, and a replay has the same.
func TestNamesAndSocketsAreRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	host := filepath.Join(b.home, "agent.sock")
	l, err := net.Listen("unix", host)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const program = `import os, socket
for name in ("one.example", "two.example", "one.example", "bad name.example"):
    try: print(socket.gethostbyname(name) != "")
    except OSError as e: print(type(e).__name__)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.sendto(b"x", ("stats.example", 8125))
for path in ("/run/docker.sock", os.environ["HOME"] + "/agent.sock"):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path)
    except OSError as e: print(path[-11:], e.errno)
server = socket.socket(socket.AF_UNIX); server.bind("own.sock"); server.listen(1)
s = socket.socket(socket.AF_UNIX); s.connect("own.sock")
`
	rec := b.script("python3", "-c", program)
	attempts := func(rec *deck.Recording) (out []string) {
		for _, k := range kinds(t, rec) {
			switch k := k.(type) {
			case *tape.NameLookup:
				out = append(out, fmt.Sprintf("%s %s %s", k.Host, k.Type, k.Result))
			case *tape.NetRefused:
				if strings.Contains(k.Addr, "/nscd/") { // some C libraries ask
					continue
				}
				out = append(out, strings.TrimPrefix(fmt.Sprintf("%s %d", k.Addr, k.Port), b.home))
			}
		}
		slices.Sort(out)
		return out
	}
	want := []string{"/agent.sock 0", "/run/docker.sock 0", "one.example A answered", "stats.example 8125", "stats.example A answered",
		"two.example A answered"}
	if got := attempts(rec); !slices.Equal(got, want) {
		t.Errorf("on the tape: %q, want %q", got, want)
	}
	again := filepath.Join(t.TempDir(), "again")
	v, _ := b.replay(rec, &deck.ReplayOptions{Out: again})
	b.green(v)
	for _, n := range v.Notes {
		if strings.Contains(n, "tried") || strings.Contains(n, "looked up") {
			t.Errorf("note: %s", n)
		}
	}
	v, _ = b.replay(rec, &deck.ReplayOptions{Argv: []string{"python3", "-c", strings.ReplaceAll(program, "docker.sock", "other.sock")}})
	if len(v.Divergences) != 2 { // what it prints, too
		t.Errorf("%v, want another socket and another output", v.Divergences)
	}
}
