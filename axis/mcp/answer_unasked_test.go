package mcp

import (
	"context"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// What is said to a client that listens comes behind what tells it that it is heard: it is a subscriber by then, and nothing else is said
// to it.
func TestSubscriptionBegins(t *testing.T) {
	t.Parallel()
	ack, err := tape.MakePayload(nil, []byte(`{"jsonrpc":"2.0","method":"heard"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	v := newSession(ctx, &Served{book: new(Book), transcript: new(transcript)}, &ServeOptions{})
	c := &scene{recordedCall: &recordedCall{requestKey: requestKey{method: methodListen}}}
	c.inside = []*recordedPart{{payload: ack}}
	heard := 0
	v.listen(ctx, c, new(caller), func([]byte) {
		defer leave()
		heard++
		if subs := v.subs[c.recordedCall]; len(subs) != 1 || subs[0].mu.TryLock() {
			t.Errorf("%d subscriptions, or one to which something else may be said", len(subs))
		}
	})
	if heard != 1 {
		t.Errorf("it was heard %d times", heard)
	}
}
