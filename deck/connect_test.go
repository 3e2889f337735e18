package deck

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestASignalBeforeTheDaemonAnswers ends the recording before it begins.
func TestASignalBeforeTheDaemonAnswers(t *testing.T) {
	o := &DaemonOptions{URL: "unix:x", Intent: "try it"}
	signals := make(chan os.Signal, 1)
	o.dial = func(ctx context.Context) (runSink, error) {
		signals <- os.Interrupt
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := &recorder{o: &RecordOptions{Daemon: o, Signals: signals}, manifest: new(Manifest), guard: &guard{scrub: scrub.New(scrub.Key{1}, nil)}, lib: LibraryOf(t.TempDir())}
	if err := r.connect(t.Context()); !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
}
