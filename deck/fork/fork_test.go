package fork_test

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/fork"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// records yields kinds, each a record of the ordinal that is its seq and one more.
func records(kinds ...tape.Kind) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for i, k := range kinds {
			if !yield(&tape.Record{Seq: uint64(i), G: uint64(i) + 1, Kind: k}, nil) {
				return
			}
		}
	}
}

// call is a call of a model.
func call(arrival uint64, lane string, status int) *tape.LLMCall {
	return &tape.LLMCall{Exchange: tape.Exchange{Method: "POST", URL: "https://m/v1", Arrival: arrival, Lane: lane, Status: status}}
}

// TestFind finds points by turns and by records. A call that failed is of the turn of the one that is tried after it.
func TestFind(t *testing.T) {
	all := records(
		call(1, "llm:a", 200), call(3, "llm:b", 200), call(2, "llm:a", 429), call(4, "llm:a", 200), new(tape.FileWrite),
		call(5, "llm:a", 200),
	)
	tp, err := fork.Read(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		place            fork.Place
		seq              uint64
		first            uint64 // arrival
		turn, callsFirst int
		err              string
	}{
		{place: fork.Place{Turn: 1, Lane: "a"}, seq: 0, first: 1, turn: 1},
		{place: fork.Place{Turn: 2}, seq: 2, first: 2, turn: 2, callsFirst: 1},
		{place: fork.Place{Turn: 3}, seq: 5, first: 5, turn: 3, callsFirst: 4},
		{place: fork.Place{Seq: 3}, seq: 3, first: 4, turn: 2, callsFirst: 3},
		{place: fork.Place{Seq: 4}, seq: 4, first: 5, turn: 3, callsFirst: 4},
		{place: fork.Place{Turn: 1}, err: "several conversations have so many turns: name one with --lane; there are llm:a (3), llm:b (1)"},
		{place: fork.Place{Turn: 4}, err: "no conversation has so many turns"},
		{place: fork.Place{Turn: 2, Lane: "llm:b"}, err: "the conversation has fewer turns"},
		{place: fork.Place{Turn: 1, Lane: "c"}, err: `there is no conversation "c"`},
		{place: fork.Place{Seq: 6}, err: "its last one is 5"},
	} {
		p, err := tp.Find(c.place, all)
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v, want %q", c.place, err, c.err)
			}
			continue
		}
		if p.Seq != c.seq || p.First.Arrival != c.first || p.Turn != c.turn || p.Before != c.callsFirst {
			t.Errorf("%+v: got %+v with arrival %d", c.place, p, p.First.Arrival)
		}
	}
}

func document() *fork.Document {
	return &fork.Document{
		System: "old", Tool: map[string]string{"c.1": "was"},
		Answer: fork.Answer{Text: "text", ToolCalls: []fork.ToolCall{{ID: "c2", Name: "write", Arguments: json.RawMessage(`{"path":"a","n":1}`)}}},
	}
}

