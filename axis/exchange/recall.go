package exchange

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// recall learns from the recorded request that a replayed one matched what its placeholders stand for now: where the program
// names another secret than was recorded, the recorded answer means that one. It learns nothing where the two name not the same.
func (o *Open) recall() {
	if len(o.named) == 0 || !o.tap.opts.Replay {
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
	was := o.tap.scrubber.Named(h.Get("Content-Type"), body)
	if !sameNames(was, o.named) {
		return
	}
	o.tap.naming.Lock() // no request is half scrubbed; all others wait
	defer o.tap.naming.Unlock()
	for i, now := range o.named {
		o.tap.scrubber.Adopt(was[i].Value, now.Value) // nothing where it was no placeholder
	}
}

// sameNames reports whether two bodies name the same, in the same order: only then is it told what stands for what.
func sameNames(a, b []scrub.Named) bool {
	return slices.EqualFunc(a, b, func(a, b scrub.Named) bool { return a.Name == b.Name })
}
