package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Bounds of what is read and compared to explain.
const (
	maxExplained  = 96 << 20  // bytes of one payload; a longer one is not read
	maxExplaining = 256 << 20 // bytes of all payloads of one comparison
	maxAnswer     = 8 << 20   // bytes of one answer of a model, or request of a tool; of a longer one the hash alone counts
	maxCauses     = 500       // divergences that are explained
	causeChanges  = 5         // changes that the cause of one divergence shows
)

// An explainer reads the bytes behind divergences.
type explainer struct {
	o    LaneOptions
	read int64 // bytes
	done int   // divergences that were explained
}

// spent reports whether no more is explained.
func (x *explainer) spent() bool { return x.done >= maxCauses || x.read > maxExplaining }

// changes returns how the bytes behind a finding differ; none for a field that has no bytes behind it, and an error where
// they cannot be shown.
func (x *explainer) changes(f *finding) ([]Change, error) {
	if f.was == nil && f.now == nil || x.spent() {
		return nil, nil
	}
	was, err := x.bytes(f.was, Recorded)
	if err != nil {
		return nil, err
	}
	now, err := x.bytes(f.now, Replay)
	if err != nil {
		return nil, err
	}
	x.done++
	if _, call := f.message.(*tape.MCPJSONRPC); call {
		return x.callChanges(was, now), nil
	}
	if f.a == nil {
		if changes := bodies.Diff(was, now, x.o.masked); len(changes) > 0 {
			return changes, nil
		}
		return bodies.DiffLines(was, now), nil
	}
	return x.ofExchange(f, was, now), nil
}

// ofExchange compares the bodies of two exchanges as a person reads them: decoded, and of a request what its digest is of.
func (x *explainer) ofExchange(f *finding, was, now []byte) []Change {
	switch {
	case f.part == ofAnswer:
		if f.category == LLMResponseHash && x.o.AnswerSurface != nil {
			if changes := bodies.Diff(x.o.AnswerSurface(f.a, was), x.o.AnswerSurface(f.b, now), x.o.masked); len(changes) > 0 {
				return changes
			}
		}
		return bodies.Diff(x.answer(f.a, was), x.answer(f.b, now), x.o.masked)
	case x.o.Request == nil || bodies.InParts(was, now): // of parts that are files a surface has digests
		return bodies.Diff(was, now, x.o.masked)
	}
	surfaceA, paramsA := x.o.Request(f.a, was)
	surfaceB, paramsB := x.o.Request(f.b, now)
	if f.part == ofParams {
		return DiffJSON(paramsA, paramsB)
	}
	if changes := DiffJSON(surfaceA, surfaceB); len(changes) > 0 {
		return changes
	}
	return bodies.Diff(was, now, x.o.masked) // the digests differ, so something must be shown
}

func (x *explainer) answer(ex *tape.Exchange, b []byte) []byte {
	if x.o.Answer == nil {
		return b
	}
	return x.o.Answer(ex, b)
}

// bytes returns what a payload holds; nothing for nil.
func (x *explainer) bytes(p *tape.Payload, s Side) ([]byte, error) {
	switch {
	case p == nil || p.Len == 0 && !p.Inline:
		return nil, nil
	case p.Inline:
		return []byte(p.Text), nil
	case p.Len > maxExplained:
		return nil, fmt.Errorf("%s: %s is %d bytes long, more than %d", x.name(s), p.Hash.Short(), p.Len, maxExplained)
	case x.o.Payload == nil:
		return nil, fmt.Errorf("%s: %s stands in a store that was not given", x.name(s), p.Hash.Short())
	}
	x.read += p.Len
	b, err := x.o.Payload(p, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.name(s), err)
	}
	return b, nil
}

// readFor is bytes on an account of its own, beside what explaining may read.
func (x *explainer) readFor(account *int64, p *tape.Payload, s Side) ([]byte, error) {
	before := x.read
	b, err := x.bytes(p, s)
	*account += x.read - before
	x.read = before
	return b, err
}

// name is what a side is called.
func (x *explainer) name(s Side) string { return sideNames(x.o.Sides).of(s) }

