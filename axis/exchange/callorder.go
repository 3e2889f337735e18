package exchange

import "github.com/tapedeck-dev/tapedeck/internal/lane"

// A CallOrderer is a Classifier that knows which results of tool calls a request holds.
type CallOrderer interface {
	// InCallOrder returns the request with the results of calls of one turn in the order of these calls; nil where there are no two.
	InCallOrder(r *Request) *Request
}

// reordered returns the recorded call of a model that differs from a request in nothing but the order of the results of calls that were
// made in one turn; nil for none. It stands in the same conversation, and was not handed out.
func (b *Book) reordered(id *Identity, r *Request) *Recorded {
	c, ok := b.classifier.(CallOrderer)
	if !ok || id.Key.Kind != LLM || id.Talk == nil {
		return nil
	}
	asked := b.keyInCallOrder(c, r)
	if asked == nil {
		return nil
	}
	for _, rec := range b.unservedOf(&id.Key, lanePrefix(id.Talk().Opening)) {
		if was := b.keyInCallOrder(c, b.request(rec)); was != nil && *was == *asked {
			return rec
		}
	}
	return nil
}

// keyInCallOrder is the key of a request whose results were put in order; nil where there are none to order.
func (b *Book) keyInCallOrder(c CallOrderer, r *Request) *Key {
	sorted := c.InCallOrder(r)
	if sorted == nil {
		return nil
	}
	id, err := b.classifier.Classify(sorted)
	if err != nil {
		return nil
	}
	return &id.Key
}

// unservedOf lists the next recorded calls of a conversation, by arrival, that are like a key in all but what was said.
func (b *Book) unservedOf(k *Key, name string) (all []*Recorded) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rec := range b.recorded {
		like := rec.Key
		like.Request = k.Request
		if !rec.served && like == *k && inLane(rec, name) && len(all) < lane.MaxCandidates {
			all = append(all, rec)
		}
	}
	return all
}
