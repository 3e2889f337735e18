package deck

import (
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxHeard is how much of each stream of a process that the program started is kept, in bytes. It compares as far as that.
const maxHeard = 1 << 20

// heardStreams are the standard streams of a process that somebody talked with, which is no server: what it was given and what it wrote.
type heardStreams struct {
	pid  int
	to   [3]*heardStream
	left *mcp.Heard
}

// A heardStream keeps the beginning of one stream, scrubbed.
type heardStream struct {
	clean *scrub.Writer
	spool *spool.Spool
	room  int
	cut   bool
}

func newHeardStreams(s *session, pid int) *heardStreams {
	h := &heardStreams{pid: pid, left: new(mcp.Heard)}
	for i := range h.to {
		sp := spool.New(s.store)
		h.to[i] = &heardStream{clean: s.scrub.Writer(sp), spool: sp, room: maxHeard}
		h.left.To[i] = h.to[i]
	}
	return h
}

// Write implements io.Writer. What finds no room is dropped.
func (h *heardStream) Write(b []byte) (int, error) {
	n := min(len(b), h.room)
	h.room -= n
	h.cut = h.cut || n < len(b)
	if n == 0 {
		return len(b), nil
	}
	if _, err := h.clean.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (h *heardStream) finish() (*tape.Payload, error) {
	return h.spool.Finish(h.clean.Close())
}

// add puts the streams on the record of their process. Those that were not taken are absent there.
func (h *heardStreams) add(k *tape.ProcessSpawn) (err error) {
	cut := make(map[string]bool)
	for i, to := range []**tape.Payload{&k.Stdin, &k.Stdout, &k.Stderr} {
		if *to, err = h.to[i].finish(); err != nil {
			return err
		}
		cut[tape.CutKeys[i]] = h.to[i].cut || !h.left.Whole[i]
	}
	k.Extra = append(k.Extra, tape.FlagFields(cut)...)
	return nil
}
