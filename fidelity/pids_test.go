package fidelity

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestProcessIDs: an argument that is a PID names a process, whichever number that has; another process, and another number, differ.
func TestProcessIDs(t *testing.T) {
	run := func(server, other int, killed string) []tape.Kind {
		child := func(id uint64, pid int, args ...string) tape.Kind {
			return &tape.ProcessSpawn{SpawnID: id, ParentSpawnID: 1, PID: pid, Program: "/bin/" + args[0], Args: args[1:]}
		}
		return []tape.Kind{
			child(2, server, "server"), child(3, other, "other"), child(4, 1090, "kill", "-9", killed),
			&tape.ProcessSpawn{SpawnID: 1, PID: 100, Program: "/bin/agent"},
		}
	}
	recorded := run(1057, 1060, "1057")
	for _, tt := range []struct {
		name   string
		replay []tape.Kind
		red    bool
	}{
		{"the same PID", recorded, false},
		{"another one of the same process", run(1058, 1060, "1058"), false},
		{"another process", run(1057, 1060, "1060"), true},
		{"no process", run(1057, 1060, "1058"), true},
		{"given twice", run(1058, 1058, "1058"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := CompareLanes(Semantic, tapeOf(recorded...), tapeOf(tt.replay...), nil)
			if err != nil {
				t.Fatal(err)
			}
			if red := len(r.Divergences) > 0; red != tt.red {
				t.Errorf("red %v: %v", red, r.Divergences)
			}
			pid := strconv.Itoa(tt.replay[0].(*tape.ProcessSpawn).PID)
			if noted := strings.Contains(strings.Join(r.Notes, "\n"), "recorded 1057, replay "+pid); !tt.red && noted != (pid != "1057") {
				t.Errorf("notes %q", r.Notes)
			}
		})
	}
}

// TestServerIDs: a tool server is named by the PID of its process, or of what stands for it on a replay.
func TestServerIDs(t *testing.T) {
	run := func(first, second uint64, killed string) []tape.Kind {
		server := func(conversation, pid uint64) tape.Kind {
			return &tape.MCPOpen{Conversation: conversation, Transport: "stdio", Program: "/bin/notes", Extra: tape.NumberField(tape.PIDKey, pid)}
		}
		return []tape.Kind{
			server(1, first), server(2, second),
			&tape.ProcessSpawn{SpawnID: 4, ParentSpawnID: 1, PID: 1090, Program: "/bin/kill", Args: []string{killed}},
			&tape.ProcessSpawn{SpawnID: 1, PID: 100, Program: "/bin/agent"},
		}
	}
	recorded := tapeOf(run(1057, 1060, "1057")...)
	for killed, red := range map[string]bool{"1058": false, "1061": true} {
		r, err := CompareLanes(Semantic, recorded, tapeOf(run(1058, 1061, killed)...), nil)
		if err != nil || len(r.Divergences) > 0 != red {
			t.Errorf("killed %s: %v, %v", killed, r.Divergences, err)
		}
	}
}
