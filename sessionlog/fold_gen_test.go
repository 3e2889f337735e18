package sessionlog

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// genEvent draws an event of any kind, with the fields that the snapshot reads, some of them absent, null or odd but legal.
func genEvent(t *rapid.T) []byte {
	kind := rapid.SampledFrom(allKinds).Draw(t, "kind")
	var b strings.Builder
	fmt.Fprintf(&b, `{"kind":%q`, kind)
	put := func(key string, values ...string) {
		if v := rapid.SampledFrom(append(values, "", "null")).Draw(t, key); v != "" {
			fmt.Fprintf(&b, `,%q:%s`, key, v)
		}
	}
	put("turn", "1", "2", "3", "1e3", "9007199254740993", "18446744073709551617", "-0", "2.50")
	put("reason", `"ask_user"`, `"deadline"`, `"\u0000<&>"`)
	put("pending_calls", `["c1"]`, `[]`, ` [ "a" , "b" ] `)
	put("pending_call_ids", `["c1","c2"]`, `[]`)
	put("agent_id", `"a"`, `"b"`, `"\u0061"`)
	put("parent_session_id", `"p"`)
	put("state", `"running"`, `"joined"`)
	put("budget", `"tokens"`, `"rounds"`)
	put("operation_id", `"op"`, `""`)
	put("reservation_id", `"r"`)
	put("delivery_id", `"d"`)
	put("attempt", "1", "0")
	put("signal_id", `"s1"`, `"s2"`)
	put("disposition", `"queue"`, `"drop"`)
	put("queue_depth", "0", "7", "12345678901234567890123")
	put("tokens", "10", "1e400")
	put("subagents", "1")
	put("rounds", "4")
	put("something_new", `{"turn":[1,{"kind":"x"}]}`, `"…"`)
	b.WriteByte('}')
	return []byte(b.String())
}

// allKinds are every kind of the specification, and some that no one knows.
var allKinds = []string{
	"run_started", "llm_completed", "tool_requested", "tool_completed", "tool_argument_repaired", "permission_requested",
	"permission_resolved", "tool_denied", "tool_gated", "large_result_spooled", "capability_changed", "compressed", "page_out",
	"page_in", "context_renewed", "suspended", "resumed", "signal_disposed", "signal_delivery_disposed", "budget_exceeded",
	"budget_usage_reported", "operation_cancelled", "checkpoint_taken", "rollbacked", "agent_process_changed", "milestone_advanced",
	"milestone_blocked", "milestone_evidence", "entropy_sample", "entropy_alert", "memory_written", "memory_queried",
	"memory_validation_failed", "memory_retrieval_result", "run_terminal", "workflow_completed", "of_tomorrow", "",
}

func foldOf(t interface{ Fatalf(string, ...any) }, f *Fold, events [][]byte) *Snapshot {
	for _, e := range events {
		if err := f.AddRaw(e); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
	return f.Snapshot()
}

func asJSON(t interface{ Fatalf(string, ...any) }, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(b)
}
