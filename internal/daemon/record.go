package daemon

import (
	"context"
	"errors"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// turnCost is what a turn costs its connection, in bytes, however short it is.
const turnCost = 1 << 10

// runsRecordTurns is the daemon's hot path: its params and its result know no reflection.
func runsRecordTurns(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
	run, turns, err := readTurns(r.Params)
	if err != nil {
		return nil, err
	}
	r.Cost = int64(len(turns)) * turnCost
	id, ok, err := s.writes(ctx, run)
	if err != nil {
		return nil, err
	}
	if !ok {
		return s.droppedTurns(run, store.RunNotFound), nil
	}
	base, err := s.d.store.Append(ctx, id, turns)
	var dropped *store.Dropped
	switch {
	case err == nil:
		s.d.metrics.turns.Add(len(turns))
		return &recorded{run: run, base: base, count: len(turns)}, nil
	case errors.As(err, &dropped):
		if dropped.Reason == store.RunTerminal {
			s.ended(id) // by another connection
		}
		return s.droppedTurns(run, dropped.Reason), nil
	case tooLarge(err):
		return nil, badParams("turns: %v", err)
	}
	return nil, s.storeFailed("the turns could not be recorded", run, err)
}

func (s *session) droppedTurns(run string, reason store.Reason) any {
	s.d.metrics.dropped.With(string(reason)).Inc()
	return &recorded{run: run, dropped: reason}
}

const wantTurns = "runs.record_turns requires { run_id, turns: [RunTurn] }, 1 to 256 of them"

// readTurns reads the params of runs.record_turns, whose memory the turns share.
func readTurns(params []byte) (run string, turns []runtrace.Turn, err error) {
	var s jsonscan.Scanner
	s.Reset(params)
	if s.Peek() != '{' {
		return "", nil, badParams(wantTurns)
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "run_id":
			run = s.Text()
		case "turns":
			turns = runtrace.ReadTurns(&s)
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return "", nil, badParams("%s: %v", wantTurns, err)
	}
	if run == "" || len(turns) == 0 {
		return "", nil, badParams(wantTurns)
	}
	return run, turns, nil
}

// recorded is rpcapi.RunsRecordTurnsResult without reflection.
type recorded struct {
	run         string
	base, count int
	dropped     store.Reason
}

func (r *recorded) AppendJSON(dst []byte) ([]byte, error) {
	dst = jsonscan.AppendText(append(dst, `{"run_id":`...), r.run)
	dst = strconv.AppendInt(append(dst, `,"base_index":`...), int64(r.base), 10)
	dst = strconv.AppendInt(append(dst, `,"count":`...), int64(r.count), 10)
	dst = strconv.AppendBool(append(dst, `,"ok":`...), r.dropped == "")
	if r.dropped != "" {
		dst = jsonscan.AppendText(append(dst, `,"dropped":`...), string(r.dropped))
	}
	return append(dst, '}'), nil
}
