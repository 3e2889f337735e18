package mcp

import (
	"sync"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// batched are the calls of a recorded conversation that came in batches and were answered. HTTP matches a batch as a whole, as one
// request; where the tape lacks it for one of its calls, the others are answered from here.
type batched struct {
	mu    sync.Mutex
	calls map[bookKey][]*batchedCall // in recorded order
}

type batchedCall struct {
	exchange uint64 // arrival of the one that carried it
	place    uint64
	answer   *tape.Payload
	served   bool // guarded by batched.mu
}

// note takes an answered call of the client over. Which came in a batch is known once all are noted: settle follows.
func (b *batched) note(k *tape.MCPJSONRPC) {
	if k.Answered == 0 || k.Response == nil || Side(k.From) == Server || k.Method == "ping" {
		return
	}
	if b.calls == nil {
		b.calls = make(map[bookKey][]*batchedCall)
	}
	key := bookKey{k.Method, k.ParamsDigest}
	b.calls[key] = append(b.calls[key], &batchedCall{exchange: k.Exchange, place: k.Arrival, answer: k.Response})
}

// settle drops what came by itself.
func (b *batched) settle() {
	at := make(map[uint64]int)
	for _, list := range b.calls {
		for _, c := range list {
			at[c.place]++
		}
	}
	for key, list := range b.calls {
		kept := list[:0]
		for _, c := range list {
			if at[c.place] > 1 {
				kept = append(kept, c)
			}
		}
		if b.calls[key] = kept; len(kept) == 0 {
			delete(b.calls, key)
		}
	}
}

// came notes that a recorded exchange answers what it answered.
func (b *batched) came(exchange uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range b.calls {
		for _, c := range list {
			c.served = c.served || c.exchange == exchange
		}
	}
}

// take returns for each key the next recorded call, nil for one that the tape lacks and for the zero key, which asks for nothing. Where it
// lacks none, what differs is how they came together, and nothing is taken.
func (b *batched) take(keys []bookKey) []*batchedCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, lacks := make([]*batchedCall, len(keys)), false
	for i, k := range keys {
		for _, c := range b.calls[k] {
			if !c.served {
				found[i], c.served = c, true
				break
			}
		}
		lacks = lacks || found[i] == nil && k != (bookKey{})
	}
	if lacks {
		return found
	}
	for i, c := range found {
		if c != nil {
			c.served = false
		}
		found[i] = nil
	}
	return found
}

// answers finds the recorded answers to those calls of a refused batch that are on the tape, by index into the messages.
func (p *passage) answers() []*batchedCall {
	clean := p.over.log.Redact(Client, p.asked.Request.Body).Messages
	if len(clean) != len(p.messages) {
		return make([]*batchedCall, len(p.messages))
	}
	keys := make([]bookKey, len(clean))
	for i := range clean {
		if m := &clean[i]; m.IsRequest() && m.Method != "ping" {
			keys[i] = bookKey{m.Method, p.over.log.Digest(m.Method, m.Params)}
		}
	}
	return p.talk.was.batched.take(keys)
}

// answerAgain is the recorded answer to a call, under the id that it has now; nil where it cannot be read.
func (p *passage) answerAgain(m *Message, c *batchedCall) []byte {
	was, ok := messageOf(c.answer, p.over.blobs)
	if !ok {
		return nil
	}
	kind := "result"
	if was.Error != nil {
		kind = "error"
	}
	value := was.value()
	if p.over.reveal != nil {
		value = p.over.reveal(value)
	}
	return answerOf(m.ID, kind, value)
}
