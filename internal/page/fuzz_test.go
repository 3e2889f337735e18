package page

import (
	"bytes"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// FuzzSummary: what somebody put in the place of a summary is none, or one whose parts fit each other.
func FuzzSummary(f *testing.F) {
	s := &summary{Rules: rules, Tape: 100, Rows: 2, Files: 1, Blocks: []int64{10}, Conversations: []Conversation{{Lane: "a", Turns: []TurnRow{{Seq: 1}}}}, Problems: []Problem{}}
	s.changes, s.index = packed([]byte(`{"path":["a"],"before":[-1],"count":[1],"at":[1],"size":[2],"where":[7]}`)), packed([]byte("{}"))
	own := packed(jsonscan.MustMarshal(s))
	f.Add(bytes.Join([][]byte{jsonscan.MustMarshal(&lengths{rules, "", len(own), len(s.changes), len(s.index)}), []byte("\n"), own, s.changes, s.index}, nil))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parseSummary(b, 100, "")
		if s == nil {
			return
		}
		for seq := range uint64(1000) {
			if row, ok := s.row(seq); ok && s.Blocks[row/blockRows] > 100 {
				t.Fatal("a block behind the tape")
			}
			s.turn(seq)
		}
		if c := s.changed(); c != nil {
			l := new(listing)
			l.list(new(recording.Recording), c)
			c.Spawns.all()
		}
	})
}

// FuzzExcerpt: a place that is found is shown as what it is.
func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("say \"Hello\" \U0001F600 \xff\xfe"), "hello")
	f.Add([]byte("\xf0\x9f\x98\x80x"), "X")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		if text == "" {
			return
		}
		at, n := needles(text).find(b)
		if at < 0 {
			return
		}
		if !bytes.EqualFold(b[at:at+n], []byte(lowered(text))) && lowered(string(b[at:at+n])) != lowered(text) {
			t.Fatalf("%q is not %q", b[at:at+n], text)
		}
		if e := excerptOf(b, at, n); e.at < 0 || e.len < 0 || e.at+e.len > units(e.text) {
			t.Fatalf("%+v", e)
		}
	})
}
