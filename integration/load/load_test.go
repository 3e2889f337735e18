//go:build load && linux

package load

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain also is the process of those that behave badly, and the bare server.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == bareWord {
		fmt.Fprintln(os.Stderr, beBare(os.Args[2], os.Stdout))
		os.Exit(1)
	}
	if len(os.Args) == 4 && os.Args[1] == strangersWord {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := beStrangers(ctx, os.Args[2], os.Args[3], os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}
	os.Exit(m.Run())
}

func TestLoad(t *testing.T) {
	st := newStage(t)
	for _, scenario := range []struct {
		name string
		what string
		run  func(context.Context, *stage) error
	}{
		{"turns", "acknowledged turns a second of all sessions at once, by the segment log alone, by a bare server and by a file a session", turns},
		{"arrivals", "how long an acknowledgement takes under given arrivals, by the segment log alone and by a bare server under the same", arrivals},
		{"crowd", "how long the others wait while some flood and some never read", crowd},
		{"kills", "kill -9 at random moments while sessions write turns", kills},
		{"soak", "full rate with connections coming and going: what is left behind", soak},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Log(scenario.what)
			st.t = t
			if err := scenario.run(t.Context(), st); err != nil {
				t.Error(err)
			}
		})
	}
}
