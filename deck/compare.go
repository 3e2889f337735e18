package deck

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// CompareOptions say how Compare compares. Nil and zero work.
type CompareOptions struct {
	Mode    fidelity.Mode
	Watch   []string  // as in ReplayOptions; of two recordings
	Screens bool      // compare what terminals showed in the place of the bytes that drew it; of two recordings
	Sides   [2]string // what messages call two recordings; empty is A and B
	Aligned bool      // bare tapes: align the records, so that an inserted or moved one reads as one; recordings always are
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
	r, err := compare(sa, sb, o)
	if err == nil {
		r.Annotate(noted(r, sa.path), noted(r, sb.path))
	}
	return r, err
}

func compare(sa, sb *side, o *CompareOptions) (*fidelity.Report, error) {
	if sa.rec == nil || sb.rec == nil {
		if o.Screens {
			return nil, errors.New("--tty compares two recordings: a bare tape has no screen")
		}
		recorded, replay, notes, err := alike(sa, sb)
		if err != nil {
			return nil, err
		}
		r, err := fidelity.CompareTapes(o.Mode, recorded, replay, &fidelity.TapeOptions{
			Aligned: o.Aligned, Sides: sidesOfCompare, Payload: payloads(sa.tape.Store, sb.tape.Store),
		})
		if err == nil {
			r.NotCompared = append(r.NotCompared, tapeGaps(sa, sb)...)
			r.Notes = append(r.Notes, notes...)
			r.Notes = append(r.Notes, headerNotes(o.Mode, sa.tape.Header(), sb.tape.Header())...)
		}
		return r, err
	}
	return compareRecordings(sa, sb, o)
}

// tapeGaps lists the blobs that two tapes name and that are missing beside them, and which of them end in a torn line. They are known once the
// tapes have been read.
func tapeGaps(sides ...*side) (all []string) {
	for i, s := range sides {
		for _, gap := range s.lost.List() {
			all = append(all, sidesOfCompare[i]+": "+gap)
		}
	}
	for i, s := range sides {
		if s.tape.Torn() {
			all = append(all, fmt.Sprintf("%s: the last line of %s is torn, as a run that was killed leaves it: what it did after the lines before is not on the tape",
				sidesOfCompare[i], s.path))
		}
	}
	return all
}

// alike are the records of two tapes by the keys that both have: one may be of another producer, or a copy that one saved, which drops
// what it does not know. The note says which keys only one of them has.
func alike(a, b *side) (recorded, replay fidelity.Records, notes []string, err error) {
	keys, err := bothKeys(a, b)
	if err != nil {
		return nil, nil, nil, err
	}
	records := [2]fidelity.Records{a.tape.Records(), b.tape.Records()}
	for i := range records {
		if names := keys[i].Beyond(keys[1-i]); len(names) > 0 {
			records[i] = keys[1-i].Only(records[i])
			notes = append(notes, fmt.Sprintf("keys that no record of %s has were not compared: %s", sidesOfCompare[1-i], few(names)))
		}
	}
	return records[0], records[1], notes, nil
}