// TestSet sets what each path names, and refuses the others with what there is.
func TestSet(t *testing.T) {
	for _, c := range []struct{ set, want, err string }{
		{set: "answer=No.", want: `{"answer":{"text":"No.","tool_calls":[{"id":"c2","name":"write","arguments":{"path":"a","n":1}}]}}`},
		{set: "answer.tool_calls=[]", want: `{"answer":{"text":"text","tool_calls":[]}}`},
		{set: "answer.tool_calls.0.name=read", want: `{"answer":{"text":"text","tool_calls":[{"id":"c2","name":"read","arguments":{"path":"a","n":1}}]}}`},
		{set: "answer.tool_calls.0.arguments.path=2", want: `{"answer":{"text":"text","tool_calls":[{"id":"c2","name":"write","arguments":{"n":1,"path":"2"}}]}}`},
		{set: "answer.tool_calls.0.arguments.n=2", want: `{"answer":{"text":"text","tool_calls":[{"id":"c2","name":"write","arguments":{"n":2,"path":"a"}}]}}`},
		{set: `answer.tool_calls.0.arguments={"n":1,"path":"a"}`, want: `{}`},
		{set: "system=new=er", want: `{"system":"new=er"}`},
		{set: "tool.c.1=now", want: `{"tool":{"c.1":"now"}}`},
		{set: "tool.c.1=was", want: `{}`},
		{set: "tool.x=now", err: "no call of a tool before has the id x; there are c.1"},
		{set: "answer.tool_calls.1.name=x", err: "has 1 tool calls, counted from 0"},
		{set: "answer.tool_calls.0.arguments=[", err: "want a JSON object"},
		{set: "answer.tool_calls.0.arguments=[1]", err: "want a JSON object"},
		{set: "answer.tool_calls.0.arguments=null", err: "want a JSON object"},
		{set: "answer.tool_calls.0.arguments.a.b=1", err: "set all of arguments as JSON"},
		{set: `answer.tool_calls=[{"nam":"run"}]`, err: "tool call 0 has no name"},
		{set: `answer.tool_calls=[{"name":"run","arguments":[1]}]`, err: "the arguments of tool call 0: want a JSON object"},
		{set: `answer.tool_calls=[{"name":"run"}]`, want: `{"answer":{"text":"text","tool_calls":[{"id":"","name":"run","arguments":{}}]}}`},
		{set: "answer.tool_calls=x", err: "want a JSON list"},
		{set: "model=x", err: "there is no such place; there are answer,"},
		{set: "system", err: "want PATH=VALUE"},
	} {
		base := document()
		edited := document()
		err := edited.Set(c.set)
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.set, err, c.err)
			}
			continue
		}
		if b, _ := json.Marshal(base.Changes(edited)); string(b) != c.want {
			t.Errorf("%s: got %s, want %s", c.set, b, c.want)
		}
	}
}

// TestEdited: what an edited document leaves out stays; a text that is no JSON is the answer.
func TestEdited(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{text: `{"system":"new"}`, want: `{"system":"new"}`},
		{text: `{"answer":{"text":"x"}}`, want: `{"answer":{"text":"x","tool_calls":[{"id":"c2","name":"write","arguments":{"path":"a","n":1}}]}}`},
		{text: "I will\nnot.\n", want: `{"answer":{"text":"I will\nnot.","tool_calls":[{"id":"c2","name":"write","arguments":{"path":"a","n":1}}]}}`},
		{text: `{"answer":{"text":"text","tool_calls":[{"id":"c2","name":"write","arguments":{"path":"b","n":1}}]}}`, want: `{"answer":{"text":"text","tool_calls":[{"id":"c2","name":"write","arguments":{"path":"b","n":1}}]}}`},
		{text: `{"tool":{"x":"y"}}`, err: "no call of a tool before has the id x"},
		{text: `{"answer":{"tool_calls":[{"name":""}]}}`, err: "tool call 0 has no name"},
		{text: `{"tools":{}}`, err: "want JSON with answer, system and tool"},
	} {
		base := document()
		d, err := base.Edited([]byte(c.text))
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.text, err, c.err)
			}
			continue
		}
		if b, _ := json.Marshal(base.Changes(d)); string(b) != c.want {
			t.Errorf("%s: got %s, want %s", c.text, b, c.want)
		}
	}
}

// FuzzEdited: no text does harm, and what is taken can be written and read again.
func FuzzEdited(f *testing.F) {
	f.Add([]byte(`{"answer":{"text":"x","tool_calls":[{"id":"a","name":"b","arguments":{}}]},"system":"s","tool":{"c.1":"y"}}`))
	f.Add([]byte(`plain`))
	f.Add([]byte("\xffplain"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := document().Edited(b)
		if err != nil {
			return
		}
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := document().Edited(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if c := d.Changes(again); c.Answer != nil || c.System != nil || len(c.Tool) > 0 {
			t.Errorf("%s is read as another one", out)
		}
	})
}

// TestTurnsFromTheirDifference: where two cells would begin alike, they begin later.
func TestTurnsFromTheirDifference(t *testing.T) {
	const same = `write_file {"content":"hello\n","directory":"/somewhere/else",`
	var out strings.Builder
	turns := [2][]fork.Turn{{{Turn: 1, Model: "m", ToolCalls: []string{same + `"path":"hello.txt"}`}}}, {{Turn: 1, Model: "m", ToolCalls: []string{same + `"path":"other.txt"}`}}}}
	if err := fork.WriteTurns(&out, turns, 90); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "hello.txt") || !strings.Contains(got, "other.txt") || !strings.Contains(got, "\n1     …") {
		t.Errorf("the difference is not seen:\n%s", got)
	}
}
