package account_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func priced(t *testing.T, own map[string]llm.Rates) *llm.Prices {
	t.Helper()
	p, err := llm.DefaultPrices().With(own)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func rate(usd float64) *float64 { return &usd }

func of(t *testing.T, tt *Tape, prices *llm.Prices) *account.Account {
	t.Helper()
	tt.Close()
	a, err := account.OfTape(tt.Path, prices)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTurns(t *testing.T) {
	tt := NewTape(t)
	ask := User("write  a\nfile, please")
	tt.Call("llm:a", Asks("be kind", ReadTool, ask), Calls("toolu_1"))
	tt.Call("llm:a", Asks("be kind", ReadTool, ask, Uses("toolu_1"), Gives("toolu_1", "forty two")), Says("done"))
	tt.Call("llm:b", Asks("a title", "", ask), Says("A file"))
	for _, path := range []string{"a.txt", "b.txt", "a.txt"} {
		w := &tape.FileWrite{}
		w.Path, w.ContentHash, w.Mode = path, cas.Sum([]byte(path)), "100644"
		tt.Record(w)
	}
	gone := &tape.FileDelete{}
	gone.Path = "b.txt"
	tt.Record(gone)
	tt.Record(&tape.ProcessSpawn{Program: "/bin/true", SpawnID: 2})
	tt.Record(&tape.ProcessSpawn{Program: "/bin/agent", SpawnID: 1, ExitCode: 3, DurationMS: 4500})
	a := of(t, tt, priced(t, map[string]llm.Rates{"m": {Input: rate(1000), Output: rate(5000)}}))

	if len(a.Conversations) != 2 || a.Conversations[0].Lane != "llm:a" || a.Conversations[1].Lane != "llm:b" {
		t.Fatalf("%d conversations: %+v", len(a.Conversations), a.Conversations)
	}
	turns := a.Conversations[0].Turns
	if len(turns) != 2 || turns[0].Number != 1 || turns[1].Number != 2 {
		t.Fatalf("turns %+v", turns)
	}
	if turns[0].Prompt != "write a file, please" || turns[1].Prompt != "forty two" || turns[1].Answer != "done" {
		t.Errorf("said %q, %q → %q", turns[0].Prompt, turns[1].Prompt, turns[1].Answer)
	}
	if tools := turns[0].Tools; len(tools) != 1 || tools[0].Name != "read" || tools[0].Arguments != `{"p":1}` {
		t.Errorf("tools %+v", tools)
	}
	if turns[0].CostUSD == nil || *turns[0].CostUSD != 0.015 {
		t.Errorf("cost %v", turns[0].CostUSD)
	}
	got := a.Total
	if got.Turns != 3 || got.Tools != 1 || got.Files != 2 || got.Spawns != 1 || got.DurationMS != 4500 || got.InputTokens != 30 || got.OutputTokens != 3 ||
		got.CostUSD == nil || fmt.Sprintf("%.3f", *got.CostUSD) != "0.045" || strings.Join(got.Models, " ") != "m" {
		t.Errorf("total %+v", got)
	}
	if a.Exit == nil || a.Exit.Code != 3 || a.Files["b.txt"] != (account.File{}) || a.Files["a.txt"].Digest.IsZero() {
		t.Errorf("exit %+v, files %v", a.Exit, a.Files)
	}
}

// TestAttempts: an attempt that failed has the number of the answer that came after it, costs nothing, and is no turn.
func TestAttempts(t *testing.T) {
	tt := NewTape(t)
	tt.At++
	k := &tape.LLMCall{Provider: "anthropic", Endpoint: "messages", Model: "m"}
	k.Lane, k.Arrival, k.Status, k.Method, k.URL = "llm:a", tt.At, 429, "POST", "https://api.anthropic.com/v1/messages"
	k.RequestPayload, k.Response = tt.Payload(Asks("", "", User("hello"))), tt.Payload(`{"type":"error"}`)
	tt.Record(k)
	tt.Call("llm:a", Asks("", "", User("hello")), Says("hi"))
	tt.Call("llm:a", Asks("", "", User("hello"), Model("hi"), User("bye")), Says("bye"))
	a := of(t, tt, priced(t, map[string]llm.Rates{"m": {Input: rate(1), Output: rate(1)}}))
	var numbers []int
	for _, turn := range a.Conversations[0].Turns {
		numbers = append(numbers, turn.Number)
	}
	if fmt.Sprint(numbers) != "[1 1 2]" || a.Conversations[0].Turns[0].Error != "status 429" {
		t.Errorf("turns %v, %q", numbers, a.Conversations[0].Turns[0].Error)
	}
	if steps := a.Conversations[0].Steps(); len(steps) != 2 || !steps[0].Answered() || steps[1].Prompt != "bye" {
		t.Errorf("steps %+v", steps)
	}
	if a.Total.Turns != 2 || a.Total.Failed != 1 || a.Total.CostUSD == nil {
		t.Errorf("total %+v", a.Total)
	}
}

// TestUnknownPrice: what has no price, or did not say what it used, is not free.
func TestUnknownPrice(t *testing.T) {
	tt := NewTape(t)
	tt.Call("llm:a", Asks("", "", User("hello")), Says("hi"))
	a := of(t, tt, nil)
	if a.Total.CostUSD != nil || strings.Join(a.Total.Unpriced, " ") != "m" || a.Conversations[0].Turns[0].CostUSD != nil {
		t.Errorf("%+v", a.Total)
	}
	b, err := json.Marshal(a.Total)
	if err != nil || !strings.Contains(string(b), `"cost_usd":null`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestManyLanes: more conversations at once than are listened to at once are read all the same.
func TestManyLanes(t *testing.T) {
	tt := NewTape(t)
	for turn := range 2 {
		for lane := range 40 {
			history := []string{User(fmt.Sprint("ask ", lane))}
			if turn > 0 {
				history = append(history, Model("hi"), User(fmt.Sprint("again ", lane)))
			}
			tt.Call(fmt.Sprint("llm:", lane), Asks("", "", history...), Says("hi"))
		}
	}
	a := of(t, tt, nil)
	for lane, c := range a.Conversations {
		if len(c.Turns) != 2 || c.Turns[1].Prompt != fmt.Sprint("again ", lane) {
			t.Fatalf("conversation %d: %+v", lane, c.Turns)
		}
	}
}

// TestFrom: from a turn of one conversation on count the turns of the others that came later, and where it is not known what a record says.
func TestFrom(t *testing.T) {
	tt := NewTape(t)
	for _, lane := range []string{"llm:a", "llm:b", "llm:a", "llm:b"} {
		tt.Call(lane, Asks("", "", User("go")), Says("done"))
	}
	a := of(t, tt, nil)
	last := a.Conversations[1].Turns[1]
	for want, from := range map[int][]*account.Turn{3: a.From("llm:b", 1, 0), 2: a.From("llm:a", 2, 0), 1: a.From("llm:c", 2, last.Seq)} {
		if len(from) != want || from[want-1].Seq != last.Seq {
			t.Errorf("want %d: %+v", want, from)
		}
	}
}
