package mcp

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answersOf is a conversation over stdio whose answers stand at the given places of the tape, 10 ms apart. Each took 5 ms.
func answersOf(seqs ...uint64) *transcript {
	t := &transcript{Recorded: Recorded{Transport: Stdio}}
	for _, seq := range seqs {
		call := &recordedCall{requestKey: requestKey{method: "tools/call"}, at: 10*int64(seq) - 5}
		t.lines = append(t.lines, &recordedLine{seq: seq, at: int64(10 * seq), parts: []recordedPart{{call: call, answer: true}}})
	}
	return t
}

// TestOrderOfServers has conversations write side by side: their lines go out in the order of the tape.
func TestOrderOfServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := []*transcript{answersOf(1, 4, 5, 9), answersOf(2, 3, 8), answersOf(6, 7)}
		o := newServersOrder(servers, holdAsked)
		var mu sync.Mutex
		var out []uint64
		var all sync.WaitGroup
		for i, server := range servers {
			all.Go(func() {
				for _, l := range server.lines {
					time.Sleep(time.Duration(3-i) * time.Millisecond) // the first comes last
					o.wait(t.Context(), l)
					mu.Lock()
					out = append(out, l.seq)
					mu.Unlock()
					o.wrote(l)
				}
			})
		}
		all.Wait()
		if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(out, want) {
			t.Errorf("lines went out as %v", out)
		}
	})
}

// TestOrderOfServersThatDoNotCome waits once for all conversations that are not held again, however long ago they were, and for none
// that has ended.
func TestOrderOfServersThatDoNotCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, over := answersOf(100_003, 100_004, 100_007), answersOf(0)
		missing := []*transcript{answersOf(1, 2, 100_005), answersOf(3, 100_006), answersOf(4)}
		o := newServersOrder(append(missing, here, over), holdAsked)
		o.Close(over.stream)
		begun := time.Now()
		for _, l := range here.lines {
			o.wait(t.Context(), l)
			o.wrote(l)
		}
		if waited := time.Since(begun); waited != holdAsked+10*time.Millisecond { // as long as the first took then, and a slack
			t.Errorf("waited %v, want 2.01s once", waited)
		}
	})
}

// TestOrderOfASlowServer has an answer wait for another that came long after its request.
func TestOrderOfASlowServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quick, slow := answersOf(1001), answersOf(1000)
		quick.lines[0].parts[0].call.at = 0
		o := newServersOrder([]*transcript{quick, slow}, holdAsked)
		time.AfterFunc(9*time.Second, func() { o.wrote(slow.lines[0]) })
		begun := time.Now()
		o.wait(t.Context(), quick.lines[0])
		if waited := time.Since(begun); waited != 9*time.Second {
			t.Errorf("waited %v, want 9s", waited)
		}
	})
}
