package deck_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func init() { programs["mcp-lines"] = playMCPLines }

// playMCPLines starts a server and speaks with it line by line: initialize, and one call, which it cancels where its answer does not come.
// Its first argument says for how many answers it waits. It prints all that came, byte by byte, and how the server ended; but of one that
// it sends SIGTERM, as it does with ",term" behind that argument, only that.
func playMCPLines(args []string) int {
	answers, term := strings.CutSuffix(args[0], ",term")
	patience := map[string][2]time.Duration{"both": {time.Minute, time.Minute}, "one": {time.Minute}, "none": {}}[answers]
	cmd := exec.Command(args[1], args[2:]...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	for _, err := range []error{err1, err2, cmd.Start()} {
		if err != nil {
			return fail(err)
		}
	}
	lines := make(chan string)
	go func() { // ends with the server
		defer close(lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if lines <- line; err != nil {
				return
			}
		}
	}()
	heard := func(id string, limit time.Duration) bool {
		late := time.After(limit)
		for {
			select {
			case line, ok := <-lines:
				switch {
				case !ok:
					return false
				case len(line) > 1000:
					fmt.Printf("%d bytes, %x\n", len(line), sha256.Sum256([]byte(line)))
				default:
					fmt.Printf("%q\n", line)
				}
				if strings.Contains(line, id) {
					return true
				}
			case <-late:
				return false
			}
		}
	}
	io.WriteString(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n")
	heard(`"id":0`, patience[0])
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look"}}`+"\n")
	if !heard(`"id":1,"result"`, patience[1]) {
		io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n")
	}
	if term {
		cmd.Process.Signal(syscall.SIGTERM)
	} else {
		in.Close()
	}
	for heard("nothing", time.Minute) {
	}
	if term {
		cmd.Wait()
		fmt.Println("the server ended")
		return 0
	}
	fmt.Println("the server ended:", cmd.Wait())
	return 0
}

// TestCrookedServers records servers that do what they should not, as the program sees it, and replays them, their programs gone, the
// same: never without an end.
func TestCrookedServers(t *testing.T) {
	t.Parallel()
	const (
		hello  = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"crooked","version":"1"}}}`
		answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}`
	)
	ofCall := func(ok func(k *tape.MCPJSONRPC) bool) func(tape.Kind) bool {
		return func(k tape.Kind) bool {
			m, is := k.(*tape.MCPJSONRPC)
			return is && m.Method == "tools/call" && ok(m)
		}
	}
	for _, c := range []struct {
		name, script string
		answers      string
		prints       []string
		tape         func(k tape.Kind) bool
	}{
		{
			"logs between its messages", "echo listening; read l; echo '" + hello + "'; echo; read l; echo '{\"level\": \"debug\"}'; echo '" + answer + "'; cat >/dev/null; echo bye", "both",
			[]string{`"listening\n"`, `"\n"`, `debug`, `done`, `"bye\n"`, "<nil>"},
			func(k tape.Kind) bool { x, ok := k.(*tape.MCPText); return ok && x.From == "server" },
		},
		{
			"bytes of a character one by one", "read l; echo '" + hello + `'; read l; printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"bl\303'; sleep 0.05; printf '\274h \360\237'; sleep 0.05; printf '\214\274"}]}}'; sleep 0.05; echo; cat >/dev/null`, "both",
			[]string{"blüh 🌼"}, ofCall(func(m *tape.MCPJSONRPC) bool { return strings.Contains(m.Response.Text, "blüh 🌼") }),
		},
		{
			"20 MB", "read l; echo '" + hello + `'; read l; printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"'; head -c 20971520 /dev/zero | tr '\0' x; echo '"}]}}'; cat >/dev/null`, "both",
			[]string{"20971594 bytes"}, ofCall(func(m *tape.MCPJSONRPC) bool { return m.Response.Len > 20<<20 }),
		},
		{
			"dies in its answer", "read l; echo '" + hello + `'; read l; printf '{"jsonrpc":"2.0","id":1,"res'; exit 7`, "both",
			[]string{`"{\"jsonrpc\":\"2.0\",\"id\":1,\"res"`, "exit status 7"}, ofCall(func(m *tape.MCPJSONRPC) bool { return m.Error == "server ended" }),
		},
		{
			"killed in its answer", "read l; echo '" + hello + `'; read l; printf '{"jsonrpc"'; kill -KILL $$`, "both",
			[]string{`"{\"jsonrpc\""`, "signal: killed"}, func(k tape.Kind) bool { x, ok := k.(*tape.MCPClose); return ok && x.Signal == "SIGKILL" },
		},
		{
			"ends well when it is told to", "trap 'exit 0' TERM; read l; echo '" + hello + "'; read l; echo '" + answer + "'; while read l; do :; done", "both,term",
			[]string{"done", "the server ended"}, func(k tape.Kind) bool {
				x, ok := k.(*tape.MCPClose)
				return ok && x.ExitCode != nil && *x.ExitCode == 0
			},
		},
		{
			"never answers", "read l; echo '" + hello + "'; cat >/dev/null", "one",
			[]string{"<nil>"}, ofCall(func(m *tape.MCPJSONRPC) bool { return m.Error == "cancelled" && m.Response.Len == 0 }),
		},
		{
			"never answers at all", "cat >/dev/null", "none", []string{"<nil>"},
			func(k tape.Kind) bool {
				m, ok := k.(*tape.MCPJSONRPC)
				return ok && m.Method == "initialize" && m.Error == "client ended"
			},
		},
		{
			"a version that does not exist", "read l; echo '" + strings.Replace(hello, "2025-11-25", "1999-01-01", 1) + "'; read l; echo '" + answer + "'; cat >/dev/null", "both",
			[]string{"1999-01-01", "done"}, func(k tape.Kind) bool { x, ok := k.(*tape.MCPOpen); return ok && x.Protocol == "1999-01-01" },
		},
	} {
		if rare(c.name, "logs between its messages", "20 MB", "ends well when it is told to", "a version that does not exist") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			path := b.server("crooked")
			b.gone(path)
			writeProgram(t, path, []byte("#!/bin/sh\n"+c.script+"\n"))
			res, out := b.record("mcp-lines", c.answers, path)
			if res.Exit.Code != 0 {
				t.Fatalf("exit %+v: %s", res.Exit, out)
			}
			for _, want := range c.prints {
				if !strings.Contains(out, want) {
					t.Errorf("the client did not print %s but\n%s", want, out)
				}
			}
			if !slices.ContainsFunc(kinds(t, res.Recording), c.tape) {
				t.Error("the tape does not have it")
			}
			b.gone(path)
			v, now := b.replay(res.Recording, nil)
			if now != out {
				t.Errorf("the client said\n%s\nand on the replay\n%s", out, now)
			}
			b.green(v)
		})
	}
}
