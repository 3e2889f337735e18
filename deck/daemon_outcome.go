package deck

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// How a recorded run ends, in the words of the protocol.
const (
	outcomeSuccess = "success" // the program ended with 0
	outcomeFailure = "failure"
)

// evidence is one piece of an outcome's.
type evidence struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
	Data        any    `json:"data"`
}

// outcomeOf is what a run came to: how its program ended, and where the recording lies that proves it. res is nil where there is no
// recording, for err.
func outcomeOf(r *recorder, res *Result, err error) *rpcapi.Outcome {
	if r.daemon == nil {
		return nil
	}
	o := &rpcapi.Outcome{Status: outcomeFailure, Timestamp: runtrace.Time(time.Now())}
	if res == nil {
		o.Summary = "not recorded: " + r.daemon.text(fmt.Sprint(err))
		return o
	}
	if res.Exit == (Exit{}) {
		o.Status = outcomeSuccess
	}
	o.Summary = fmt.Sprintf("exit %d", res.Exit.Code)
	if res.Exit.Signal != "" {
		o.Summary += " (" + res.Exit.Signal + ")"
	}
	recording := map[string]any{"id": r.manifest.ID, "path": r.daemon.start.Recording.Path}
	about := "recorded, and not sealed"
	if s := res.Sealed; s != nil {
		about = "recorded, and sealed"
		recording["seal_root"], recording["seal_key"] = s.Root, s.Key
	}
	o.Evidence, _ = json.Marshal([]evidence{ // of these values it cannot fail
		{"stop_reason", o.Summary, res.Exit},
		{"external_verification", about, recording},
	})
	o.Metrics, _ = json.Marshal(map[string]int64{
		"turns": int64(r.daemon.named.Turns), "tool_calls": int64(len(r.daemon.book.byID)), "llm_calls": int64(res.Counts["llm_call"]),
		"duration_ms": time.Since(r.manifest.StartedAt).Milliseconds(),
	})
	return o
}
