package exchange

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// recall learns from the recorded request that a replayed one matched what its placeholders stand for now: where the program
// names another secret than was recorded, the recorded answer means that one. It learns nothing where the two name not the same.
func (o *Open) recall() {
	if !o.tap.opts.Replay || o.tap.opts.OwnNames {
		return
	}
	o.adopt(o.tap.scrubber.NamedInURL(o.taken.Exchange.URL), o.flow)
	if len(o.named) == 0 {
		return
	}
	ex := o.taken.Exchange
	if ex.RequestPayload == nil || ex.RequestPayload.Len > scrub.MaxLooked {
		return
	}
	body, err := ex.RequestPayload.Bytes(o.from)
	if err != nil {
		return // the Book finds out when the answer is given
	}
	h := HeaderOf(ex.RequestHeaders)
	if body, err = Decode(h.Get("Content-Encoding"), body, scrub.MaxLooked); err != nil {
		return
	}
	o.adopt(o.tap.scrubber.Named(h.Get("Content-Type"), body), o.named)
}

// adopt makes the placeholders of a recorded request mean what this one names in their place.
func (o *Open) adopt(was, now []scrub.Named) {
	if len(now) == 0 || !sameNames(was, now) {
		return
	}
	o.tap.naming.Lock() // no request is half scrubbed; all others wait
	defer o.tap.naming.Unlock()
	for i := range now {
		o.tap.scrubber.Adopt(was[i].Value, now[i].Value) // nothing where it was no placeholder
	}
}

// sameNames reports whether two bodies name the same, in the same order: only then is it told what stands for what.
func sameNames(a, b []scrub.Named) bool {
	return slices.EqualFunc(a, b, func(a, b scrub.Named) bool { return a.Name == b.Name })
}
