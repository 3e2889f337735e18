package deck

import (
	"encoding/json"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// append adds the line of an event, in the order of keys that the session log has.
func (l *talkLine) append(b []byte) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, int64(l.seq), 10)
	b = append(b, `,"event":`...)
	b = append(b, eventJSON(l.event)...)
	b = append(b, `,"g":`...)
	b = strconv.AppendUint(b, l.place.g, 10)
	b = append(b, `,"t_ms":`...)
	b = strconv.AppendInt(b, l.place.ms, 10)
	return append(b, "}\n"...)
}

// eventJSON is the object of an event.
func eventJSON(e sessionlog.Event) []byte {
	o := map[string]any{"kind": e.Kind()}
	c := e.Base()
	if c.TapeSeq != nil {
		o["tape_seq"] = *c.TapeSeq
	}
	if c.Turn > 0 {
		o["turn"] = c.Turn
	}
	switch e := e.(type) {
	case *sessionlog.RunStarted:
		o["run_id"], o["goal"], o["criteria"], o["attachments"] = e.RunID, e.Goal, e.Criteria, e.Attachments
		if e.SystemPrompt != "" {
			o["system_prompt"] = e.SystemPrompt
		}
	case *sessionlog.LLMCompleted:
		o["message"] = e.Message
		if e.ProviderReplay != nil {
			o["provider_replay"] = e.ProviderReplay
		}
	case *sessionlog.ToolRequested:
		o["calls"] = e.Calls
	case *sessionlog.ToolCompleted:
		o["results"] = e.Results
	case *sessionlog.RunTerminal:
		o["reason"], o["turns_used"], o["total_tokens"] = e.Reason, e.TurnsUsed, e.TotalTokens
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // every part of it is JSON already
	}
	return b
}