// explain puts into d how the bytes behind f differ.
func (x *explainer) explain(d *Divergence, f *finding) {
	changes, err := x.changes(f)
	switch {
	case err != nil:
		d.Cause = fmt.Sprintf("what differs cannot be shown: %v", err)
	case len(changes) > 0:
		d.show(changes)
	}
	if f.message != nil {
		d.subject = x.nameOfMessage(f.message)
	}
}

// show puts changes into d, as many as people read.
func (d *Divergence) show(changes []Change) {
	d.Changes = changes[:min(len(changes), causeChanges)]
	d.rest = changes[len(d.Changes):]
	d.MoreChanges = len(d.rest)
	d.tell()
}

// tell writes everything that is known of why d is there into its cause.
func (d *Divergence) tell() {
	var parts []string
	if d.Nearest != nil {
		parts = append(parts, d.nearest())
	}
	switch more := Summary(d.Changes, 0); {
	case more != "":
		if d.MoreChanges > 0 {
			more += fmt.Sprintf("\nand %d more", d.MoreChanges)
		}
		parts = append(parts, more)
	case d.Cause != "":
		parts = append(parts, d.Cause)
	}
	if d.Exchange != "" {
		parts = append(parts, d.Exchange)
	}
	if d.Follows != "" && !slices.Contains(parts, d.Follows) {
		parts = append(parts, d.Follows)
	}
	d.Cause = strings.Join(parts, "\n")
}

func (d *Divergence) nearest() string {
	return fmt.Sprintf("nearest is the recorded request at seq %d, which was never asked for", *d.Nearest)
}

// callChanges lists how two messages of JSON-RPC differ, by the paths in what they ask for or answer. What is made up anew in
// each run (ids, progress tokens) is left out where anything else differs.
func (x *explainer) callChanges(was, now []byte) []Change {
	all := bodies.Diff(was, now, x.o.masked)
	told := slices.DeleteFunc(slices.Clone(all), func(c Change) bool { return madeUpInCall[c.Path] })
	if len(told) == 0 {
		return all
	}
	for i := range told {
		told[i].Path = withinCall(told[i].Path)
	}
	return told
}

// madeUpInCall are the paths of what a client or a server makes up anew in each run.
var madeUpInCall = map[string]bool{
	"id": true, "params._meta.progressToken": true, "params.progressToken": true, "params.requestId": true,
}

// withinCall is a path without the member of the message that holds all of it.
func withinCall(path string) string {
	for _, outer := range []string{"params.", "result."} {
		if p, ok := strings.CutPrefix(path, outer); ok {
			return p
		}
	}
	return path
}

// maxTold is how many characters of a value a message of one line tells.
const maxTold = 60

// tellMessage puts what differs between two messages into the message of their divergence: what was called, the path, both values.
func (d *Divergence) tellMessage(p part) {
	c := &d.Changes[0]
	what := d.subject
	if p == ofAnswer {
		what += ", the answer"
	}
	was, now := clipped(c.Was, maxTold), clipped(c.Now, maxTold)
	switch c.Op {
	case Changed:
		what += fmt.Sprintf(": %s: %s → %s", c.Heading(), was, now)
	case Added:
		what += fmt.Sprintf(": %s: %s", c.Heading(), now)
	case Removed:
		what += fmt.Sprintf(": %s: %s", c.Heading(), was)
	default:
		what += ": " + c.Heading()
	}
	whole := was == c.Was && now == c.Now && c.Coarse == ""
	if more := len(d.Changes) - 1 + d.MoreChanges; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
		whole = false
	}
	d.Message, d.whole = what, whole
}

// nameOfMessage names a recorded message of a conversation: tools/call read_file, message session.update.
func (x *explainer) nameOfMessage(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		return spaced(k.Method, x.subjectIn(k, Recorded))
	case *tape.WSMessage:
		return spaced(cmp.Or(k.Direction, "message"), typeOfMessage(k))
	case *tape.MCPText:
		return spaced("text of", k.From)
	}
	return k.Name()
}

