package fidelity

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func socket(connection uint64, lane string) *tape.WSOpen {
	return &tape.WSOpen{URL: "wss://live.test/v1", Lane: lane, Arrival: connection, Status: 101}
}

func says(connection uint64, direction, text string) *tape.WSMessage {
	return &tape.WSMessage{Connection: connection, Direction: direction, Opcode: "text", Payload: inline(text)}
}

func notOnSocket(k *tape.WSMessage) *tape.WSMessage {
	k.Extra = []tape.Field{{Name: "refused", Value: json.RawMessage(`"nearest is …"`)}}
	return k
}

// from says which recorded message one of a replay is.
func from(seq int, k *tape.WSMessage) *tape.WSMessage {
	k.Extra = []tape.Field{{Name: tape.ElsewhereKey, Value: json.RawMessage(strconv.Itoa(seq))}}
	return k
}

func TestWSLanes(t *testing.T) {
	type kinds = []tape.Kind
	const lane = "ws:live.test"
	end := func(code int) *tape.WSClose { return &tape.WSClose{Connection: 3, Code: code} }
	tests := []struct {
		name          string
		a, b          kinds
		want          []code
		changes       string // of the first divergence
		refused, left int
	}{
		{
			name: "the same, another connection, masked values and keys in another order",
			a:    kinds{socket(3, lane), says(3, "sent", `{"type":"a","at":"12345"}`), says(3, "received", "done 12345"), end(1000)},
			b: kinds{
				socket(8, lane), says(8, "sent", `{"at":"54321","type":"a"}`), says(8, "received", "done 54321"),
				&tape.WSClose{Connection: 8, Code: 1000},
			},
		},
		{
			name:    "a changed message",
			a:       kinds{socket(3, lane), says(3, "sent", `{"type":"a","voice":{"name":"x"}}`), says(3, "received", "ok")},
			b:       kinds{socket(3, lane), says(3, "sent", `{"type":"a","voice":{"name":"y"}}`), says(3, "received", "ok")},
			want:    []code{{lane, WSMessageHash}},
			changes: "voice.name\n  - \"x\"\n  + \"y\"",
		},
		{
			name: "a message more is one divergence",
			a:    kinds{socket(3, lane), says(3, "sent", "1"), says(3, "sent", "2"), says(3, "received", "3")},
			b: kinds{
				socket(3, lane), says(3, "sent", "1"), says(3, "sent", "new"), says(3, "sent", "2"), says(3, "received", "3"),
			},
			want: []code{{lane, MissingInRecorded}},
		},
		{
			name: "another side's message is another one",
			a:    kinds{socket(3, lane), says(3, "sent", "1")},
			b:    kinds{socket(3, lane), says(3, "received", "1")},
			want: []code{{lane, MissingInReplay}, {lane, MissingInRecorded}},
		},
		{
			name: "another opcode, another end",
			a:    kinds{socket(3, lane), says(3, "sent", "1"), end(1000)},
			b: kinds{
				socket(3, lane), &tape.WSMessage{Connection: 3, Direction: "sent", Opcode: "binary", Payload: inline("1")}, end(1011),
			},
			want: []code{{lane, "ws_message_opcode"}, {lane, "ws_close_code"}},
		},
		{
			name: "a message that nothing recorded fits",
			a:    kinds{socket(3, lane), says(3, "sent", `{"n":1}`), says(3, "received", "ok"), end(1000)},
			b:    kinds{socket(3, lane), notOnSocket(says(3, "sent", `{"n":2}`)), end(1008)},
			want: []code{{lane, WSMessageHash}, {lane, MissingInReplay}, {lane, "ws_close_code"}}, refused: 1, left: 1,
			changes: "n\n  - 1\n  + 2",
		},
		{
			name: "two at once on one host keep apart",
			a:    kinds{socket(3, lane), socket(4, lane), says(3, "sent", "1"), says(4, "sent", "2"), says(3, "sent", "3")},
			b:    kinds{socket(3, lane), socket(4, lane), says(4, "sent", "2"), says(3, "sent", "1"), says(3, "sent", "3")},
		},
		{
			name: "what servers say first, heard on another socket",
			a:    kinds{socket(3, lane), socket(4, lane), says(3, "received", "you are x"), says(4, "received", "you are y"), says(3, "sent", "a"), says(4, "sent", "b")},
			b: kinds{
				socket(3, lane), socket(4, lane), from(3, says(3, "received", "you are y")), from(2, says(4, "received", "you are x")),
				says(3, "sent", "a"), says(4, "sent", "b"),
			},
		},
		{
			name: "the same, heard twice",
			a:    kinds{socket(3, lane), socket(4, lane), says(3, "received", "you are x"), says(4, "received", "you are y")},
			b:    kinds{socket(3, lane), socket(4, lane), from(3, says(3, "received", "you are y")), from(3, says(4, "received", "you are x"))},
			want: []code{{lane + "#2", WSMessageHash}},
		},
		{
			name: "one that was never opened",
			a:    kinds{socket(3, lane), says(3, "sent", "1"), end(1000)},
			want: []code{{lane, MissingInReplay}}, left: 1,
		},
		{
			name: "one that was refused",
			a:    kinds{},
			b:    kinds{socket(3, laneUnmatched)},
			want: []code{{laneUnmatched, MissingInRecorded}}, refused: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := compareLanes(t, Semantic, tt.a, tt.b, nil)
			if d := cmp.Diff(tt.want, codes(r)); d != "" {
				t.Fatalf("-want +got\n%s\n%v", d, r.Divergences)
			}
			if tt.changes != "" && Summary(r.Divergences[0].Changes, 0) != tt.changes {
				t.Errorf("%s, want\n%s", Summary(r.Divergences[0].Changes, 0), tt.changes)
			}
			if len(r.Refused) != tt.refused || len(r.Unasked) != tt.left {
				t.Errorf("refused %v, unasked %v", r.Refused, r.Unasked)
			}
			for _, ref := range append(r.Refused, r.Unasked...) {
				if ref.Method != "GET" || ref.URL != "wss://live.test/v1" || ref.Seq == nil {
					t.Errorf("%+v", ref)
				}
			}
		})
	}
}

