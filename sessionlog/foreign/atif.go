package foreign

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// atif reads trajectories in the Agent Trajectory Interchange Format of Harbor (terminal-bench), versions 1.0 to 1.8:
// https://github.com/harbor-framework/harbor, rfcs/0001-trajectory-format.md.
//
// A file is one object, whose steps are read one by one. A step of the user's is a prompt; one of the agent's is an answer, its calls
// and, under observation, what came of them; one of the system's before the first prompt is the system prompt. Results name their
// call by source_call_id; one without, of an agent that calls no tools, is kept as that of the call "step-N", N being the
// step's step_id. Steps that were copied from an earlier trajectory are left out. The format has no word for a call that failed.
var atif = Importer{name: "atif", read: readATIF, looks: func(path string, head []byte) bool {
	return head == nil && isFile(filepath.Join(path, "trajectory.json")) || bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && atifVersion.Match(head)
}}

var atifVersion = lazyregexp.New(`"schema_version"\s*:\s*"ATIF-v`)

// readATIF reads a trajectory, or the trajectory.json in a folder.
func readATIF(ctx context.Context, c *conversation) error {
	r := c.r
	if inside := filepath.Join(r.File, "trajectory.json"); isFile(inside) {
		r.File = inside
	}
	a := &atifReader{conversation: c}
	if err := a.first(ctx); err != nil {
		return err
	}
	a.begin(r.Session, "atif")
	err := eachElement(ctx, r, "steps", "step", a.about, func(b []byte, _ int) error { return cmp.Or(a.step(b), a.failed) })
	if err == nil && r.Lines == 0 && !a.some {
		err = &Error{Path: r.File, Err: errors.New(`expected a key "steps"`)}
	}
	return err
}

// An atifReader turns the steps of a trajectory into events.
type atifReader struct {
	*conversation
	system []string // what stands before the first prompt
	some   bool     // there are steps
}

// atifKeys are those of the whole that become no event.
var atifKeys = map[string]bool{
	"schema_version": true, "session_id": true, "trajectory_id": true, "agent": true, "notes": true, "final_metrics": true,
	"continued_trajectory_ref": true, "extra": true,
}

// errFirst ends the first reading.
var errFirst = errors.New("all that is looked for was read")

// first reads what the file says of the session. That stands before the steps in what Harbor writes; where it does not, the file
// is read twice.
func (a *atifReader) first(ctx context.Context) error {
	var version, trajectory string
	var agent struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	known := func([]byte, int) error {
		if a.r.Session != "" && agent.Name != "" {
			return errFirst
		}
		return nil
	}
	err := eachElement(ctx, newReport("", a.r.File), "steps", "step", func(key string, s *jsonscan.Stream) error {
		switch key {
		case "schema_version":
			version = text(s.Raw())
		case "session_id":
			a.r.Session = text(s.Raw())
		case "trajectory_id":
			trajectory = text(s.Raw())
		case "agent":
			return small(s, &agent)
		}
		return nil
	}, known)
	if err != nil && !errors.Is(err, errFirst) {
		return err
	}
	if a.r.Session == "" {
		a.r.Session = trajectory
	}
	a.r.Version = agent.Version
	a.r.note("a trajectory of %s in the form %s", orUnknown(agent.Name), orUnknown(version))
	if version != "" && !strings.HasPrefix(version, "ATIF-v1.") {
		a.r.note("the form is another one than those of ATIF 1, and was read as they are")
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown name"
	}
	return s
}

// about reads a key beside the steps.
func (a *atifReader) about(key string, s *jsonscan.Stream) error {
	switch {
	case key == "subagent_trajectories" && s.Peek() == '[': // their conversations are their own
		n := 0
		for s.Begin('['); s.More(']'); s.Skip() {
			n++
		}
		if n > 0 {
			a.r.note("trajectories of sub-agents in the file, which are not read: %d", n)
		}
	case key == "continued_trajectory_ref" && s.Peek() == '"':
		a.r.note("the trajectory goes on in another file, which is not read")
	case !atifKeys[key] && key != "subagent_trajectories":
		a.r.skip("the key "+key, "unknown", 0)
	}
	return nil
}