// few joins the first names of a list and counts the rest.
func few(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// bothKeys reads two tapes at once, opened once more for it, and says which keys each has, and of which blobs nothing is there.
func bothKeys(a, b *side) (keys [2]*fidelity.Keys, err error) {
	var wg sync.WaitGroup
	var errs [2]error
	for i, s := range []*side{a, b} {
		wg.Go(func() { keys[i], errs[i] = s.keys() })
	}
	wg.Wait()
	for i := range errs {
		if errs[i] != nil {
			return keys, fmt.Errorf("%s: %w", sidesOfCompare[i], errs[i])
		}
	}
	return keys, nil
}

func (s *side) keys() (*fidelity.Keys, error) {
	t, err := tape.Open(s.path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s.lost = tape.LostIn(t.Store)
	return fidelity.KeysOf(s.lost.Watch(t.Records()))
}

func compareRecordings(a, b *side, o *CompareOptions) (*fidelity.Report, error) {
	m, n := a.rec.Manifest, b.rec.Manifest
	lanes, now, err := laneOptions(m, a.tape.Store, b.tape.Store, &n.Roots, m.Roots.Tree, o.Watch)
	if err != nil {
		return nil, err
	}
	lanes.Remasked = now.Changed || !m.Masking.SameAs(n.Masking)
	lanes.Exact = givenTime(m.Axes) && givenTime(n.Axes) && oneRun(m, n)
	lanes.SameSecrets, lanes.Sides, lanes.Side = sameSecrets(m, n), cmp.Or(o.Sides, sidesOfCompare), now.Side
	lanes.Masked = make(map[string]int)
	lanes.Format1 = lanes.Format1 || n.Format < recording.ManifestFormat
	if lanes.Inputs, err = inputs(a, b); err != nil {
		return nil, err
	}
	rows, err := now.ScreenMasker(&m.Roots)
	if err != nil {
		return nil, err
	}
	if lanes.Screens, err = screen.Screens(m.TTY, rows, o.Screens, [2]*screen.Side{screen.SideOf(a.rec), screen.SideOf(b.rec)}); err != nil {
		return nil, err
	}
	if lanes.NotCompared, err = offOnOneSide(a, b); err != nil {
		return nil, err
	}
	if !m.SeesOutside() || !n.SeesOutside() {
		tree, err := a.rec.Tree()
		if err != nil {
			return nil, err
		}
		lanes.NotCompared = append(lanes.NotCompared, recording.Unwatchable(lanes.Watch, tree)...)
	}
	lanes.NotCovered = nil
	for _, s := range []*side{a, b} {
		missing, err := s.rec.MissingBlobs(s.tape.Store)
		if err != nil {
			return nil, err
		}
		lanes.NotCompared = slices.Concat(lanes.NotCompared, missing, s.rec.Unfinished())
		lanes.NotCovered = append(lanes.NotCovered, s.rec.Manifest.NotCovered()...)
		for name, n := range s.rec.Manifest.Masks {
			lanes.Masked[name] += n
		}
	}
	lanes.NotCovered = recording.NoneTwice(lanes.NotCovered)
	return fidelity.CompareLanes(o.Mode, a.tape.Records(), b.tape.Records(), lanes)
}

// A side is one of the two things that are compared.
type side struct {
	rec  *recording.Recording // nil for a bare tape
	tape *tape.Tape
	path string // of the tape
	lost *tape.Lost
}

func openSide(path string) (*side, error) {
	rec, f, err := recording.OpenEither(path)
	if rec != nil {
		path = rec.TapePath()
	}
	return &side{rec: rec, tape: f, path: path}, err
}

// laneOptions are what comparing a run with the recording of m needs: by the masks and headers of the tapedeck.yaml in config, with the paths
// of both.
func laneOptions(
	m *recording.Manifest, recorded, replay cas.Store, roots *recording.Roots, config string, watch []string,
) (*fidelity.LaneOptions, *recording.Comparing, error) {
	now, err := m.ComparingNow(config)
	if err != nil {
		return nil, nil, err
	}
	var masks [2]*masks.Masker
	for s, r := range []*recording.Roots{&m.Roots, roots} {
		if masks[s], err = now.Masker(r); err != nil {
			return nil, nil, err
		}
	}
	o := laneOptionsOf(recorded, replay, masks, m.FollowsMCP())
	o.Headers, o.AgentFiles, o.Watch = now.Headers.Compares, now.Files, m.Roots.Watched(m.Cwd, watch)
	o.Format1, o.NotCovered = m.Format < recording.ManifestFormat, m.NotCovered()
	return o, now, nil
}

// givenTime reports whether a run was given its time and its randomness, all of it.
func givenTime(axes map[string]recording.Axis) bool {
	for _, name := range []string{axisClock, axisRandom} {
		if a := axes[name]; !a.On || len(a.NotCovered) > 0 {
			return false
		}
	}
	return true
}

// oneRun reports whether the one is a replay of the other, or both are of a third: they were given the same.
func oneRun(a, b *recording.Manifest) bool {
	of := func(m *recording.Manifest) string {
		if m.Parent != nil && m.ForkSeq == nil {
			return *m.Parent
		}
		return m.ID
	}
	return of(a) == of(b)
}

// sameSecrets reports whether equal placeholders of two recordings stand for equal secrets, and others for others that the program
// chose: they were made with one key, and the variables that hold secrets hold the same.
func sameSecrets(a, b *recording.Manifest) bool {
	if a.ScrubKey == "" || a.ScrubKey != b.ScrubKey {
		return false
	}
	values := make(map[string]string)
	for _, v := range a.Env {
		values[v.Name] = v.Value
	}
	return !slices.ContainsFunc(b.Env, func(v recording.EnvVar) bool {
		was, ok := values[v.Name]
		return v.Secret && ok && was != v.Value
	})
}

// laneOptionsOf are those of any two tapes, by masks.
func laneOptionsOf(recorded, replay cas.Store, masks [2]*masks.Masker, followsMCP bool) *fidelity.LaneOptions {
	class, calls := rescrub.Classifier(masks[fidelity.Recorded], followsMCP), llm.NewClassifier(masks[fidelity.Recorded])
	request := func(ex *tape.Exchange, body []byte) []byte {
		return decoded(exchange.HeaderOf(ex.RequestHeaders), body)
	}
	answer := func(ex *tape.Exchange, body []byte) []byte {
		return decoded(exchange.HeaderOf(ex.ResponseHeaders), body)
	}
	return &fidelity.LaneOptions{
		Usual:   UsualGaps(),
		Masks:   masks,
		Payload: payloads(recorded, replay),
		Request: func(ex *tape.Exchange, body []byte) (surface, params []byte) {
			header := exchange.HeaderOf(ex.RequestHeaders)
			id, err := class.Classify(&exchange.Request{Method: ex.Method, URL: ex.URL, Header: header, Body: request(ex, body)})
			if err != nil {
				return nil, nil
			}
			return id.Surface, id.Params
		},
		RequestBody:   request,
		InCallOrder:   func(ex *tape.Exchange, body []byte) []byte { return llm.InCallOrder(request(ex, body)) },
		Answer:        answer,
		AnswerSurface: func(ex *tape.Exchange, body []byte) []byte { return calls.AnswerSurface(answer(ex, body)) },
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

// headerNotes says in what the headers of two bare tapes differ: in their arguments always, for two runs that differ in nothing else
// are two; in other keys by name, where a mode asks for the same bytes. A header is no record: what differs there alone is no
// divergence, and is not passed over in silence either.
func headerNotes(mode fidelity.Mode, a, b *tape.Header) (notes []string) {
	if !slices.Equal(a.Argv, b.Argv) {
		notes = append(notes, fmt.Sprintf("the runs were given other arguments (argv): A %s, B %s", argvText(a.Argv), argvText(b.Argv)))
	}
	if mode != fidelity.ByteIdentical {
		return notes
	}
	was, is := headerKeys(a), headerKeys(b)
	all := make(map[string]json.RawMessage)
	maps.Copy(all, was)
	maps.Copy(all, is)
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return bytes.Equal(was[name], is[name]) })
	if len(keys) == 0 {
		return notes
	}
	return append(notes, "the headers differ in "+strings.Join(keys, ", ")+": a header is no record, so this is no divergence")
}

// headerKeys is what a header says, by its keys; nil where it cannot be written again.
func headerKeys(h *tape.Header) (keys map[string]json.RawMessage) {
	var line bytes.Buffer
	if _, err := tape.NewWriter(&line, h); err == nil {
		_ = json.Unmarshal(line.Bytes(), &keys) // it is JSON
	}
	return keys
}

// argvText is a list of arguments as JSON, cut where it is long.
func argvText(argv []string) string {
	const most = 200
	b, err := json.Marshal(append([]string{}, argv...))
	if err != nil {
		return err.Error()
	}
	if len(b) > most {
		return strings.ToValidUTF8(string(b[:most]), "") + "…"
	}
	return string(b)
}

// offOnOneSide lists the axes that two recordings do not both have: what one of them did not look at cannot be compared. Not among them
// are streams that were no terminal, which were recorded as streams, and what was told to a daemon, which is no input; and MCP only where
// there was a conversation, for older recordings follow none.
func offOnOneSide(a, b *side) (out []string, err error) {
	all := maps.Clone(a.rec.Manifest.Axes)
	maps.Copy(all, b.rec.Manifest.Axes)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "terminal" && name != recording.AxisDaemon && name != recording.AxisMCP && a.rec.Manifest.Axes[name].On != b.rec.Manifest.Axes[name].On {
			out = append(out, fmt.Sprintf("axis %s was on in one recording only", name))
		}
	}
	if a.rec.Manifest.FollowsMCP() == b.rec.Manifest.FollowsMCP() {
		return out, nil
	}
	on := a
	if b.rec.Manifest.FollowsMCP() {
		on = b
	}
	for rec, err := range on.rec.Records() {
		if err != nil {
			return nil, err
		}
		if _, ok := rec.Kind.(*tape.MCPOpen); ok {
			return append(out, "axis mcp was on in one recording only"), nil
		}
	}
	return out, nil
}

// noted tells what people noted about the records of a tape. A sidecar that cannot be read changes no verdict: a note says so.
func noted(r *fidelity.Report, tapePath string) func(seq uint64) []string {
	s, err := annotations.Open(tapePath)
	if err != nil {
		r.Notes = append(r.Notes, "annotations are left out: "+err.Error())
	}
	if s == nil {
		return nil
	}
	if of, err := s.Of(tapePath); err == nil && !of && len(s.Annotations) > 0 {
		r.Notes = append(r.Notes, "annotations of "+tapePath+" were made for another tape")
	}
	return func(seq uint64) (said []string) {
		for _, a := range s.About(seq) {
			said = append(said, a.String())
		}
		return said
	}
}