// TestWSSpilled: long messages compare masked where their bytes can be had, and by their bytes where they cannot.
func TestWSSpilled(t *testing.T) {
	bodies := make(map[string]string)
	spilled := func(s string) *tape.WSMessage {
		m := says(3, "received", s+strings.Repeat(" ", 5000))
		bodies[m.Payload.Hash.String()] = m.Payload.Text
		m.Payload = &tape.Payload{Hash: m.Payload.Hash, Len: m.Payload.Len}
		return m
	}
	a, b := []tape.Kind{socket(3, "ws"), spilled("at 12345")}, []tape.Kind{socket(3, "ws"), spilled("at 54321")}
	had := &LaneOptions{
		Masks:   digitMasks,
		Payload: func(p *tape.Payload, _ Side) ([]byte, error) { return []byte(bodies[p.Hash.String()]), nil },
	}
	if r := compareLanes(t, Semantic, a, b, had); len(r.Divergences) > 0 {
		t.Errorf("%v", r.Divergences)
	}
	want := []code{{"ws", WSMessageHash}}
	if d := cmp.Diff(want, codes(compareLanes(t, Semantic, a, b, nil))); d != "" {
		t.Errorf("without the bytes: -want +got\n%s", d)
	}
	if d := cmp.Diff(want, codes(compareLanes(t, ByteIdentical, a, b, had))); d != "" {
		t.Errorf("byte by byte: -want +got\n%s", d)
	}
}

// TestWSMaskedByName: what a mask knows by the name of a member compares so, wherever that stands in its message.
func TestWSMaskedByName(t *testing.T) {
	byName := regexp.MustCompile(`"name":"[^"]*"`)
	o := &LaneOptions{Masks: ownMask("name", byName), Masked: map[string]int{}}
	of := func(name, text string) []tape.Kind {
		return []tape.Kind{socket(3, "ws:live.test"), says(3, "sent", `{"of":[{"name":"`+name+`","text":"`+text+`"}]}`)}
	}
	if got := codes(compareLanes(t, Semantic, of("a", "x"), of("b", "x"), o)); len(got) > 0 {
		t.Errorf("another name: %v", got)
	}
	if got := codes(compareLanes(t, Semantic, of("a", "x"), of("a", "y"), o)); len(got) != 1 {
		t.Errorf("another text: %v, want one divergence", got)
	}
}
