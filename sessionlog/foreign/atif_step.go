package foreign

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// An atifStep is one step. Its memory is the step's own.
type atifStep struct {
	source, model, thought   string
	id, tokens               int64
	message, calls, observed []byte
	copied                   bool // from an earlier trajectory
	noCall                   bool // no model was asked
}

func (p *atifStep) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "step_id":
			p.id = count(s)
		case "source":
			p.source = text(s)
		case "model_name":
			p.model = text(s)
		case "message":
			p.message = s.Raw()
		case "reasoning_content":
			p.thought = text(s)
		case "tool_calls":
			p.calls = s.Raw()
		case "observation":
			p.observed = s.Raw()
		case "metrics":
			p.tokens = atifTokens(s)
		case "is_copied_context":
			p.copied = isTrue(s)
		case "llm_call_count":
			p.noCall = s.Peek() == '0'
			s.Skip()
		default:
			s.Skip()
		}
	}
	_ = s.End()
}

// atifTokens reads metrics: the tokens of the prompt, cached ones and all, and of what was said.
func atifTokens(s *jsonscan.Scanner) (n int64) {
	if s.Peek() != '{' {
		s.Skip()
		return 0
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "prompt_tokens", "completion_tokens":
			n += count(s)
		default:
			s.Skip()
		}
	}
	return n
}

func (a *atifReader) step(b []byte) error {
	var p atifStep
	a.inner.Reset(b)
	if p.read(&a.inner); a.inner.Err() != nil {
		return broken{a.inner.Err()}
	}
	if p.copied {
		a.r.skip("steps copied from an earlier trajectory", "they stand there", 0)
		return nil
	}
	said := readParts(&a.part, unspaced(p.message))
	if err := a.part.Err(); p.message != nil && err != nil {
		return broken{err}
	}
	switch p.source {
	case "user":
		e := &sessionlog.RunStarted{Goal: said.goal(), Attachments: said.others, SystemPrompt: strings.Join(a.system, "\n")}
		a.system = nil
		if err := a.chat.ask(e); err != nil {
			return err
		}
		return a.results(&p)
	case "system":
		if a.chat.d.Counts().Runs == 0 {
			a.system = append(a.system, said.goal())
		} else {
			a.r.skip("steps of the system after the first prompt", "what the program did, no part of the conversation", 0)
		}
		return nil
	case "agent":
		return a.answer(&p, said)
	}
	a.r.skip("steps of "+p.source, "unknown", 0)
	return nil
}

// answer is a turn, with what came of its calls. A step in which no model was called adds its calls to the turn before it.
func (a *atifReader) answer(p *atifStep, said parts) error {
	calls, err := a.calls(p)
	if err != nil {
		return err
	}
	if p.noCall && a.chat.d.Turn() > 0 {
		a.r.skip("messages of steps that no model made", "the turn is that of the model's last answer", 0)
		if err := a.chat.flush(); err != nil {
			return err
		}
		if err := a.chat.d.Request(calls, nil); err != nil {
			return err
		}
		return a.results(p)
	}
	turn := answer{model: p.model, tokens: p.tokens, calls: calls}
	turn.add(said)
	turn.think(p.thought, nil)
	if err := a.chat.turn(&turn, ""); err != nil {
		return err
	}
	return a.results(p)
}

func (a *atifReader) calls(p *atifStep) (calls []sessionlog.ToolCall, err error) {
	s := &a.part
	if p.calls == nil || p.calls[0] != '[' {
		return nil, nil
	}
	s.Reset(p.calls)
	for s.Begin('['); s.More(']'); {
		c := sessionlog.ToolCall{Arguments: json.RawMessage("{}")}
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "tool_call_id":
				c.ID = text(s)
			case "function_name":
				c.Name = text(s)
			case "arguments":
				c.Arguments = owned(s.Raw())
			default:
				s.Skip()
			}
		}
		calls = append(calls, c)
	}
	if s.Err() != nil {
		return nil, broken{s.Err()}
	}
	return calls, nil
}

// results are what a step observed.
func (a *atifReader) results(p *atifStep) error {
	if p.observed == nil || p.observed[0] != '{' {
		return nil
	}
	s := &a.inner
	s.Reset(p.observed)
	n := 0
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "results" || s.Peek() != '[' {
			s.Skip()
			continue
		}
		for s.Begin('['); s.More(']'); n++ {
			r, err := a.result(s)
			if err != nil {
				return err
			}
			if r.CallID == "" {
				r.CallID = atifOwn(p.id, n)
				a.r.note("results that name no call are kept as those of calls named step-N, N being their step_id")
			}
			if err := a.chat.result(r); err != nil {
				return err
			}
		}
	}
	if s.Err() != nil {
		return broken{s.Err()}
	}
	return nil
}

// atifOwn is the name of a call for a result that names none.
func atifOwn(step int64, n int) string {
	if n == 0 {
		return "step-" + strconv.FormatInt(step, 10)
	}
	return fmt.Sprintf("step-%d.%d", step, n+1)
}

func (a *atifReader) result(s *jsonscan.Scanner) (sessionlog.ToolResult, error) {
	var r sessionlog.ToolResult
	var content, refs []byte
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "source_call_id":
			r.CallID = text(s)
		case "content":
			content = s.Raw()
		case "subagent_trajectory_ref":
			refs = s.Raw()
		case "is_error": // some producers add it
			r.IsError = isTrue(s)
		default:
			s.Skip()
		}
	}
	if s.Err() != nil {
		return r, broken{s.Err()}
	}
	if len(refs) > 2 {
		a.r.skip("references to the trajectories of sub-agents", "their conversations are their own", 0)
	}
	if (content == nil || string(content) == "null") && refs != nil {
		content = refs
	}
	r.Output = output(&a.part, unspaced(content))
	if err := a.part.Err(); err != nil && len(content) > 0 && content[0] == '[' {
		return r, broken{err}
	}
	return r, nil
}

// unspaced is a list without the white space of a file that is written for people, anything else as it stands.
func unspaced(b []byte) []byte {
	if len(b) > 0 && b[0] == '[' {
		return owned(b)
	}
	return b
}
