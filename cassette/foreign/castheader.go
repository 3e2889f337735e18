package foreign

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// castHeader is the header of every version of asciicast; v3 has the terminal in an object.
type castHeader struct {
	Version   int               `json:"version"`
	Width     int               `json:"width,omitempty"`
	Height    int               `json:"height,omitempty"`
	Term      *castTerm         `json:"term,omitempty"`
	Timestamp json.Number       `json:"timestamp,omitempty"`
	Duration  float64           `json:"duration,omitempty"`
	IdleLimit float64           `json:"idle_time_limit,omitempty"`
	Command   string            `json:"command,omitempty"`
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Theme     *Theme            `json:"theme,omitempty"`
	Tags      []string          `json:"tags,omitempty"`
}

type castTerm struct {
	Cols    int    `json:"cols"`
	Rows    int    `json:"rows"`
	Type    string `json:"type,omitempty"`
	Version string `json:"version,omitempty"`
	Theme   *Theme `json:"theme,omitempty"`
}

// parseCastHeader reads the object b, which may have fields that it does not know.
func parseCastHeader(b []byte) (*castHeader, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("the header is no JSON object: %w", err)
	}
	var h castHeader
	for key, v := range raw {
		if err := h.set(key, v); err != nil {
			return nil, err
		}
	}
	return &h, nil
}

// set takes one field. What an optional one holds is not refused where it is of another type: recorders differ there.
func (h *castHeader) set(key string, v json.RawMessage) error {
	must := map[string]any{"version": &h.Version, "width": &h.Width, "height": &h.Height, "term": &h.Term}
	if to := must[key]; to != nil {
		if err := json.Unmarshal(v, to); err != nil {
			return fmt.Errorf("the header's %s: %w", key, err)
		}
		return nil
	}
	may := map[string]any{
		"timestamp": &h.Timestamp, "duration": &h.Duration, "idle_time_limit": &h.IdleLimit, "command": &h.Command,
		"title": &h.Title, "theme": &h.Theme, "tags": &h.Tags,
	}
	switch to := may[key]; {
	case key == "env":
		h.Env = stringsOf(v)
	case to != nil:
		_ = json.Unmarshal(v, to) // it stays empty then
	}
	return nil
}

// stringsOf returns those members of the object v that are strings.
func stringsOf(v json.RawMessage) map[string]string {
	var raw map[string]any
	if json.Unmarshal(v, &raw) != nil {
		return nil
	}
	out := make(map[string]string, len(raw))
	for k, v := range raw {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// header returns the neutral form. A size of 0, which recorders without a terminal write, is as good as none.
func (h *castHeader) header(f Format) (*Header, error) {
	out := &Header{
		Format: f, Rows: h.Height, Cols: h.Width, Theme: h.Theme, Started: stamp(h.Timestamp), Duration: seconds(h.Duration),
		IdleLimit: seconds(h.IdleLimit), Command: h.Command, Title: h.Title, Env: h.Env, Tags: h.Tags, Term: h.Env["TERM"],
	}
	if f == AsciicastV3 {
		if h.Term == nil {
			return nil, fmt.Errorf("the header has no term: want {\"term\": {\"cols\": …, \"rows\": …}}")
		}
		out.Rows, out.Cols, out.TermVersion, out.Theme = h.Term.Rows, h.Term.Cols, h.Term.Version, h.Term.Theme
		if h.Term.Type != "" {
			out.Term = h.Term.Type
		}
	}
	if out.Rows == 0 || out.Cols == 0 {
		out.Rows, out.Cols = 0, 0
		return out, nil
	}
	return out, checkSize(out.Rows, out.Cols)
}

// newCastHeader is the form of h in version 2 or 3.
func newCastHeader(h *Header, version int) *castHeader {
	out := &castHeader{
		Version: version, IdleLimit: h.IdleLimit.Seconds(), Command: h.Command, Title: h.Title, Env: h.Env,
	}
	if !h.Started.IsZero() {
		out.Timestamp = json.Number(fmt.Sprint(h.Started.Unix()))
	}
	if version == 3 {
		out.Term = &castTerm{Cols: h.Cols, Rows: h.Rows, Type: h.Term, Version: h.TermVersion, Theme: h.Theme}
		out.Tags = h.Tags
		return out
	}
	out.Width, out.Height, out.Theme, out.Duration = h.Cols, h.Rows, h.Theme, h.Duration.Seconds()
	if h.Term != "" && h.Env["TERM"] == "" {
		out.Env = map[string]string{"TERM": h.Term}
		for k, v := range h.Env {
			out.Env[k] = v
		}
	}
	return out
}

// seconds is n seconds to the microsecond; 0 for what is no duration.
func seconds(n float64) time.Duration {
	if d, err := duration(n); err == nil && d >= 0 {
		return d
	}
	return 0
}

// duration is n seconds to the microsecond.
func duration(n float64) (time.Duration, error) {
	if math.IsNaN(n) || math.Abs(n) > MaxTime.Seconds() {
		return 0, errTime
	}
	return time.Duration(math.Round(n*1e6)) * time.Microsecond, nil
}

// stamp is a Unix time, which some recorders write with a fraction.
func stamp(n json.Number) time.Time {
	f, err := n.Float64()
	if err != nil || f <= 0 || f > 253402300799 || strings.TrimSpace(n.String()) == "" { // the year 9999
		return time.Time{}
	}
	return time.UnixMicro(int64(f * 1e6)).UTC()
}
