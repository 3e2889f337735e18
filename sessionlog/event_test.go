package sessionlog

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Every kind comes back as it was written, with every key of it set and with none.
func TestEveryKindComesBack(t *testing.T) {
	for kind := range kinds {
		for _, full := range []bool{false, true} {
			e := newEvent(kind)
			if KindOf(e) != kind {
				t.Fatalf("%s makes a %s", kind, KindOf(e))
			}
			if full {
				fill(reflect.ValueOf(e).Elem())
			}
			b, err := AppendEvent(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			back, err := ParseEvent(b)
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			if again, err := AppendEvent(nil, back); err != nil || string(again) != string(b) {
				t.Errorf("%s came back as %s: %v", b, again, err)
			}
			if full && !reflect.DeepEqual(e, back) {
				t.Errorf("%#v came back as %#v", e, back)
			}
		}
	}
}

// fill sets everything that v holds to something that is not zero.
func fill(v reflect.Value) {
	if raw, ok := v.Addr().Interface().(*json.RawMessage); ok {
		*raw = json.RawMessage(`{"x":[1,"é\u0000"]}`)
		return
	}
	if fields, ok := v.Addr().Interface().(*[]Field); ok {
		*fields = []Field{{"other", json.RawMessage(`9007199254740993.10`)}}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.String:
		v.SetString("7")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	default:
		v.SetInt(1<<62 + 1)
	}
}

// What a line carried survives: absent, null and zero are three things, also where the event is written again.
func TestAbsentNullAndZeroSurvive(t *testing.T) {
	for _, line := range []string{
		`{"kind":"suspended"}`,
		`{"kind":"suspended","turn":null,"reason":null,"pending_calls":null}`,
		`{"kind":"suspended","turn":0,"category":"","primitive":null,"reason":"","pending_calls":[]}`,
		`{"kind":"suspended","turn":2,"category":"sched","primitive":"sched","reason":"ask_user","pending_calls":["c1"],"tape_seq":0}`,
		`{"kind":"compressed","turn":1,"archived_seq_range":[0,18446744073709551615],"summary":"","summary_tokens":0,"preserved_refs":[]}`,
		`{"kind":"rollbacked","turn":1,"checkpoint_history_len":0,"reason":{"kind":"timeout","tool_name":""}}`,
		`{"kind":"rollbacked","turn":1,"reason":{}}`,
		`{"kind":"entropy_sample","turn":1,"score":0.10,"rho":1e400}`,
		`{"kind":"llm_completed","turn":1,"content":"hi","token_count":0,"tool_calls":[]}`,
		`{"kind":"llm_completed","turn":1,"message":{}}`,
		`{"kind":"llm_completed","turn":1,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","name":"n","arguments":"{"}],"x":1},"provider_replay":null}`,
		`{"kind":"tool_completed","turn":1,"results":[{"call_id":"1","output":"","is_error":false,"is_fatal":false,"token_count":0},{"call_id":"2"}]}`,
		`{"kind":"run_started","run_id":"r","goal":"g"}`,
		`{"kind":"memory_queried","turn":1,"requires_async_response":false}`,
		`{"kind":"tea_break","turn":3,"minutes":5.50,"minutes":6,"with":{"a":1,"a":2}}`,
		`{"kind":""}`,
	} {
		e, err := ParseEvent([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if b, err := AppendEvent(nil, e); err != nil || string(b) != line {
			t.Errorf("%s\nis written as\n%s: %v", line, b, err)
		}
	}
}

func TestParseEventRefuses(t *testing.T) {
	for line, want := range map[string]string{
		``:                                     "want '{'",
		`[]`:                                   "want '{'",
		`{}`:                                   `string "kind"`,
		`{"kind":1}`:                           "want a string",
		`{"kind":"a","kind":"a"}`:              `"kind" stands twice`,
		`{"kind":"page_in","turn":1,"turn":1}`: `"turn" stands twice`,
		`{"kind":"page_in","turn":1,"\u0074urn":1}`:                  `"turn" stands twice`,
		`{"kind":"page_in","entry_count":1.5}`:                       "want an integer",
		`{"kind":"page_in","entry_count":9223372036854775808}`:       "out of range",
		`{"kind":"page_in","turn":"1"}`:                              "want an integer",
		`{"kind":"suspended","pending_calls":"c"}`:                   "want '['",
		`{"kind":"llm_completed","message":"hi"}`:                    "want '{'",
		`{"kind":"llm_completed","message":{"role":"a","role":"b"}}`: `"role" stands twice`,
		`{"kind":"tea_break","turn":"x"}`:                            "want an integer",
		"{\"kind\":\"\xff\"}":                                        "not UTF-8",
		`{"kind":"a"}}`:                                              "behind the value",
		`{"kind":"a","x":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}`: "nested more than 10000 deep",
	} {
		_, err := ParseEvent([]byte(line))
		var event *EventError
		if !errors.As(err, &event) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", line, err, want)
		}
	}
}

func TestAppendEventRefusesWhatIsNoJSON(t *testing.T) {
	for _, e := range []Event{
		&LLMCompleted{Message: Message{Content: json.RawMessage("{")}},
		&LLMCompleted{Message: Message{Content: json.RawMessage("1"), ToolCalls: []ToolCall{{Arguments: json.RawMessage("\"\xff\"")}}}},
		&EntropyAlert{Score: "x"},
		&Unknown{EventKind: "a", Common: Common{Extra: []Field{{"b", nil}}}},
	} {
		b, err := AppendEvent([]byte("x"), e)
		var event *EventError
		if !errors.As(err, &event) || string(b) != "x" {
			t.Errorf("%T is written as %s, %v", e, b, err)
		}
	}
	b, err := AppendEvent(nil, &ToolRequested{Calls: []ToolCall{{Arguments: json.RawMessage("{\n\t\"a\":\r\n1}")}}})
	if err != nil || strings.ContainsAny(string(b), "\r\n") {
		t.Errorf("%q, %v", b, err)
	}
}

func TestTaxonomy(t *testing.T) {
	for category, list := range map[Category]string{
		CategorySyscall: "tool_gated capability_changed",
		CategorySched:   "suspended resumed budget_exceeded budget_usage_reported operation_cancelled checkpoint_taken rollbacked milestone_advanced milestone_evidence entropy_sample run_started tea_break",
		CategoryMM:      "compressed page_out page_in page_in_requested large_result_spooled context_renewed renewed memory_written memory_queried memory_validation_failed",
		CategoryProc:    "agent_process_changed agent_spawned agent_preempted workflow_batch_spawned workflow_completed",
		CategoryIPC:     "signal_disposed signal_delivery_disposed",
	} {
		want := PrimitiveSched
		if category == CategorySyscall || category == CategoryMM {
			want = Primitive(category)
		}
		for _, kind := range strings.Fields(list) {
			if k := Kind(kind); k.Category() != category || k.Primitive() != want {
				t.Errorf("%s is %s of %s, want %s of %s", kind, k.Category(), k.Primitive(), category, want)
			}
		}
	}
	for list, want := range map[string]bool{
		"compressed page_out page_in capability_changed context_renewed suspended resumed tool_gated signal_disposed signal_delivery_disposed budget_exceeded budget_usage_reported operation_cancelled checkpoint_taken entropy_sample entropy_alert rollbacked agent_process_changed milestone_advanced milestone_blocked milestone_evidence memory_written memory_queried memory_validation_failed": true,
		"run_started llm_completed tool_requested tool_completed tool_argument_repaired permission_requested permission_resolved tool_denied large_result_spooled memory_retrieval_result run_terminal tea_break agent_spawned":                                                                                                                                                                        false,
	} {
		for _, kind := range strings.Fields(list) {
			k := Kind(kind)
			if k.Kernel() != want {
				t.Errorf("%s is of the kernel: %v", kind, k.Kernel())
			}
			if must := want && !strings.HasPrefix(kind, "memory_"); k.MustCarryCategory() != must {
				t.Errorf("%s must carry a category: %v", kind, k.MustCarryCategory())
			}
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"kind":"suspended","turn":0,"category":"","primitive":null,"reason":"","pending_calls":[]}`))
	f.Add([]byte(`{"kind":"tool_completed","turn":1,"results":[{"call_id":"1","output":"","is_error":false,"is_fatal":false},{"call_id":"2","x":[]}]}`))
	f.Add([]byte(`{"kind":"llm_completed","message":{"role":"a","content":[],"tool_calls":[{"id":"1","arguments":{}}]},"content":null}`))
	f.Add([]byte(`{"kind":"rollbacked","reason":{"kind":"timeout"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvent(b)
		if err != nil {
			return
		}
		once, err := AppendEvent(nil, e)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", b, err)
		}
		back, err := ParseEvent(once)
		if err != nil || !reflect.DeepEqual(e, back) {
			t.Fatalf("%s came back as %s: %v", b, once, err)
		}
		if again, err := AppendEvent(nil, back); err != nil || string(again) != string(once) {
			t.Fatalf("%s is written as %s, then as %s: %v", b, once, again, err)
		}
	})
}
