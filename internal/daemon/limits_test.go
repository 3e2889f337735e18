package daemon

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// TestGuideLimits holds the table of limits in docs/daemon.md against the defaults.
func TestGuideLimits(t *testing.T) {
	text, err := os.ReadFile("../../docs/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	o := (&Options{}).filled()
	l := &o.Limits
	for row, want := range map[string][]int{
		"a turn's strings; its line":                 {runtrace.MaxString >> 10, runtrace.MaxLine >> 10},
		"turns of a run; of one `runs.record_turns`": {runtrace.MaxTurns, runtrace.MaxBatch},
		"connections": {l.Connections},
		"a frame; frames in flight of all connections":               {l.FrameBytes >> 20, int(l.Memory >> 20)},
		"requests served at a time, of a connection":                 {l.Requests},
		"requests a second, of a connection":                         {int(l.Rate), l.Burst},
		"replies and events that wait for a slow reader":             {l.QueueBytes >> 20},
		"tools, policies; open runs; subscriptions, of a connection": {l.Tools, l.Runs, l.Subscriptions},
		"what they and the state hold, of a connection; of all":      {l.SessionBytes >> 20, int(l.AllSessionBytes >> 30)},
		"a tool's answer, where its action says nothing":             {int(l.ToolTimeout.Minutes())},
	} {
		_, rest, ok := strings.Cut(string(text), "| "+row+" | ")
		if !ok {
			t.Errorf("no row %q", row)
			continue
		}
		line, _, _ := strings.Cut(rest, "|\n")
		numbers := regexp.MustCompile(`[0-9][0-9,]*`).FindAllString(line, -1)
		for i, n := range want {
			if i >= len(numbers) || strings.ReplaceAll(strings.Trim(numbers[i], ","), ",", "") != strconv.Itoa(n) {
				t.Errorf("%s: want %v in %q", row, want, line)
				break
			}
		}
	}
	if l.Tools != l.Policies {
		t.Error("tools and policies have one limit in the table, and two here")
	}
}
