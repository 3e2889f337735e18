package deck

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// CompareOptions say how Compare compares. Nil and zero work.
type CompareOptions struct {
	Mode    fidelity.Mode
	Aligned bool // bare tapes: align the records, so that an inserted or moved one reads as one; recordings always are
}

// sidesOfCompare are what a report of Compare calls the two: neither need be a replay of the other.
var sidesOfCompare = [2]string{"A", "B"}

// Compare compares two recordings lane by lane, or two tapes by position: a recording beside a bare tape counts as its
// tape.
func Compare(a, b string, o *CompareOptions) (*fidelity.Report, error) {
	if o == nil {
		o = new(CompareOptions)
	}
	sa, err := openSide(a)
	if err != nil {
		return nil, err
	}
	defer sa.tape.Close()
	sb, err := openSide(b)
	if err != nil {
		return nil, err
	}
	defer sb.tape.Close()
	if sa.rec == nil || sb.rec == nil {
		return fidelity.CompareTapes(o.Mode, sa.tape.Records(), sb.tape.Records(), &fidelity.TapeOptions{
			Aligned: o.Aligned, Sides: sidesOfCompare, Payload: payloads(sa.tape.Store, sb.tape.Store),
		})
	}
	return compareRecordings(sa, sb, o)
}

func compareRecordings(a, b *side, o *CompareOptions) (*fidelity.Report, error) {
	mask, err := a.rec.Manifest.Masking.masker(&a.rec.Manifest.Roots)
	if err != nil {
		return nil, err
	}
	lanes := laneOptions(a.tape.Store, b.tape.Store, mask)
	lanes.Sides = sidesOfCompare
	lanes.Masked = make(map[string]int)
	if lanes.Inputs, err = inputs(a, b); err != nil {
		return nil, err
	}
	lanes.NotCompared = offOnOneSide(a.rec.Manifest, b.rec.Manifest)
	for _, s := range []*side{a, b} {
		missing, err := s.rec.missingBlobs(s.tape.Store)
		if err != nil {
			return nil, err
		}
		lanes.NotCompared = slices.Concat(lanes.NotCompared, missing, s.rec.unfinished())
		for _, gap := range s.rec.Manifest.NotCovered() {
			if !slices.Contains(lanes.NotCovered, gap) {
				lanes.NotCovered = append(lanes.NotCovered, gap)
			}
		}
		for name, n := range s.rec.Manifest.Masks {
			lanes.Masked[name] += n
		}
	}
	return fidelity.CompareLanes(o.Mode, a.tape.Records(), b.tape.Records(), lanes)
}