// subjectIn names the tool that a call is of, from its request wherever that stands.
func (x *explainer) subjectIn(k *tape.MCPJSONRPC, s Side) string {
	if inRecord(k.Request) || k.Request == nil || k.Request.Len > maxAnswer || x.spent() {
		return subjectOfCall(k)
	}
	b, err := x.bytes(k.Request, s)
	if err != nil {
		return ""
	}
	return shortened(mcptext.Subject(k.Method, b))
}

// requestChanges lists how two requests differ: in what names them, then in their bodies, and says how
// alike these are. None where they cannot be read.
func (x *explainer) requestChanges(a, b *tape.Record) (changes []Change, alike int) {
	ea, eb := tape.ExchangeOf(a.Kind), tape.ExchangeOf(b.Kind)
	was, errA := x.bytes(ea.RequestPayload, Recorded)
	now, errB := x.bytes(eb.RequestPayload, Replay)
	if errA != nil || errB != nil {
		return nil, 0
	}
	x.done++
	changes, alike = x.nameChanges(a.Kind, b.Kind), bodies.Alike(was, now)
	if x.o.Request == nil || !sameKind(a.Kind, b.Kind) || bodies.InParts(was, now) { // what is matched of a model call is not what is of plain HTTP
		return append(changes, bodies.Diff(was, now, x.o.masked)...), alike
	}
	surfaceA, paramsA := x.o.Request(ea, was)
	surfaceB, paramsB := x.o.Request(eb, now)
	return slices.Concat(changes, DiffJSON(paramsA, paramsB), DiffJSON(surfaceA, surfaceB)), alike
}

func (x *explainer) nameChanges(a, b tape.Kind) []Change {
	var out []Change
	add := func(path, was, now string) {
		if was != now && x.o.masked(was) != x.o.masked(now) {
			c := bodies.PairTexts(was, now).Change()
			c.Path = path
			out = append(out, *c)
		}
	}
	ea, eb := tape.ExchangeOf(a), tape.ExchangeOf(b)
	add("method", ea.Method, eb.Method)
	add("url", ea.URL, eb.URL)
	la, okA := a.(*tape.LLMCall)
	lb, okB := b.(*tape.LLMCall)
	if okA && okB {
		add("endpoint", la.Endpoint, lb.Endpoint)
		if ea.URL == eb.URL || !strings.Contains(ea.URL, la.Model) || la.Model == "" { // else the URL says so, where it names the model
			add("model", la.Model, lb.Model)
		}
	}
	return out
}

func sameKind(a, b tape.Kind) bool { return a.Name() == b.Name() }

// divergenceOf is a divergence about one field of two records.
func divergenceOf(f *finding, a, b *tape.Record) Divergence {
	return Divergence{
		Seq: new(a.Seq), Category: f.category, Message: cmp.Or(f.title, titleOf(f.category)), // a copy: a pointer would hold the record
		Recorded: describe(a.Kind), Replay: describe(b.Kind), ReplaySeq: new(b.Seq),
	}
}

// complete puts the two values into the message where no change tells more, and what it is about.
func (d Divergence) complete(f *finding, names sideNames, about string) Divergence {
	if about != "" && f.category != KindMismatch {
		about = " (" + about + ")"
	} else {
		about = ""
	}
	if f.message != nil && len(d.Changes) > 0 {
		d.tellMessage(f.part)
		return d
	}
	if len(d.Changes) == 0 {
		d.Message += names.versus(f.shown())
	}
	d.Message += about
	return d
}

// showCall shows what a call that one side has alone asked for; nothing of one that its message says all of.
func (d *Divergence) showCall(call *tape.MCPJSONRPC, b []byte, s Side) {
	c := Change{Path: "parameters", Op: Shown}
	asked := mcptext.Request(call.Method, b, bodies.MaxShown)
	switch asked {
	case "", subjectOfCall(call):
		return
	}
	d.show([]Change{onSide(c, asked, s)})
}

// preview shows a body that one side has alone: of a conversation its last message.
func preview(b []byte, s Side) Change {
	c, shown := bodies.Preview(b)
	return onSide(c, shown, s)
}

// onSide is a change of which one side alone has something to show.
func onSide(c Change, shown string, s Side) Change {
	if s == Replay {
		c.Now = shown
	} else {
		c.Was = shown
	}
	return c
}
