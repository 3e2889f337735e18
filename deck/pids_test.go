package deck

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestLooksWhenBegun: a process that looked through all waits for those that it saw, a server's too, and for nothing that is on no tape. What does
// not begin holds it up for a while.
func TestLooksWhenBegun(t *testing.T) {
	kept, _ := ambient.NewAnswers(true, nil)
	for _, pid := range []string{"1", "100", "1000", "1001", "1002"} {
		kept.Gave("read /proc/"+pid+"/stat", []byte("S"))
	}
	answers, err := ambient.NewAnswers(false, kept.Encode(strings.Clone))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		again := newRecordedProcesses(nil)
		again.add(&tape.ProcessSpawn{SpawnID: programID, PID: 100})
		again.add(&tape.ProcessSpawn{SpawnID: 2, PID: 1000})
		again.add(&tape.ProcessSpawn{SpawnID: 3, PID: 1001})
		again.add(&tape.MCPOpen{Conversation: 7, Extra: tape.NumberField(tape.PIDKey, 1001)})
		m := newPIDMap(again)
		m.add(100, 100)
		looks := &processInputs{id: 4, answers: answers, of: &processes{pids: m}, tookMS: 50}
		since, waited := time.Now(), make(chan time.Duration)
		go func() {
			looks.program = new(jail.Program)
			looks.Beginning()(context.Background())
			waited <- time.Since(since)
		}()
		time.Sleep(time.Second)
		m.add(1003, 1000)
		time.Sleep(time.Second)
		(&processes{pids: m, again: again}).addServer(1004, 7)
		if got := <-waited; got != 2*time.Second || len(m.missed()) > 0 {
			t.Errorf("it waited %v, missed %q", got, m.missed())
		}
		if looks.Beginning() != nil {
			t.Error("it waits for what has begun")
		}

		m.begins(looks)
		m.add(1005, 1002)
		ends := func(id uint64, pid int) []lane.Condition[look] {
			return m.seenBy(&processInputs{id: id, program: &jail.Program{PID: pid}})
		}
		seen := ends(2, 1003)                                                               // which was 1000
		if !m.looked.Holds(seen) || len(ends(5, 77)) > 0 || len(ends(looks.id, 1005)) > 0 { // of its own end it does not wait for itself
			t.Errorf("what it sees does not wait: %v", seen)
		}
		looks.of.s = new(session)
		for asked, want := range map[string]string{"/proc/100/stat": "S", "/proc/1003/stat": "now", "/proc/1001/stat": "", "/proc/2000/stat": ""} {
			if got := looks.Asked("read", asked, []byte("now")); string(got) != want {
				t.Errorf("of %s it is told %q", asked, got)
			}
		}
		if m.looked.Holds(seen) {
			t.Error("what it has seen waits still")
		}
		looks.of.pids = newPIDMap(again)
		looks.of.pids.add(100, 100)
		since = time.Now()
		looks.Beginning()(context.Background())
		if got := time.Since(since); got != 50*time.Millisecond+lookLate || len(looks.of.pids.missed()) != 1 {
			t.Errorf("it waited %v in vain, missed %q", got, looks.of.pids.missed())
		}
		looks.tookMS = looksFor.Milliseconds() + 1
		if looks.Beginning() != nil {
			t.Error("what runs for long waits")
		}
	})
}
