package sessionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// plainFold folds a log as a reader of the specification would write it: each line by encoding/json into one struct, then a
// switch. It is what the fold here is measured against.
func plainFold(log []byte) (*Snapshot, error) {
	var snap Snapshot
	agents := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 128<<20)
	for lines.Scan() {
		var line struct {
			Event struct {
				Kind            string      `json:"kind"`
				Turn            json.Number `json:"turn"`
				Reason          string      `json:"reason"`
				PendingCalls    []string    `json:"pending_calls"`
				PendingCallIDs  []string    `json:"pending_call_ids"`
				AgentID         string      `json:"agent_id"`
				ParentSessionID string      `json:"parent_session_id"`
				State           string      `json:"state"`
				Budget          string      `json:"budget"`
				OperationID     *string     `json:"operation_id"`
				ReservationID   *string     `json:"reservation_id"`
				SignalID        string      `json:"signal_id"`
				DeliveryID      *string     `json:"delivery_id"`
				Disposition     string      `json:"disposition"`
				QueueDepth      json.Number `json:"queue_depth"`
				Attempt         *json.Number
			} `json:"event"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		switch e := &line.Event; e.Kind {
		case "suspended":
			snap.LastSuspend = &Suspension{e.Turn, e.Reason, e.PendingCalls}
		case "resumed":
			snap.LastResumedTurn = &e.Turn
		case "agent_process_changed":
			p := Process{e.Turn, e.AgentID, e.ParentSessionID, e.State}
			if at, known := agents[e.AgentID]; known {
				snap.ProcessByAgent[at] = p
			} else {
				agents[e.AgentID] = len(snap.ProcessByAgent)
				snap.ProcessByAgent = append(snap.ProcessByAgent, p)
			}
		case "budget_exceeded":
			snap.BudgetExceeded = append(snap.BudgetExceeded, Exceeded{e.Turn, e.Budget, e.OperationID, e.ReservationID})
		case "signal_disposed", "signal_delivery_disposed":
			snap.Signals = append(snap.Signals, Signal{e.Turn, e.SignalID, e.Disposition, e.QueueDepth, e.OperationID, e.DeliveryID, e.Attempt})
		case "page_out":
			snap.PageOutCount++
		case "page_in":
			snap.PageInCount++
		case "tool_gated":
			snap.ToolGatedCount++
		case "large_result_spooled":
			snap.SpoolCount++
		}
	}
	return &snap, lines.Err()
}

// benchLog is a log of so many turns, as agents that work on code leave them: answers and results of a few hundred bytes to a
// few thousand, and kernel events between them.
func benchLog(turns int) []byte {
	var b bytes.Buffer
	seq := 0
	add := func(format string, args ...any) {
		fmt.Fprintf(&b, `{"seq":%d,"event":%s,"g":%d,"t_ms":%d}`+"\n", seq, fmt.Sprintf(format, args...), seq*3, seq*17)
		seq++
	}
	said := "I will look at the file first, then change \\\"what\\\" is wrong with it.\\n"
	code := "func (s *Scanner) Next() bool {\\n\\treturn s.i < len(s.b)\\n}\\n"
	add(`{"kind":"run_started","run_id":"r","goal":"mend it","criteria":[],"attachments":[]}`)
	for turn := 1; turn <= turns; turn++ {
		add(`{"kind":"llm_completed","turn":%d,"message":{"role":"assistant","content":"%s","tool_calls":[{"id":"c%d","name":"edit","arguments":{"path":"a.go","old":"%s","new":"%s"}}]},"tape_seq":%d}`,
			turn, repeat(said, 1+turn%7), turn, repeat(code, 1+turn%3), repeat(code, 1+turn%5), turn)
		add(`{"kind":"tool_requested","turn":%d,"calls":[{"id":"c%d","name":"edit","arguments":{"path":"a.go","old":"%s","new":"%s"}}],"tape_seq":%d}`,
			turn, turn, repeat(code, 1+turn%3), repeat(code, 1+turn%5), turn)
		add(`{"kind":"tool_completed","turn":%d,"results":[{"call_id":"c%d","output":"%s","is_error":false,"token_count":%d}],"tape_seq":%d}`,
			turn, turn, repeat(code, turn%40), turn%900, turn+1)
		switch turn % 8 {
		case 0:
			add(`{"kind":"page_out","turn":%d,"action":"snip_compact","message_count":3}`, turn)
		case 1:
			add(`{"kind":"checkpoint_taken","turn":%d,"history_len":%d}`, turn, turn*2)
		case 2:
			add(`{"kind":"tool_gated","turn":%d,"call_id":"c%d","tool":"edit","reason":"ask_user"}`, turn, turn)
		case 3:
			add(`{"kind":"suspended","turn":%d,"reason":"ask_user","pending_calls":["c%d"]}`, turn, turn)
		case 4:
			add(`{"kind":"resumed","turn":%d,"approved":["c%d"],"denied":[]}`, turn, turn)
		case 5:
			add(`{"kind":"agent_process_changed","turn":%d,"agent_id":"a%d","parent_session_id":"p","role":"worker","isolation":"shared","context_inheritance":"none","state":"running","permitted_capability_ids":[]}`, turn, turn%50)
		}
	}
	add(`{"kind":"run_terminal","reason":"completed","turns_used":%d,"total_tokens":123}`, turns)
	return b.Bytes()
}

func repeat(s string, n int) string { return string(bytes.Repeat([]byte(s), n)) }

// plainMaps is plainFold for a reader without structs: each line into a map. It counts, and keeps nothing.
func plainMaps(log []byte) (gated int, err error) {
	for line := range bytes.Lines(log) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			return 0, err
		}
		if event, ok := m["event"].(map[string]any); ok && event["kind"] == "tool_gated" {
			gated++
		}
	}
	return gated, nil
}

// BenchmarkFold folds one log three ways and reports how many times as fast this package is: by the clock (times-plain against
// structs, times-maps against maps), which several processors make faster, and by the processors' time (times-plain-cpu).
func BenchmarkFold(b *testing.B) {
	log := benchLog(40_000)
	b.SetBytes(int64(len(log)))
	var structs, maps, ours laps
	for b.Loop() {
		want, err := lap(&structs, func() (*Snapshot, error) { return plainFold(log) })
		if err != nil {
			b.Fatal(err)
		}
		if _, err := lap(&maps, func() (int, error) { return plainMaps(log) }); err != nil {
			b.Fatal(err)
		}
		got, err := lap(&ours, func() (*Snapshot, error) { return SnapshotOf(NewReader(bytes.NewReader(log), "log", nil), nil) })
		if err != nil || asJSON(b, got) != asJSON(b, want) {
			b.Fatalf("%v: %s, want %s", err, asJSON(b, got), asJSON(b, want))
		}
	}
	b.ReportMetric(float64(structs.clock)/float64(ours.clock), "times-plain")
	b.ReportMetric(float64(maps.clock)/float64(ours.clock), "times-maps")
	b.ReportMetric(float64(structs.cpu)/float64(ours.cpu), "times-plain-cpu")
	b.ReportMetric(float64(len(log))*float64(b.N)/ours.clock.Seconds()/1e6, "MB/s-fold")
	b.ReportMetric(float64(len(log))*float64(b.N)/structs.clock.Seconds()/1e6, "MB/s-plain")
}

// laps are the times that something took.
type laps struct{ clock, cpu time.Duration }

func lap[T any](l *laps, run func() (T, error)) (T, error) {
	begun, cpu := time.Now(), cputime.Spent()
	v, err := run()
	l.clock += time.Since(begun)
	l.cpu += cputime.Spent() - cpu
	return v, err
}
