package sessionlog

import "strconv"

// A Stamp is what an envelope of ours has behind its event. Nil and zero are no stamp.
type Stamp struct {
	G   uint64 // the recorder's global ordinal
	TMS *int64 // milliseconds since the recording began
}

// AppendEnvelope appends the line of an event, without a newline: {"seq":…,"event":{…}} and, behind the event, g and t_ms where s
// has them. The error is that of AppendEvent; dst is then as it was.
func AppendEnvelope(dst []byte, seq uint64, e Event, s *Stamp) ([]byte, error) {
	was := dst
	dst = strconv.AppendUint(append(dst, `{"seq":`...), seq, 10)
	dst, err := AppendEvent(append(dst, `,"event":`...), e)
	if err != nil {
		return was, err
	}
	if s != nil && s.G != 0 {
		dst = strconv.AppendUint(append(dst, `,"g":`...), s.G, 10)
	}
	if s != nil && s.TMS != nil {
		dst = strconv.AppendInt(append(dst, `,"t_ms":`...), *s.TMS, 10)
	}
	return append(dst, '}'), nil
}
