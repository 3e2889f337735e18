package mcp

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A serversOrder keeps what several servers answer at once in the order in which it passed while recording: a program may act on whichever
// answer it sees first. An answer waits until every earlier one of another conversation has gone out and its client has read it. Those
// that are late hold it up together, and once: a program may use fewer servers now.
type serversOrder struct{ *lane.Order[*recordedLine] }

// newServersOrder returns the order of the lines of transcripts that hold an answer; what may come as often as it likes has no place in it, and of
// what a server asked the tape tells when it was answered, not when it was asked.
func newServersOrder(all []*transcript, hold time.Duration) *serversOrder {
	var lines []lane.Line[*recordedLine]
	var open []uint64
	for i, t := range all {
		t.stream = uint64(i + 1)
		for _, l := range t.lines {
			l.turn = -1
			if t.Transport == Stdio && t.Within == 0 && l.ordered() { // else what carried it keeps it in order; or nobody comes with it
				lines = append(lines, lane.Line[*recordedLine]{Place: l.seq, MS: l.at, From: lane.Far, Stream: t.stream, Value: l})
			}
		}
		open = append(open, t.stream)
	}
	slices.SortStableFunc(lines, func(a, b lane.Line[*recordedLine]) int { return cmp.Compare(a.Place, b.Place) })
	for i := range lines {
		lines[i].Value.turn = i
	}
	o := &serversOrder{lane.NewOrder(lines, hold, nil)}
	o.Open(open...)
	return o
}

// ordered reports whether a line has a place among those of other conversations.
func (l *recordedLine) ordered() bool {
	return slices.ContainsFunc(l.parts, func(p recordedPart) bool { return p.answer && p.call.method != methodPing })
}

// asked is when the last request that l answers came, in ms of the recording.
func (l *recordedLine) asked() (at int64) {
	for i := range l.parts {
		if p := &l.parts[i]; p.answer {
			at = max(at, p.call.at)
		}
	}
	return at
}

// wait returns when it is l's turn, or ctx is done, which who writes finds so too.
func (o *serversOrder) wait(ctx context.Context, l *recordedLine) {
	if l.turn >= 0 {
		_ = o.Await(ctx, l.turn, o.Lines()[l.turn].Stream, l.asked())
	}
}

// wrote says that l went out, or never will, and with it every line before.
func (o *serversOrder) wrote(l *recordedLine) {
	if l.turn >= 0 {
		o.Passed(l.turn)
	}
}

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

// A lastOut is where something went out last, of all conversations of a run: what goes out elsewhere waits until that was read.
type lastOut struct {
	mu sync.Mutex
	f  *os.File
}

// turn waits until what went out last elsewhere was read. The next turn is out's.
func (l *lastOut) turn(out *os.File) {
	l.mu.Lock()
	last := l.f
	l.f = out
	l.mu.Unlock()
	if last != nil && last != out {
		settle(last, settleFor)
	}
}
