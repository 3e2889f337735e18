package deck

import (
	"strconv"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A talkLine is one event and its place.
type talkLine struct {
	seq   int // of the session log
	place place
	event sessionlog.Event
}

// append adds the line of an event, in the order of keys that the session log has. The error is the event's: b is then as it
// was.
func (l *talkLine) append(b []byte) ([]byte, error) {
	n := len(b)
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, int64(l.seq), 10)
	b = append(b, `,"event":`...)
	b, err := sessionlog.AppendEvent(b, l.event)
	if err != nil {
		return b[:n], err
	}
	b = append(b, `,"g":`...)
	b = strconv.AppendUint(b, l.place.g, 10)
	b = append(b, `,"t_ms":`...)
	b = strconv.AppendInt(b, l.place.ms, 10)
	return append(b, "}\n"...), nil
}
