package fidelity

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestVarying: a word that is another one on each of two replays is told and does not gate; one that both say, and the recording does not,
// is a change, beside words that vary too.
func TestVarying(t *testing.T) {
	masks, _ := builtinMasks()
	for name, tt := range map[string]struct {
		was, now, then string // of a request, a header and stdout
		gates          bool
	}{
		"a number":                     {was: "run 8123", now: "run 55", then: "run 9001"},
		"several":                      {was: "-12 0x7f3a 0.25", now: "77 0x7f44 1.5e-07", then: "9 0x7fbb 0.5"},
		"a change":                     {was: "run 1", now: "run 2", then: "run 2", gates: true},
		"a change beside it":           {was: "keep 10, run 1", now: "keep 11, run 2", then: "keep 11, run 3", gates: true},
		"an order":                     {was: "fox ape bear", now: "bear ape fox", then: "fox bear ape"},
		"an order, of which one stays": {was: "fox ape bear", now: "bear fox ape", then: "bear ape fox"},
		"another shape":                {was: "run 1", now: "run (2)", then: "run (3)", gates: true},
		"one word more":                {was: "run 1", now: "run 2 2", then: "run 3 3", gates: true},
		"two that changed places":      {was: "pay alice to bob, tags a b c", now: "pay bob to alice, tags c a b", then: "pay bob to alice, tags b c a", gates: true},
		"no blanks":                    {was: "删除超过30天的日志，进程811", now: "删除超过3天的日志，进程922", then: "删除超过3天的日志，进程933", gates: true},
		"a mask beside it":             {was: "2026-11-21, run 1", now: "2026-11-22, run 2", then: "2026-11-22, run 3"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(text string) []tape.Kind {
				k := call("llm:a", 1, `{"say":"`+text+`"}`, "yes")
				k.RequestHeaders = []tape.HeaderField{{Name: "X-Task", Value: text}}
				return []tape.Kind{k, program(text+"\n", 0)}
			}
			r := compareLanes(t, Semantic, run(tt.was), run(tt.now), &LaneOptions{
				Masks: masks, Headers: func(string) bool { return true }, Payload: inlinePayload,
				Again: &Again{Records: tapeOf(run(tt.then)...), Masks: masks[Replay], Payload: func(p *tape.Payload) ([]byte, error) { return []byte(p.Text), nil }},
			})
			if gates := len(r.Divergences) > 0; gates != tt.gates {
				t.Errorf("gates %t: %+v", gates, r.Divergences)
			}
			if told := r.Varying() >= 3; told == tt.gates {
				t.Errorf("told %q", maskedLines(r))
			}
		})
	}
}

// TestVaryingSideBySide: what runs side by side may come in any order; of its words those are chance alone that no other run has.
func TestVaryingSideBySide(t *testing.T) {
	masks, _ := builtinMasks()
	run := func(texts ...string) (all []tape.Kind) {
		for i, text := range texts {
			all = append(all, call("llm:a", uint64(i+1), `{"say":"\n`+text+`"}`, "yes"))
		}
		return all
	}
	for name, tt := range map[string]struct {
		was, now, then []string
		gates          bool
	}{
		"in their order": {was: []string{"keep 71", "drop 72"}, now: []string{"keep 81", "drop 82"}, then: []string{"keep 91", "drop 92"}},
		"a change, and another order in each run": {was: []string{"keep 71", "drop 72", "list 73"}, now: []string{"list 81", "wipe 82", "drop 83"},
			then: []string{"drop 91", "list 92", "wipe 93"}, gates: true},
	} {
		r := compareLanes(t, Semantic, run(tt.was...), run(tt.now...), &LaneOptions{
			Masks: masks, Payload: inlinePayload,
			Again: &Again{Records: tapeOf(run(tt.then...)...), Masks: masks[Replay], Payload: func(p *tape.Payload) ([]byte, error) { return []byte(p.Text), nil }},
		})
		if gates := len(r.Divergences) > 0; gates != tt.gates {
			t.Errorf("%s: gates %t: %+v, %q", name, gates, r.Divergences, maskedLines(r))
		}
	}
}

func inlinePayload(p *tape.Payload, _ Side) ([]byte, error) { return []byte(p.Text), nil }

// TestVaryingSecret: another secret of who asks is none of chance, however often it changes.
func TestVaryingSecret(t *testing.T) {
	masks, _ := builtinMasks()
	run := func(secret string) []tape.Kind {
		k := call("llm:a", 1, "{}", "yes")
		k.RequestHeaders = []tape.HeaderField{{Name: "Authorization", Value: "plain " + secret}}
		return []tape.Kind{k}
	}
	r := compareLanes(t, Semantic, run("one"), run("two"), &LaneOptions{
		Masks: masks, Headers: func(string) bool { return true },
		Again: &Again{Records: tapeOf(run("three")...), Masks: masks[Replay]},
	})
	if len(r.Divergences) != 1 {
		t.Errorf("%+v", r.Divergences)
	}
}