// An atifStep is one step.
type atifStep struct {
	ID       int64      `json:"step_id"`
	Source   string     `json:"source"`
	Model    string     `json:"model_name"`
	Message  []byte     `json:"message"`
	Thought  string     `json:"reasoning_content"`
	Calls    []atifCall `json:"tool_calls"`
	Observed struct {
		Results []atifResult `json:"results"`
	} `json:"observation"`
	Metrics  tokens `json:"metrics"` // of the prompt, cached ones and all, and of what was said
	Copied   bool   `json:"is_copied_context"`
	Requests []byte `json:"llm_call_count"`
}

type atifCall struct {
	ID   string `json:"tool_call_id"`
	Name string `json:"function_name"`
	Args []byte `json:"arguments"`
}

type atifResult struct {
	Call    string `json:"source_call_id"`
	Content []byte `json:"content"`
	Refs    []byte `json:"subagent_trajectory_ref"`
	Failed  bool   `json:"is_error"` // some producers add it
}

func (a *atifReader) step(b []byte) error {
	a.some = true
	var p atifStep
	if err := decode(b, &p); err != nil {
		return err
	}
	if p.Copied {
		a.r.skip("steps copied from an earlier trajectory", "they stand there", 0)
		return nil
	}
	said := readParts(p.Message)
	switch p.Source {
	case "user":
		e := &sessionlog.RunStarted{Goal: said.goal(), Attachments: said.others, SystemPrompt: strings.Join(a.system, "\n")}
		a.system = nil
		a.ask(e)
		a.given(&p)
	case "system":
		if a.d.Counts().Runs == 0 {
			a.system = append(a.system, said.goal())
		} else {
			a.r.skip("steps of the system after the first prompt", "what the program did, no part of the conversation", 0)
		}
	case "agent":
		a.turnOf(&p, said)
	default:
		a.r.skip("steps of "+p.Source, "unknown", 0)
	}
	return nil
}

// turnOf is a turn, with what came of its calls. A step in which no model was called adds its calls to the turn before it.
func (a *atifReader) turnOf(p *atifStep, said parts) {
	turn := answer{model: p.Model, tokens: p.Metrics.sum()}
	for i := range p.Calls {
		turn.call(p.Calls[i].ID, p.Calls[i].Name, p.Calls[i].Args)
	}
	if string(p.Requests) == "0" && a.d.Turn() > 0 {
		a.r.skip("messages of steps that no model made", "the turn is that of the model's last answer", 0)
		a.flush()
		_ = a.d.Request(turn.calls, nil)
	} else {
		turn.add(said)
		turn.think(p.Thought, nil)
		a.turn(&turn, "")
	}
	a.given(p)
}

// given is what a step observed.
func (a *atifReader) given(p *atifStep) {
	for n, seen := range p.Observed.Results {
		r := sessionlog.ToolResult{CallID: seen.Call, IsError: seen.Failed}
		if r.CallID == "" {
			r.CallID = atifOwn(p.ID, n)
			a.r.note("results that name no call are kept as those of calls named step-N, N being their step_id")
		}
		if len(seen.Refs) > 2 {
			a.r.skip("references to the trajectories of sub-agents", "their conversations are their own", 0)
		}
		if (seen.Content == nil || string(seen.Content) == "null") && seen.Refs != nil {
			seen.Content = seen.Refs
		}
		r.Output = output(seen.Content)
		a.result(r)
	}
}

// atifOwn is the name of a call for a result that names none.
func atifOwn(step int64, n int) string {
	if n == 0 {
		return "step-" + strconv.FormatInt(step, 10)
	}
	return fmt.Sprintf("step-%d.%d", step, n+1)
}
