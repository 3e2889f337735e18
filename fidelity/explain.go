package fidelity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Bounds of what is read and compared to explain.
const (
	maxExplained  = 96 << 20  // bytes of one payload; a longer one is not read
	maxExplaining = 256 << 20 // bytes of all payloads of one comparison
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
	if _, call := f.talk.(*tape.MCPJSONRPC); call {
		return x.callChanges(was, now), nil
	}
	if f.a == nil {
		return bodies.Diff(was, now, x.o.masked), nil
	}
	return x.ofExchange(f, was, now), nil
}

// ofExchange compares the bodies of two exchanges as a person reads them: decoded, and of a request what its digest is of.
func (x *explainer) ofExchange(f *finding, was, now []byte) []Change {
	switch {
	case f.part == answer:
		if f.category == LLMResponseHash && x.o.AnswerSurface != nil {
			if changes := bodies.Diff(x.o.AnswerSurface(f.a, was), x.o.AnswerSurface(f.b, now), x.o.masked); len(changes) > 0 {
				return changes
			}
		}
		return bodies.Diff(x.answer(f.a, was), x.answer(f.b, now), x.o.masked)
	case x.o.Request == nil:
		return bodies.Diff(was, now, x.o.masked)
	}
	surfaceA, paramsA := x.o.Request(f.a, was)
	surfaceB, paramsB := x.o.Request(f.b, now)
	if f.part == params {
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

// name is what a side is called.
func (x *explainer) name(s Side) string { return sides(x.o.Sides).of(s) }

// explain puts into d how the bytes behind f differ.
func (x *explainer) explain(d *Divergence, f *finding) {
	changes, err := x.changes(f)
	switch {
	case err != nil:
		d.Cause = fmt.Sprintf("what differs cannot be shown: %v", err)
	case len(changes) > 0:
		d.show(changes)
	}
	if f.talk != nil {
		d.subject = x.nameOfTalk(f.talk)
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
