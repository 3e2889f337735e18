//go:build kill

package kill

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// heldBack bounds what a scrubber keeps to itself of a stream, in bytes: the beginning of what may be a secret.
const heldBack = 16 << 10

// got is what the agent's log says of one answer.
type got struct {
	bytes int
	whole string // digest; "" where the end did not come
}

// readLog reads the whole lines of a log of the agent.
func readLog(path string) (map[string]*got, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*got)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if !strings.HasSuffix(line, "\n") || len(f) < 2 {
			continue
		}
		switch f[0] {
		case "ask":
			out[f[1]] = new(got)
		case "got":
			out[f[1]].bytes, _ = strconv.Atoi(f[2])
		case "whole":
			out[f[1]].whole = f[3]
		}
	}
	return out, nil
}

// kept is what a recording has of one answer.
type kept struct {
	text    string
	hash    string
	part    bool
	aborted bool // it has an error
}

// keptOf reads the tape and the parts of a recording.
func keptOf(rec *recording.Recording) (map[string]*kept, error) {
	out := make(map[string]*kept)
	store, err := rec.Store()
	if err != nil {
		return nil, err
	}
	parts, err := rec.Parts()
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		r, err := p.Open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(bufio.NewReader(r))
		r.Close()
		if err != nil {
			return nil, err
		}
		out[idOf(p.Exchange, store)] = &kept{text: string(b), part: true}
	}
	f, err := tape.Open(rec.TapePath(), &tape.ReaderOptions{Tolerant: true})
	if os.IsNotExist(err) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for r, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		x := tape.ExchangeOf(r.Kind)
		if x == nil {
			continue
		}
		k := &kept{aborted: x.Error != ""}
		if x.Response != nil {
			b, err := x.Response.Bytes(store)
			if err != nil {
				return nil, err
			}
			k.text, k.hash = string(b), x.Response.Hash.String()
		}
		out[idOf(x, store)] = k
	}
	return out, nil
}

// idOf is the id that a request names.
func idOf(x *tape.Exchange, store cas.Store) string {
	text := x.URL
	if x.RequestPayload != nil {
		b, _ := x.RequestPayload.Bytes(store)
		text += string(b)
	}
	return idForm.FindString(text)
}

// answers holds what the agent got against what rec has.
func (s *stage) answers(rec *recording.Recording, log string) (whole, cut int) {
	s.t.Helper()
	said, err := readLog(log)
	if os.IsNotExist(err) {
		return 0, 0
	}
	if err != nil {
		s.t.Fatal(err)
	}
	have, err := keptOf(rec)
	if err != nil {
		s.t.Errorf("%s: %v", rec.Dir, err)
		return 0, 0
	}
	for id, g := range said {
		k := have[id]
		switch {
		case g.whole != "" && (k == nil || k.part || k.aborted || k.hash != g.whole):
			s.t.Errorf("%s: the agent got %s whole, and the tape does not have it: %+v", rec.Dir, id, k)
		case g.whole != "":
			whole++
		case g.bytes == 0:
		case k == nil:
			s.t.Errorf("%s: the agent got %d bytes of %s, and nothing is kept", rec.Dir, g.bytes, id)
		case !strings.HasPrefix(answerTo(id), k.text) || len(k.text) < g.bytes-heldBack:
			s.t.Errorf("%s: the agent got %d bytes of %s, kept are %d: %.60q", rec.Dir, g.bytes, id, len(k.text), k.text)
		default:
			cut++
		}
	}
	return whole, cut
}
