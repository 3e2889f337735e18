package compare

import (
	"context"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/endcheck"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A Check is how a command ended over the work tree as a run left it.
type Check struct {
	recording.Check
	Recorded bool `json:"recorded"` // it was run when the fork was made, and is not run again
}

// check runs the command over the end state of a recording. The error is ctx's, or that of the temporary directory; what keeps one
// recording from being checked is in its Check.
func (o *Options) check(ctx context.Context, rec *recording.Recording) (*Check, error) {
	temp, err := recording.NewTemp(os.TempDir(), library.CheckPrefix)
	if err != nil {
		return nil, err
	}
	defer temp.Remove()
	dir := filepath.Join(temp.Dir, "tree")
	leftOut, err := derive.RestoreEnd(rec, dir)
	if err != nil {
		return &Check{Check: recording.Check{Command: o.Verify, Exit: -1, Why: err.Error()}}, nil
	}
	command := &endcheck.Command{Line: o.Verify, Timeout: o.Timeout, LeftOut: leftOut}
	made, err := command.Run(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Check{Check: *made}, nil
}
