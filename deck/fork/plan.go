package fork

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A Plan is where a recording is left, and what can be changed there.
type Plan struct {
	*Point
	*Tape
	Document *Document // nil where the point is no call of a model that can be read
	Usage    llm.Usage // of the recorded answer
	unread   error     // why there is no document

	Store cas.Store // of the recording
}

// PlanOf reads a recording and finds a point in it.
func PlanOf(rec *recording.Recording, place Place) (*Plan, error) {
	f, err := rec.OpenTape()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := new(Plan)
	if p.Tape, err = Read(f.Records()); err != nil {
		return nil, err
	}
	if p.Point, err = p.Find(place, rec.Records()); err != nil {
		return nil, err
	}
	if p.Store, err = rec.Store(); err != nil {
		return nil, err
	}
	if p.First.Call == nil {
		p.unread = fmt.Errorf("record %d is no call of a model", p.Seq)
		return p, nil
	}
	if p.First.Call.Connection != 0 {
		return nil, fmt.Errorf("turn %d was asked for over a WebSocket, which cannot be left in its middle: record the program with HTTP", p.Turn)
	}
	call := p.answered(p.First) // the first may be an attempt that failed
	p.Usage, _ = llm.UsageOf(call)
	p.Document, p.unread = DocumentOf(call, p.Store)
	return p, nil
}

// Changes are those of assignments PATH=VALUE, on top of a document that was edited; nil for none.
func (p *Plan) Changes(edited *Document, assignments []string) (*Changes, error) {
	if edited == nil && len(assignments) == 0 {
		return new(Changes), nil
	}
	if p.Document == nil {
		return nil, fmt.Errorf("nothing can be edited there: %w", p.unread)
	}
	if edited == nil {
		edited = p.Document.clone()
	}
	for _, a := range assignments {
		if err := edited.Set(a); err != nil {
			return nil, err
		}
	}
	c := p.Document.Changes(edited)
	if c.Answer != nil && !llm.Speaks(p.First.Call) {
		return nil, fmt.Errorf("an answer of %s %s cannot be written here: change what leaves in its place", p.First.Call.Provider, p.First.Call.Endpoint)
	}
	return c, nil
}

// WhyNoDocument says why there is nothing to edit; nil where there is a Document.
func (p *Plan) WhyNoDocument() error { return p.unread }
