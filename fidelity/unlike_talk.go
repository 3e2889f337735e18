package fidelity

import (
	"bytes"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxUnlikeTalk bounds, in bytes, the parameters of calls that are held against each other though they compare as equal.
const maxUnlikeTalk = 16 << 20

// hiddenTalk is what masks hid in messages of conversations that compare as equal.
type hiddenTalk struct {
	messages int
	first    *Change
	read     int64
}

func (h *hiddenTalk) add(changes []Change) {
	if len(changes) == 0 {
		return
	}
	if h.messages++; h.first == nil {
		h.first = &changes[0]
	}
}

// unlikeCall finds what masks hid in a pair of calls that ask the same: a green verdict must not hide that "in 5 seconds" became
// "in 50". Of requests that do not stand in their records it says nothing.
func (c *laneCompare) unlikeCall(p pair) {
	a, b := callOf(p.a.rec), callOf(p.b.rec)
	if a == nil || b == nil || a.RequestDigest == b.RequestDigest || a.ParamsDigest != b.ParamsDigest || a.ParamsDigest.IsZero() ||
		!inRecord(a.Request) || !inRecord(b.Request) || c.hidden.read > maxUnlikeTalk {
		return
	}
	was, now := []byte(a.Request.Text), []byte(b.Request.Text)
	c.hidden.read += a.Request.Len + b.Request.Len
	if bytes.Equal(mcptext.Params(was), mcptext.Params(now)) {
		return
	}
	var told []Change
	for _, change := range maskedChanges(was, now, nil) {
		if !madeUpInCall[change.Path] {
			change.Path = withinCall(change.Path)
			told = append(told, change)
		}
	}
	c.hidden.add(told)
}

// note says what the masks hid.
func (h *hiddenTalk) note(c *laneCompare) {
	if h.first == nil {
		return
	}
	messages := fmt.Sprintf("%d messages", h.messages)
	if h.messages == 1 {
		messages = "1 message"
	}
	c.note("masks hide a difference in %s of tool servers and WebSockets, the first %s: %s → %s", messages, h.first.Heading(),
		toldValue(h.first.Was).text, toldValue(h.first.Now).text)
}

// messagesAlike is what contentAlike finds, and keeps what it hid.
func (c *laneCompare) messagesAlike(was, now []byte, of *tape.Payload) bool {
	mask := c.o.MaskArg
	asTheyStand := mask != nil && mask(string(was)) == mask(string(now))
	if !asTheyStand && len(maskedChanges(was, now, mask)) > 0 {
		return false
	}
	if c.hidden.read += of.Len; c.hidden.read <= maxUnlikeTalk {
		c.hidden.add(maskedChanges(was, now, nil))
	}
	return true
}
