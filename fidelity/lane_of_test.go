package fidelity

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestLaneOf(t *testing.T) {
	for _, tt := range []struct {
		kind tape.Kind
		want string
	}{
		{call("llm:a", 1, "1", "x"), "llm:a"},
		{&tape.HTTPExchange{Exchange: tape.Exchange{URL: "http://H.test:8080/a"}}, "http:h.test:8080"},
		{new(tape.LLMCall), "llm"},
		{&tape.LLMCall{Exchange: tape.Exchange{URL: "https://h.test/v1/messages"}}, "llm:h.test"},
		{program("", 0, "-c", "x"), "program"},
		{&tape.ProcessSpawn{Program: "/usr/bin/git", Args: []string{"status", "-s"}, ParentSpawnID: 1}, "process:git status -s"},
		{wrote("a", "1"), "files"},
		{&tape.FileRead{File: tape.File{Path: "/etc/x"}}, "files"},
		{new(tape.FileDelete), "files"},
		{new(tape.TLSRefused), "network"},
		{new(tape.NetRefused), "network"},
		{new(tape.NameLookup), "network"},
		{new(tape.ClockRead), "clock"},
		{new(tape.ClockSleep), "clock"},
		{&tape.MCPJSONRPC{Server: "s"}, "mcp:s"},
		{&tape.WSOpen{URL: "wss://x.test/"}, "ws:x.test"},
		{&tape.WSOpen{URL: "wss://x.test/", Lane: "ws"}, "ws"},
		{&tape.WSMessage{Connection: 3}, "ws:3"},
		{&tape.WSClose{Connection: 3}, "ws:3"},
		{new(tape.EnvRead), "env_read"},
		{new(tape.FileStat), "file_stat"},
		{&tape.Unknown{KindName: "later"}, "later"},
	} {
		if got := LaneOf(tt.kind); got != tt.want {
			t.Errorf("%T: %q, want %q", tt.kind, got, tt.want)
		}
	}
	long := &tape.ProcessSpawn{Program: "p", Args: []string{strings.Repeat("é", maxLaneName)}, ParentSpawnID: 1}
	if got := LaneOf(long); len(got) > len("process:…")+maxLaneName || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// A record that is seen alone stands in the lane that LaneOf names.
func TestLaneOfIsTheLaneOfARecordAlone(t *testing.T) {
	for _, k := range everyKind() {
		want := LaneOf(k)
		if p, ok := k.(*tape.ProcessSpawn); ok {
			p.ParentSpawnID = 0
			want = laneProgram
		}
		got := compareLanes(t, Semantic, []tape.Kind{k}, nil, &LaneOptions{Watch: []string{"a.txt"}})
		for _, d := range got.Divergences {
			if d.Lane != want {
				t.Errorf("%T: %q, want %q", k, d.Lane, want)
			}
		}
	}
}
