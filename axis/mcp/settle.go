package mcp

import (
	"os"
	"time"
)

// settleFor is how long an answer waits for the client to read what went out before it and answers nothing, and settleStep how often
// it is looked whether it has.
const (
	settleFor  = 50 * time.Millisecond
	settleStep = 100 * time.Microsecond
)

// settle waits until a client has read what was written to out, for at most that long. Clients forget a request with its answer: progress of it that one
// read brings together with the answer is lost to some, and whether one read does is a matter of moments. So an answer comes in a read
// of its own behind a notification, while recording and on a replay.
func settle(out *os.File, most time.Duration) {
	for end := time.Now().Add(most); unread(out) > 0 && time.Now().Before(end); {
		time.Sleep(settleStep) // nothing tells when a pipe was read
	}
}
