package sessionlog

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestFoldOnEqualsWhole: a snapshot of a prefix, folded on with the rest, is that of the whole; also where it was kept as JSON
// in between, and the prefix's own snapshot does not move.
func TestFoldOnEqualsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(genEvent), 0, 60).Draw(t, "events")
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		whole := foldOf(t, NewFold(), events)
		prefix := foldOf(t, NewFold(), events[:cut])
		before := asJSON(t, prefix)
		if got := foldOf(t, NewFoldFrom(prefix), events[cut:]); !cmp.Equal(got, whole) {
			t.Fatal(cmp.Diff(whole, got))
		}
		if after := asJSON(t, prefix); after != before {
			t.Fatalf("the prefix's snapshot moved: %s, was %s", after, before)
		}
		var kept Snapshot
		if err := json.Unmarshal([]byte(before), &kept); err != nil {
			t.Fatal(err)
		}
		if got := foldOf(t, NewFoldFrom(&kept), events[cut:]); asJSON(t, got) != asJSON(t, whole) {
			t.Fatalf("by way of JSON: %s, want %s", asJSON(t, got), asJSON(t, whole))
		}
	})
}

// TestFoldGrowsOnly: a snapshot that was taken does not change when the fold goes on.
func TestFoldGrowsOnly(t *testing.T) {
	f := NewFold()
	add := func(e string) {
		t.Helper()
		if err := f.AddRaw([]byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	add(`{"kind":"agent_process_changed","turn":1,"agent_id":"a","state":"running"}`)
	taken := f.Snapshot()
	before := asJSON(t, taken)
	add(`{"kind":"agent_process_changed","turn":2,"agent_id":"a","state":"joined"}`)
	add(`{"kind":"agent_process_changed","turn":2,"agent_id":"b","state":"running"}`)
	if after := asJSON(t, taken); after != before {
		t.Errorf("moved from %s to %s", before, after)
	}
	if got := f.Snapshot().ProcessByAgent; len(got) != 2 || got[0].State != "joined" || got[1].AgentID != "b" {
		t.Errorf("%+v", got)
	}
}

const samples = "../../shared/samples/deepstrike"

// needSamples skips a test where the samples of other producers are not there: they lie outside the module.
func needSamples(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(samples); err != nil {
		t.Skipf("no samples of other producers here: %v", err)
	}
}

// TestDeepstrike: logs of another producer, in both forms, come to what that producer says they do.
func TestDeepstrike(t *testing.T) {
	needSamples(t)
	for events, golden := range map[string]string{
		"events_ask_user.json": "os_snapshot_ask_user.json", "events_ask_user.older.json": "os_snapshot_ask_user.older.json",
	} {
		got := foldOf(t, NewFold(), listOf(t, filepath.Join(samples, events)))
		checkGolden(t, events, got, readFile(t, filepath.Join(samples, golden)))
	}
}

// checkGolden holds a snapshot against another producer's: what that lacks is zero, empty or null here.
func checkGolden(t *testing.T, name string, got *Snapshot, golden []byte) {
	t.Helper()
	var want, have map[string]any
	if err := errors.Join(json.Unmarshal(golden, &want), json.Unmarshal([]byte(asJSON(t, got)), &have)); err != nil {
		t.Fatal(err)
	}
	for key, v := range have {
		if _, said := want[key]; said {
			continue
		}
		if list, isList := v.([]any); v != 0.0 && (!isList || len(list) > 0) {
			t.Errorf("%s: %s is %v, which the golden lacks", name, key, v)
		}
		delete(have, key)
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("%s (-want +got)\n%s", name, d)
	}
}

func listOf(t *testing.T, path string) [][]byte {
	t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal(readFile(t, path), &list); err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFoldNewer: the fields of newer producers, numbers as they stood, keys in the order of the specification.
func TestFoldNewer(t *testing.T) {
	events := []string{
		`{"kind":"agent_process_changed","turn":1,"agent_id":"child-1","parent_session_id":"parent","role":"worker","state":"running"}`,
		`{"kind":"signal_disposed","turn":2,"signal_id":"old","disposition":"queue","queue_depth":1}`,
		`{"kind":"signal_delivery_disposed","turn":2,"operation_id":"op","delivery_id":"d","attempt":1,"signal_id":"new","disposition":"drop","queue_depth":9007199254740993}`,
		`{"kind":"budget_exceeded","turn":3,"budget":"tokens"}`,
		`{"kind":"budget_exceeded","turn":3,"operation_id":"op","reservation_id":"r","budget":"<rounds>"}`,
		`{"kind":"budget_usage_reported","turn":1e0,"operation_id":"op","reservation_id":"r","tokens":18446744073709551617,"subagents":2,"rounds":3}`,
		`{"kind":"operation_cancelled","turn":4,"operation_id":"op","reason":"deadline","pending_call_ids":["c1"]}`,
		`{"kind":"operation_cancelled","turn":5,"operation_id":"op","reason":"user"}`,
		`{"kind":"large_result_spooled","turn":5}`, `{"kind":"memory_retrieval_result","hits":[]}`,
		`{"kind":"agent_process_changed","turn":6,"agent_id":"child-1","parent_session_id":"parent","state":"joined"}`,
	}
	const want = `{"last_suspend":null,"last_resumed_turn":null,` +
		`"process_by_agent":[{"turn":6,"agent_id":"child-1","parent_session_id":"parent","state":"joined"}],` +
		`"budget_exceeded":[{"turn":3,"budget":"tokens"},{"turn":3,"budget":"<rounds>","operation_id":"op","reservation_id":"r"}],` +
		`"signals":[{"turn":2,"signal_id":"old","disposition":"queue","queue_depth":1},` +
		`{"turn":2,"signal_id":"new","disposition":"drop","queue_depth":9007199254740993,"operation_id":"op","delivery_id":"d","attempt":1}],` +
		`"page_out_count":0,"page_in_count":0,"tool_gated_count":0,"memory_written_count":0,"memory_queried_count":0,` +
		`"memory_validation_failed_count":0,"memory_retrieval_result_count":1,` +
		`"budget_usage_reported":[{"turn":1e0,"operation_id":"op","reservation_id":"r","tokens":18446744073709551617,"subagents":2,"rounds":3}],` +
		`"cancellations":[{"turn":4,"operation_id":"op","reason":"deadline","pending_call_ids":["c1"]},` +
		`{"turn":5,"operation_id":"op","reason":"user","pending_call_ids":[]}],"spool_count":1}`
	f := NewFold()
	for _, e := range events {
		if err := f.AddRaw([]byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := f.Snapshot().MarshalJSON()
	if err != nil || string(b) != want {
		t.Errorf("got  %s\nwant %s (%v)", b, want, err)
	}
}

// TestFoldRefuses: what cannot be read for what it is, is an error that says so, and leaves no trace in the snapshot.
func TestFoldRefuses(t *testing.T) {
	for event, want := range map[string]string{
		``:                                       `event: at byte 1: want '{'`,
		`[1]`:                                    `event: at byte 1: want '{'`,
		`{}`:                                     `event: want an object with a string "kind"`,
		`{"kind":3}`:                             `event: at byte 9: want a string`,
		`{"kind":"a","kind":"b"}`:                `stands twice`,
		`{"kind":"page_in"} x`:                   `behind the value`,
		"{\"kind\":\"page_in\",\"x\":\"\xff\"}":  `not UTF-8`,
		`{"kind":"suspended","turn":"2"}`:        `event "suspended": field turn: want a number, got "2"`,
		`{"kind":"suspended","turn":2,"turn":3}`: `event "suspended": field turn: the key stands twice`,
		`{"kind":"suspended","pending_calls":[1]}`:                                            `want a list of strings, got [1]`,
		`{"kind":"agent_process_changed","agent_id":{"a":"` + strings.Repeat("b", 60) + `"}}`: `field agent_id: want a string, got {"a":"bbb`,
		`{"kind":"x","y":` + strings.Repeat("[", 1_000_000) + `}`:                             `nested more than`,
	} {
		f := NewFold()
		before := asJSON(t, f.Snapshot())
		err := f.AddRaw([]byte(event))
		var typed *EventError
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", event, err, want)
		}
		if after := asJSON(t, f.Snapshot()); after != before {
			t.Errorf("%.80s left %s", event, after)
		}
	}
	// What is not read here may stand twice, be of any type, and hold any number.
	for _, event := range []string{`{"kind":"tool_gated","reason":1,"reason":2}`, `{"kind":"new","turn":"x","turn":"y","n":1e999999}`,
		`{"kind":"resumed","turn":null}`, `{"kind":""}`} {
		if err := NewFold().AddRaw([]byte(event)); err != nil {
			t.Errorf("%s: %v", event, err)
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"kind":"suspended","turn":1,"pending_calls":["a"]}`))
	f.Add([]byte(`{"kind":"budget_exceeded","turn":1e9,"budget":"\ud800"}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		fold := NewFold()
		if err := fold.AddRaw(event); err != nil {
			return
		}
		var again Snapshot
		kept := asJSON(t, fold.Snapshot())
		if err := json.Unmarshal([]byte(kept), &again); err != nil || asJSON(t, &again) != kept {
			t.Fatalf("%s reads as %s (%v)", kept, asJSON(t, &again), err)
		}
	})
}
