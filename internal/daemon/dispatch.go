package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A method answers one request of a session.
type method struct {
	do func(ctx context.Context, s *session, r *jsonrpc.Request) (any, error)
	// inline methods are answered before the next frame is read, so that a client that does not wait for their replies finds
	// them done. They wait for nothing but the processor.
	inline bool
	// open methods may come before session.auth.
	open bool
}

// methods is the table of all. It is not changed after it was made.
var methods = map[string]method{
	rpcapi.SessionAuth:        {do: sessionAuth, inline: true, open: true},
	rpcapi.ServerHandshake:    {do: on(handshake), inline: true},
	rpcapi.SessionInit:        {do: on(sessionInit), inline: true},
	rpcapi.ToolsRegister:      {do: on(toolsRegister), inline: true},
	rpcapi.ToolsList:          {do: on(toolsList), inline: true},
	rpcapi.ToolsUnregister:    {do: on(toolsUnregister), inline: true},
	rpcapi.PolicyRegister:     {do: on(policyRegister), inline: true},
	rpcapi.PolicyUnregister:   {do: on(policyUnregister), inline: true},
	rpcapi.PolicyList:         {do: on(policyList), inline: true},
	rpcapi.PolicyCheck:        {do: on(policyCheck)},
	rpcapi.SessionPolicyOpen:  {do: on(policyOpen), inline: true},
	rpcapi.SessionPolicyClose: {do: on(policyClose), inline: true},
	rpcapi.StateGet:           {do: on(stateGet), inline: true},
	rpcapi.StateSet:           {do: on(stateSet), inline: true},
	rpcapi.StateExists:        {do: on(stateExists), inline: true},
	rpcapi.StateKeys:          {do: on(stateKeys), inline: true},
	rpcapi.StateSnapshot:      {do: on(stateSnapshot), inline: true},
	rpcapi.ProposalSubmit:     {do: proposalSubmit},
	rpcapi.RunsStart:          {do: on(runsStart)},
	rpcapi.RunsComplete:       {do: on(runsComplete)},
	rpcapi.RunsRecordTurns:    {do: runsRecordTurns},
	rpcapi.RunsSubscribe:      {do: alone(runsSubscribe)},
	rpcapi.RunsUnsubscribe:    {do: on(runsUnsubscribe)},
	rpcapi.RunsList:           {do: alone(on(runsList))},
	rpcapi.RunsGetTrace:       {do: alone(on(runsGetTrace))},
	rpcapi.RunsVerdicts:       {do: alone(on(runsVerdicts))},

	rpcapi.SupervisionSubscribe:   {do: supervisionSubscribe},
	rpcapi.SupervisionUnsubscribe: {do: on(supervisionUnsubscribe)},
	rpcapi.SupervisionPending:     {do: alone(on(supervisionPending))},
	rpcapi.SupervisionDecide:      {do: on(supervisionDecide)},
}

func init() {
	// A function of the table would otherwise refer to the table.
	isInline = func(name string) bool { return methods[name].inline }
}

var isInline func(string) bool

// on makes a method of a function that wants its params read.
func on[P any](f func(ctx context.Context, s *session, p *P) (any, error)) func(context.Context, *session, *jsonrpc.Request) (any, error) {
	return func(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
		var p P
		if err := read(r.Params, &p); err != nil {
			return nil, err
		}
		return f(ctx, s, &p)
	}
}

// readCost is what a read of runs costs its connection, in bytes, however short its reply: it looks into the index and files.
const readCost = 4 * jsonrpc.TokenBytes

// alone makes a method of one whose replies are long: of a connection one at a time is made, and the next when that one is
// queued. A client that does not read holds two of them, not as many as it may ask for.
func alone(do func(context.Context, *session, *jsonrpc.Request) (any, error)) func(context.Context, *session, *jsonrpc.Request) (any, error) {
	return func(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
		select {
		case s.long <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r.Cost = readCost
		result, err := do(ctx, s, r)
		after := r.After
		r.After = func() {
			<-s.long
			if after != nil {
				after()
			}
		}
		return result, err
	}
}

// read reads params; none and null leave p as it is.
func read(params json.RawMessage, p any) error {
	if len(params) == 0 {
		return nil
	}
	if err := unmarshal(params, p); err != nil {
		return badParams("%v", err)
	}
	return nil
}

func badParams(format string, args ...any) error {
	return jsonrpc.Errorf(rpcapi.CodeInvalidParams, "invalid params: "+format, args...)
}

func failed(format string, args ...any) error {
	return jsonrpc.Errorf(rpcapi.CodeInternal, format, args...)
}

// handle is the jsonrpc.Handler of a session.
func (s *session) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	m, known := methods[r.Method]
	if !m.open && !s.authed.Load() {
		s.d.metrics.refused.With("auth_required").Inc()
		return nil, &jsonrpc.Fatal{
			Err:  jsonrpc.Errorf(rpcapi.CodeAuthRequired, "auth required: call %s first", rpcapi.SessionAuth),
			Code: jsonrpc.ClosePolicy, Reason: "auth required",
		}
	}
	if !known {
		return nil, jsonrpc.Errorf(rpcapi.CodeMethodNotFound, "unknown method: %s", printable(r.Method))
	}
	return m.do(ctx, s, r)
}

// printable is a name of the client's as an error may show it.
func printable(name string) string {
	const most = 100
	if len(name) > most {
		name = name[:most] + "…"
	}
	var text strings.Builder
	for _, r := range name {
		if strconv.IsGraphic(r) {
			text.WriteRune(r) // quotes too: JSON escapes them where it is sent
			continue
		}
		quoted := strconv.QuoteRuneToGraphic(r)
		text.WriteString(quoted[1 : len(quoted)-1])
	}
	return text.String()
}

// unmarshal is json.Unmarshal with errors in the words of the wire: a client knows nothing of our types.
func unmarshal(raw []byte, to any) error {
	err := json.Unmarshal(raw, to)
	var other *json.UnmarshalTypeError
	if !errors.As(err, &other) {
		return err
	}
	text := fmt.Sprintf("want %s, got %s", wanted(other.Type), got(other.Value))
	if other.Field != "" {
		text = other.Field + ": " + text
	}
	return errors.New(text)
}

// lists are what their elements are called.
var lists = map[reflect.Type]string{
	reflect.TypeFor[rpcapi.Tool](): "tools", reflect.TypeFor[rpcapi.PolicyRegisterParams](): "policies",
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		if name, ok := lists[t.Elem()]; ok {
			return "an array of " + name
		}
		return "an array"
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "an object"
}

// got is a value as encoding/json calls it: array, bool, object, string, number, or number and its text.
func got(value string) string {
	switch text, isNumber := strings.CutPrefix(value, "number "); {
	case isNumber:
		return text
	case value == "bool":
		return "true or false"
	case value == "array" || value == "object":
		return "an " + value
	}
	return "a " + value
}
