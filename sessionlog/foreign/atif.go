package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
type atif struct{}

func (atif) Name() string { return "atif" }

var atifVersion = lazyregexp.New(`"schema_version"\s*:\s*"ATIF-v`)

func (atif) Looks(path string, head []byte) bool {
	if head == nil {
		return isFile(filepath.Join(path, "trajectory.json"))
	}
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && atifVersion.Match(head)
}

// Import reads a trajectory, or the trajectory.json in a folder.
func (atif) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	r := newReport("atif", path)
	if isFile(filepath.Join(path, "trajectory.json")) {
		r.File = filepath.Join(path, "trajectory.json")
	}
	a := &atifReader{r: r}
	if err := a.about(); err != nil {
		return r, err
	}
	a.chat = newChat(r, r.Session, "atif", emit)
	return r, r.ended(a.chat, a.read(ctx))
}

// An atifReader turns the steps of a trajectory into events.
type atifReader struct {
	r      *Report
	chat   *chat
	system []string // what stands before the first prompt
	agents int      // trajectories of sub-agents in the file
	inner  jsonscan.Scanner
	part   jsonscan.Scanner
}

// atifKeys are those of the whole that become no event.
var atifKeys = map[string]bool{
	"schema_version": true, "session_id": true, "trajectory_id": true, "agent": true, "notes": true, "final_metrics": true,
	"continued_trajectory_ref": true, "extra": true,
}

// about reads what the file says of the session. That stands before the steps in what Harbor writes; where it does not, the file
// is read twice.
func (a *atifReader) about() error {
	f, err := openFile(a.r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	s := jsonscan.NewStream(f, MaxLine)
	var version, trajectory, name, agent string
	session := false
	small := func() string {
		b := s.Raw()
		a.inner.Reset(b)
		if s.Err() != nil || a.inner.Peek() != '"' {
			return ""
		}
		return a.inner.Text()
	}
scan:
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "schema_version":
			version = small()
		case "session_id":
			a.r.Session = small()
			session = a.r.Session != ""
		case "trajectory_id":
			trajectory = small()
		case "agent":
			b := s.Raw()
			a.inner.Reset(b)
			name = textIn(&a.inner, "name")
			a.inner.Reset(b)
			agent = textIn(&a.inner, "version")
		case "steps":
			if session && name != "" {
				break scan
			}
			s.Skip()
		default:
			s.Skip()
		}
	}
	if err := s.Err(); err != nil && !isCut(err) {
		return &Error{Path: a.r.File, Line: s.Line(), Err: err}
	}
	if a.r.Session == "" {
		a.r.Session = trajectory
	}
	a.r.Version = agent
	a.r.note("a trajectory of %s in the form %s", orUnknown(name), orUnknown(version))
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

// read reads the steps. Memory is one step.
func (a *atifReader) read(ctx context.Context) error {
	f, err := openFile(a.r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	s := jsonscan.NewStream(f, MaxLine)
	some := false
	for s.Begin('{'); s.More('}'); {
		switch key := string(s.Key()); {
		case key == "steps" && some:
			s.Fail("the key %q stands twice", key)
		case key == "steps":
			some = true
			if err := a.steps(ctx, s); err != nil {
				return err
			}
		case key == "subagent_trajectories":
			a.others(s)
		case key == "continued_trajectory_ref" && s.Peek() == '"':
			s.Skip()
			a.r.note("the trajectory goes on in another file, which is not read")
		default:
			s.Skip()
			if !atifKeys[key] {
				a.r.skip("the key "+key, "unknown", 0)
			}
		}
	}
	err = s.End()
	if err != nil && isCut(err) && a.r.Lines > 0 {
		a.r.note("the file is cut off behind step %d", a.r.Lines)
		return nil
	}
	if err == nil && !some {
		err = errors.New(`expected a key "steps"`)
	}
	if err != nil {
		return &Error{Path: a.r.File, Line: s.Line(), Err: err}
	}
	return nil
}

func (a *atifReader) steps(ctx context.Context, s *jsonscan.Stream) error {
	for s.Begin('['); s.More(']'); {
		b := s.Raw()
		if s.Err() != nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		a.r.Lines++
		err := jsonscan.ValidUTF8(b)
		if err != nil {
			err = broken{err}
		} else {
			err = a.step(b)
		}
		if fault, ok := errors.AsType[broken](err); ok {
			return &Error{Path: a.r.File, Line: s.Line(), Err: fmt.Errorf("step %d: %w", a.r.Lines, fault.error)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// others counts the trajectories of sub-agents, whose conversations are their own.
func (a *atifReader) others(s *jsonscan.Stream) {
	if s.Peek() != '[' {
		s.Skip()
		return
	}
	for s.Begin('['); s.More(']'); s.Skip() {
		a.agents++
	}
	if a.agents > 0 {
		a.r.note("trajectories of sub-agents in the file, which are not read: %d", a.agents)
	}
}
