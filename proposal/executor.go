package proposal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// Tools are those that a proposal may call.
type Tools interface {
	// Tool returns the tool of that name.
	Tool(name string) (*Tool, bool)
}

// A Call is one attempt to call a tool.
type Call struct {
	ActionID   string
	Tool       string
	Parameters json.RawMessage // an object; "{}" where there were none
	Timeout    time.Duration   // 0: none; the context has it as its deadline
	Attempt    int             // from 1
}

// MaxRunning is how many tools of one proposal run at once; more wait for one of them to end.
const MaxRunning = 64

// An Executor runs proposals. Its fields are set before the first.
type Executor struct {
	Tools    Tools       // nil: no tool is registered
	Policies *policy.Set // nil: none
	State    *Scope      // nil: an empty one of its own for each proposal
	Agent    string      // who proposes, for policies
	// Approve has a person look at an action that policies leave to one (v.Asks), and settles v. nil: it is denied.
	Approve func(ctx context.Context, a *Action, v *policy.Verdict)
	// Judged is told every verdict, of allowed actions too, before anything of the action runs. An error ends the proposal:
	// what cannot be written down does not run.
	Judged func(ctx context.Context, a *Action, v *policy.Verdict) error
	// Done is told the end of every tool_call that came to a verdict or was refused before one (not of those that were
	// skipped), one after another in the order of the actions: of one that ends early when those before it have ended. An error
	// ends the proposal.
	Done func(ctx context.Context, o *Outcome) error
	// Room, where it is set, is asked for the bytes of each output before it becomes part of the result; one that it refuses with
	// false is dropped, and its action has failed, for good. It is asked one at a time.
	Room func(bytes int) bool
	// Now is the clock of timestamps; nil is time.Now.
	Now func() time.Time
}

// An Outcome is one tool_call that ended, as a turn needs it.
type Outcome struct {
	Action     *Action
	Parameters json.RawMessage // as they came; "{}" where there were none
	Verdict    *policy.Verdict // nil where the action was refused before policies judged
	Result     *ActionResult
	TimedOut   bool // the last attempt ran out of time: the action's own, or that of whoever runs the tool
}