// sortedNames returns the keys of maps, each once, in order.
func sortedNames(maps ...map[string]Axis) []string {
	var out []string
	for _, m := range maps {
		for name := range m {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// NotCovered lists what no axis of m covered, in the order of the axes' names.
func (m *Manifest) NotCovered() []string {
	out := []string{}
	for _, name := range sortedNames(m.Axes) {
		out = append(out, m.Axes[name].NotCovered...)
	}
	return out
}

// A side is one of the two things that are compared.
type side struct {
	rec  *Recording // nil for a bare tape
	tape *tape.Tape
}

func openSide(path string) (*side, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		f, err := tape.Open(path, nil)
		return &side{tape: f}, err
	}
	rec, err := Open(path)
	if err != nil {
		return nil, err
	}
	f, err := rec.OpenTape()
	return &side{rec: rec, tape: f}, err
}

// laneOptions are what comparing two recordings needs to explain what it finds.
func laneOptions(recorded, replay cas.Store, m *scrub.Masker) *fidelity.LaneOptions {
	class := llm.NewClassifier(m)
	return &fidelity.LaneOptions{
		MaskArg: func(s string) string { return string(m.Mask(scrub.Renumber([]byte(s)))) },
		Payload: payloads(recorded, replay),
		Request: func(ex *tape.Exchange, body []byte) (surface, params []byte) {
			header := exchange.HeaderOf(ex.RequestHeaders)
			id, err := class.Classify(&exchange.Request{
				Method: ex.Method, URL: ex.URL, Header: header, Body: decoded(header, body),
			})
			if err != nil {
				return nil, nil
			}
			return id.Surface, id.Params
		},
		Answer: func(ex *tape.Exchange, body []byte) []byte {
			return decoded(exchange.HeaderOf(ex.ResponseHeaders), body)
		},
		AnswerSurface: func(ex *tape.Exchange, body []byte) []byte {
			return answerSurface(m, decoded(exchange.HeaderOf(ex.ResponseHeaders), body))
		},
	}
}

// payloads reads the payloads of both sides.
func payloads(recorded, replay cas.Store) func(*tape.Payload, fidelity.Side) ([]byte, error) {
	return func(p *tape.Payload, s fidelity.Side) ([]byte, error) {
		if s == fidelity.Recorded {
			return p.Bytes(recorded)
		}
		return p.Bytes(replay)
	}
}

// maxDecoded bounds a body that is decoded to explain a divergence, in bytes.
const maxDecoded = 64 << 20

// decoded returns a body without its Content-Encoding; as it stands where it does not decode.
func decoded(h http.Header, body []byte) []byte {
	plain, err := exchange.Decode(h.Get("Content-Encoding"), body, maxDecoded)
	if err != nil {
		return body
	}
	return plain
}

// What a provider makes up for every answer: names of the answer, of its items and calls, and when it was given; and what
// says nothing that another answer could be held against: seals, echoes, padding, how long it took.
var (
	madeUpIDs = []string{
		"id", "call_id", "generation_id", "item_id", "message_id", "request_id", "response_id", "responseId", "tool_call_id",
		"tool_use_id", "toolUseId",
	}
	madeUpTimes = []string{"completed_at", "created", "created_at", "createTime"}
	meaningless = []string{
		"encrypted_content", "obfuscation", "signature", "system_fingerprint", "thoughtSignature", "thought_signature",
		"total_duration", "load_duration", "prompt_eval_duration", "eval_duration",
	}
	modelsOwnWords = []string{"input", "args", "arguments", "parameters", "schema"} // objects in which any name may stand
)

// answerSurface returns the answer of a model as two live ones compare: masked, the ids that a provider makes up numbered by
// their first appearance, as those of requests are, its times and seals taken out. Of an event stream that is the data of
// its events, without pings and comments. An answer that is no text has none.
func answerSurface(m *scrub.Masker, body []byte) []byte {
	if !utf8.Valid(body) {
		return nil
	}
	numbers := make(answerNumbers)
	whole, err := canonjson.Parse(body)
	if err == nil {
		numbers.value(&whole)
		return m.Mask(scrub.Renumber(whole.Append(nil)))
	}
	out := make([]byte, 0, len(body))
	for line := range bytes.Lines(body) {
		text := bytes.TrimRight(line, "\r\n")
		data, field := bytes.CutPrefix(text, []byte("data:"))
		v, err := canonjson.Parse(data)
		switch {
		case bytes.HasPrefix(text, []byte(":")), string(text) == "event: ping",
			len(text) == 0 && (len(out) == 0 || bytes.HasSuffix(out, []byte("\n\n"))): // behind a ping
			continue
		case err != nil:
			out = append(append(out, text...), '\n')
			continue
		}
		if kind, _ := v.Get("type"); kind.Str == "ping" {
			continue
		}
		numbers.value(&v)
		if field {
			out = append(out, "data: "...)
		}
		out = append(v.Append(out), '\n')
	}
	return m.Mask(scrub.Renumber(out))
}

// answerNumbers holds the number of every id of an answer.
type answerNumbers map[string]int

// value edits a tree in place: its parser's caller alone holds it.
func (n answerNumbers) value(v *canonjson.Value) {
	for i := range v.Elems {
		n.value(&v.Elems[i])
	}
	v.Members = slices.DeleteFunc(v.Members, func(m canonjson.Member) bool { return slices.Contains(meaningless, m.Key) })
	for i := range v.Members {
		switch m := &v.Members[i]; {
		case slices.Contains(madeUpIDs, m.Key) && m.Value.Kind == canonjson.String && m.Value.Str != "":
			if n[m.Value.Str] == 0 {
				n[m.Value.Str] = len(n) + 1
			}
			m.Value.Str = "#" + strconv.Itoa(n[m.Value.Str])
		case slices.Contains(madeUpTimes, m.Key) && (m.Value.Kind == canonjson.Number || m.Value.Kind == canonjson.String):
			m.Value = canonjson.Value{Kind: canonjson.String, Str: "#time"}
		case !slices.Contains(modelsOwnWords, m.Key) || m.Value.Kind != canonjson.Object:
			n.value(&m.Value)
		}
	}
}

// maxInputs is how many differing inputs of two runs a divergence is traced to.
const maxInputs = 200

// inputs lists what two runs were given and what differs: stdin, variables, files of the work tree.
func inputs(a, b *side) ([]fidelity.Input, error) {
	out := append(stdinInput(a, b), envInputs(a.rec.Manifest, b.rec.Manifest)...)
	before, errA := a.rec.Tree()
	after, errB := b.rec.Tree()
	if err := errors.Join(errA, errB); err != nil || before == nil || after == nil {
		return out, err
	}
	for _, path := range differing(before, after) {
		if len(out) == maxInputs {
			break
		}
		out = append(out, fidelity.Input{Name: "the file " + path + ", in which the work trees differ", Bytes: func(s fidelity.Side) ([]byte, error) {
			if s == fidelity.Recorded {
				return fileIn(before, path, a.tape.Store)
			}
			return fileIn(after, path, b.tape.Store)
		}})
	}
	return out, nil
}

// differing lists the regular files of either tree that the other has in another form, or not at all.
func differing(a, b *files.Tree) []string {
	var out []string
	for _, e := range a.Entries {
		other, ok := b.Lookup(e.Path)
		if !e.Digest.IsZero() && (!ok || other.Digest != e.Digest) {
			out = append(out, e.Path)
		}
	}
	for _, e := range b.Entries {
		if _, ok := a.Lookup(e.Path); !ok && !e.Digest.IsZero() {
			out = append(out, e.Path)
		}
	}
	return out
}

// fileIn returns what a tree holds at path; nothing where it is no regular file, or too long to explain anything.
func fileIn(t *files.Tree, path string, store cas.Store) ([]byte, error) {
	e, ok := t.Lookup(path)
	if !ok || e.Digest.IsZero() || e.Size > maxDecoded/16 {
		return nil, nil
	}
	return store.Get(e.Digest)
}

func stdinInput(a, b *side) []fidelity.Input {
	if bytes.Equal(a.rec.Manifest.Stdin, b.rec.Manifest.Stdin) {
		return nil
	}
	return []fidelity.Input{{Name: "stdin", Bytes: func(s fidelity.Side) ([]byte, error) {
		from := a
		if s == fidelity.Replay {
			from = b
		}
		p, err := tape.ParsePayload(from.rec.Manifest.Stdin)
		if err != nil || p == nil {
			return nil, err
		}
		return p.Bytes(from.tape.Store)
	}}}
}

// envInputs lists the variables that are no secrets and differ.
func envInputs(a, b *Manifest) []fidelity.Input {
	was := make(map[string]string)
	for _, v := range a.Env {
		was[v.Name] = v.Value
	}
	var out []fidelity.Input
	for _, v := range b.Env {
		if before, ok := was[v.Name]; !v.Secret && (!ok || before != v.Value) && len(out) < maxInputs {
			out = append(out, fidelity.Input{Name: "the variable " + v.Name, Bytes: func(s fidelity.Side) ([]byte, error) {
				if s == fidelity.Recorded {
					return []byte(before), nil
				}
				return []byte(v.Value), nil
			}})
		}
	}
	return out
}
