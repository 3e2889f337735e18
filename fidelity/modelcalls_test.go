package fidelity

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Answers that differ in a provider's ids alone are the same, and counted; where they say something else, the ids are not
// what is told.
func TestAnswersWithOtherIDs(t *testing.T) {
	ids := regexp.MustCompile(`msg_\w+`)
	o := &LaneOptions{
		Masks: digitMasks, Masked: map[string]int{"date": 2},
		AnswerSurface: func(_ *tape.Exchange, body []byte) []byte { return ids.ReplaceAll(body, []byte("#1")) },
	}
	say := func(id, text string) []tape.Kind {
		return []tape.Kind{call("llm:a", 1, `{"q":1}`, `{"id":"`+id+`","text":"`+text+`"}`)}
	}
	same := compareLanes(t, Semantic, say("msg_one", "tea"), say("msg_two", "tea"), o)
	if d := cmp.Diff(map[string]int{"date": 2, "answer-id": 1}, same.Masked); d != "" || !same.Faithful() {
		t.Errorf("%v\n-want +got\n%s", same, d)
	}
	if len(o.Masked) != 1 {
		t.Errorf("the caller's masks were changed: %v", o.Masked)
	}
	if got := compareLanes(t, ByteIdentical, say("msg_one", "tea"), say("msg_two", "tea"), o); got.Faithful() {
		t.Error("other bytes count as the same bytes")
	}
	got := compareLanes(t, Semantic, say("msg_one", "tea"), say("msg_two", "milk"), o)
	if d := cmp.Diff([]code{{"llm:a", LLMResponseHash}}, codes(got)); d != "" {
		t.Fatal(d)
	}
	if cause := got.Divergences[0].Cause; strings.Contains(cause, "msg_") || !strings.Contains(cause, "milk") {
		t.Errorf("the cause is told as %q", cause)
	}
	long := func(id string) []tape.Kind { return say(id, strings.Repeat("x", maxAnswer)) }
	if got := compareLanes(t, Semantic, long("msg_one"), long("msg_two"), o); got.Faithful() {
		t.Error("an answer over the bound was not compared by its hash")
	}
}
