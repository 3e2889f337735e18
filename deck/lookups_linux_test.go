package deck_test

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestNamesAndSocketsAreRecorded: each name that a program looks up, each socket that sends datagrams and each Unix socket of the host's that it asks
// for is on the tape once, and a replay has the same.
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
for s in (u, u, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)): s.sendto(b"x", ("stats.example", 8125))
for path in ("/run/docker.sock", os.environ["HOME"] + "/agent.sock"):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path)
    except OSError as e: print(path[-11:], e.errno)
server = socket.socket(socket.AF_UNIX); server.bind("own.sock"); server.listen(1)
s = socket.socket(socket.AF_UNIX); s.connect("own.sock")
`
	rec := b.script("python3", "-c", program)
	attempts := func(rec *recording.Recording) (out []string) {
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
	want := []string{"/agent.sock 0", "/run/docker.sock 0", "one.example A answered", "stats.example 8125", "stats.example 8125", "stats.example A answered",
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
	if !strings.Contains(strings.Join(v.Notes, "\n")+fmt.Sprint(beside(v)), "/run/other.sock") {
		t.Errorf("%v, %q, want another socket", beside(v), v.Notes)
	}
}

// TestRequestsKeepTheirOrder: a program that asks two hosts in another order than it did is another program, unless it asked them side
// by side.
func TestRequestsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, host := range []string{"one.example", "two.example"} {
		b.upstream(host, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, host) })
	}
	const program = `import sys, urllib.request
for host in sys.argv[1:]: print(urllib.request.urlopen("http://" + host + "/").read() != b"")
`
	rec := b.script("python3", "-c", program, "one.example", "two.example")
	v, _ := b.replay(rec, nil)
	b.green(v)
	v, _ = b.replay(rec, &deck.ReplayOptions{Argv: []string{"python3", "-c", program, "two.example", "one.example"}})
	if got := beside(v); len(got) != 1 || got[0].Category != fidelity.HTTPOrder || !strings.Contains(got[0].Message, "two.example") {
		t.Errorf("%v, want one %s", got, fidelity.HTTPOrder)
	}
}

// TestTheMachineIsAsItWas: what free, nproc's file, the load and the processors' times print is on a replay what it was.
func TestTheMachineIsAsItWas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rec := b.script("sh", "-c", "free; cat /proc/loadavg /proc/stat /proc/meminfo /proc/cpuinfo | md5sum; hostname")
	if len(rec.Manifest.Host.Proc["meminfo"]) == 0 {
		t.Fatal("the recording does not hold /proc/meminfo")
	}
	ballast := make([]byte, 64<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	v, _ := b.replay(rec, nil)
	b.green(v)
	runtime.KeepAlive(ballast)
}

// TestUsageAsItWas: how long a process had a processor, and what else it used, is on a replay what it was.
func TestUsageAsItWas(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here: ", err)
	}
	b := newBench(t)
	rec := b.script("python3", "-c", "import resource, time; print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF), time.process_time())")
	v, _ := b.replay(rec, nil)
	b.green(v)
}
