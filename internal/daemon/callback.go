package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// callBack calls a tool of the session's client: tools.execute, and tools.cancel when nobody waits for it any longer.
func (s *session) callBack(ctx context.Context, c *proposal.Call) (json.RawMessage, error) {
	limit := s.d.o.Limits.ToolTimeout
	if c.Timeout == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	} else {
		limit = c.Timeout
	}
	sub := ctx.Value(submissionKey{}).(*submission) // submit put it there
	p := executeParams{call: c, id: s.conn.NewID(), session: cmp.Or(sub.scope, s.id)}
	var output json.RawMessage
	err := sub.r.Call(ctx, p.id, rpcapi.ToolsExecute, &p, &output)
	s.d.metrics.callbacks.With(outcomeOf(err)).Inc()
	if err == nil {
		if len(output) == 0 {
			output = json.RawMessage("null")
		}
		return output, nil
	}
	return nil, s.notCalled(ctx, c, p.id, limit, err)
}

// notCalled says in the words of a result why a call has no output, and tells the client where it is the daemon that gave up.
func (s *session) notCalled(ctx context.Context, c *proposal.Call, id string, limit time.Duration, err error) error {
	var said *jsonrpc.Error
	switch {
	case errors.As(err, &said):
		return errors.New(cmp.Or(said.Message, fmt.Sprintf("tool '%s' failed with code %d, and did not say why", c.Tool, said.Code)))
	case errors.Is(err, jsonrpc.ErrClosed):
		return errors.New("the connection went away before the tool answered")
	case ctx.Err() == nil:
		return err
	}
	reason := fmt.Sprintf("tool '%s' callback cancelled", c.Tool)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = fmt.Sprintf("tool '%s' callback timed out (%gs)", c.Tool, limit.Seconds())
	}
	_ = s.conn.Notify(rpcapi.ToolsCancel, rpcapi.ToolsCancelParams{RequestID: id, ActionID: c.ActionID, Reason: reason})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", reason, context.DeadlineExceeded)
	}
	return ctx.Err()
}

func outcomeOf(err error) string {
	var said *jsonrpc.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &said):
		return "error"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, jsonrpc.ErrClosed):
		return "closed"
	}
	return "cancelled"
}

// executeParams are rpcapi.ToolsExecuteParams without reflection.
type executeParams struct {
	call    *proposal.Call
	id      string
	session string
}

func (p *executeParams) AppendJSON(dst []byte) ([]byte, error) {
	dst = jsonscan.AppendText(append(dst, `{"action_id":`...), p.call.ActionID)
	dst = jsonscan.AppendText(append(dst, `,"tool":`...), p.call.Tool)
	dst = append(append(dst, `,"parameters":`...), p.call.Parameters...)
	dst = append(append(dst, `,"params":`...), p.call.Parameters...)
	if p.call.Timeout > 0 {
		dst = strconv.AppendInt(append(dst, `,"timeout_ms":`...), p.call.Timeout.Milliseconds(), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"attempt":`...), int64(p.call.Attempt), 10)
	dst = jsonscan.AppendText(append(dst, `,"request_id":`...), p.id)
	dst = jsonscan.AppendText(append(dst, `,"session_id":`...), p.session)
	return append(dst, '}'), nil
}
