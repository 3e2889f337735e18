//go:build daemon

package daemon

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

// flavours are the daemons that clients are tried against.
var flavours = []struct {
	name    string
	args    []string
	clients []string
}{
	{"with tokens", nil, []string{"python/behaviours.py", "node/behaviours.mjs", "python/strangers.py", "node/strangers.mjs", "python/examples.py", "python/frames.py"}},
	{"without tokens", []string{"--no-auth"}, []string{"python/behaviours.py", "node/behaviours.mjs", "python/strangers.py", "node/strangers.mjs", "python/examples.py", "python/frames.py"}},
	{"on a socket", []string{"--socket", "HOME/run/d.sock"}, []string{"python/behaviours.py", "node/behaviours.mjs", "python/strangers.py", "python/frames.py", "python/lines.py"}},
	{"with built-in tools", []string{"--builtin", "drive_cli,check_outcome", "--allow", "cat,false,true,sleep"}, []string{"python/builtins.py"}},
}

func TestClients(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			s := serve(t, f.args...)
			for _, client := range f.clients {
				t.Run(client, func(t *testing.T) { cases(t, s, client) })
			}
			s.stop()
		})
	}
}

// cases runs a client and makes each line of its output a subtest.
func cases(t *testing.T, s *server, client string) {
	args := []string{"--url", s.place(), "--data", s.Data}
	if token := s.token(s.TokenFile); token != "" {
		args = append(args, "--token="+token, "--host-token="+s.token(s.HostFile)) // one may begin with a dash
	}
	cmd := script(t, client, args...)
	var said, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &errs
	err := cmd.Run()
	done, failed := false, false
	for lines := bufio.NewScanner(&said); lines.Scan(); {
		line := lines.Text()
		if line == "done" {
			done = true
			continue
		}
		name, bad := strings.CutPrefix(line, "not ok ")
		name, why, _ := strings.Cut(strings.TrimPrefix(name, "ok "), ": ")
		failed = failed || bad
		t.Run(name, func(t *testing.T) {
			if bad {
				t.Error(why)
			}
		})
	}
	if !done || err != nil && !failed {
		t.Errorf("%s ended early: %v", client, err)
	}
	if t.Failed() {
		t.Logf("%s", &errs)
	}
}
