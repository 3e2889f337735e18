package deck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxJudged bounds the parameters that a verdict is asked for, in bytes: a frame of the protocol has a bound.
const maxJudged = 8 << 20

// judge asks the daemon's policies about what was called, and puts their verdicts onto the tape.
func (d *daemonRun) judge(ctx context.Context) error {
	for len(d.book.fresh) > 0 {
		if err := d.judgeOne(ctx, &d.book.fresh[0].call); err != nil {
			return err
		}
		d.book.fresh[0] = nil
		d.book.fresh = d.book.fresh[1:]
	}
	return nil
}

// judgeOne asks about one call. The error is that of a daemon that does not answer.
func (d *daemonRun) judgeOne(ctx context.Context, c *sessionlog.ToolCall) error {
	if d.gaps.unjudgeable != "" {
		d.gaps.unjudged++
		return nil
	}
	params, _ := d.scrub.Bytes(c.Arguments)
	params = canonical(params)
	if len(params) > maxJudged {
		d.gaps.unjudge("its parameters are too long")
		return nil
	}
	p := &rpcapi.PolicyCheckParams{Tool: d.text(c.Name), ActionID: d.text(c.ID), Parameters: params, RunID: d.run}
	var said json.RawMessage
	err := insist(ctx, func() (err error) {
		said, err = d.sink.Check(ctx, p)
		return err
	})
	var no *daemonRefusal
	if errors.As(err, &no) {
		d.gaps.unjudge(no.Error())
		if no.unknown {
			d.gaps.unjudgeable = no.Error()
		}
		return nil
	}
	if err != nil {
		return err
	}
	d.verdict(p, said)
	return nil
}

// verdict puts what the policies said onto the tape.
func (d *daemonRun) verdict(p *rpcapi.PolicyCheckParams, said json.RawMessage) {
	said, _ = d.scrub.Bytes(said)
	var v struct {
		PolicySet string          `json:"policy_set"`
		Verdict   json.RawMessage `json:"verdict"`
	}
	if err := json.Unmarshal(said, &v); err != nil || v.Verdict == nil {
		d.gaps.unjudge("the daemon's answer is none")
		return
	}
	params, err := d.tape.Rec.Payload(p.Parameters)
	if err != nil {
		return // which has ended the recording
	}
	set, _ := tape.SafeString(v.PolicySet)
	action, _ := tape.SafeString(p.ActionID)
	tool, _ := tape.SafeString(p.Tool)
	_ = d.tape.Rec.Record(&tape.PolicyVerdict{ // which tells the run of its failure
		PolicySet: set, ActionID: action, Tool: tool, ParamsDigest: cas.Sum(p.Parameters), ParamsPayload: params, Verdict: v.Verdict,
	})
}

// canonical is the form of parameters that their digest is of; as they stand where they have none.
func canonical(params []byte) []byte {
	if len(bytes.TrimSpace(params)) == 0 {
		return []byte("{}")
	}
	out, err := canonjson.Canonical(params)
	if err != nil {
		return params
	}
	return out
}
