package deck

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestASignalBeforeTheDaemonAnswers ends the recording before it begins.
func TestASignalBeforeTheDaemonAnswers(t *testing.T) {
	o := &daemon.Options{URL: "unix:x", Intent: "try it"}
	signals := make(chan os.Signal, 1)
	o.Dial = func(ctx context.Context) (daemon.Sink, error) {
		signals <- os.Interrupt
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := &recorder{o: &RecordOptions{Daemon: o, Signals: signals}, manifest: new(recording.Manifest), redactor: &redactor{scrub: scrub.New(scrub.Key{1}, nil)}, lib: library.Of(t.TempDir())}
	if err := r.connect(t.Context()); !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
}
