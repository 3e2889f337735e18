package fidelity

// A Mode says what must match.
type Mode uint8

// The modes.
const (
	Semantic Mode = iota // the default
	ByteIdentical
	Outcome
	PhaseAware
)

// A Category is the stable code of a divergence.
type Category string

// A Divergence is one difference between two tapes.
type Divergence struct {
	Seq      *uint64  `json:"seq"` // the recorded record's; the replay's for MissingInRecorded; nil for an outcome
	Category Category `json:"category"`
	Message  string   `json:"message"`
	Lane     string   `json:"lane,omitempty"`  // lane mode
	Cause    string   `json:"cause,omitempty"` // lane mode: what made it differ, for a person
}

// A RequestRef names a request in a report.
type RequestRef struct {
	Seq    *uint64 `json:"seq,omitempty"`
	Method string  `json:"method"`
	URL    string  `json:"url"`
	Lane   string  `json:"lane,omitempty"`
	Cause  string  `json:"cause,omitempty"` // refused: nearest recorded request and what differs
}

// A Report is the verdict on two tapes.
type Report struct {
	Mode            string       `json:"mode"` // snake case
	RecordedRecords int          `json:"recorded_records"`
	ReplayRecords   int          `json:"replay_records"`
	Divergences     []Divergence `json:"divergences"` // never nil
	Score           float64      `json:"score"`

	// Lane mode only.
	Crossed     *int           `json:"crossed,omitempty"`
	Unasked     []RequestRef   `json:"unasked,omitempty"`
	Refused     []RequestRef   `json:"refused,omitempty"`
	Masked      map[string]int `json:"masked,omitempty"`
	Notes       []string       `json:"notes,omitempty"`
	NotCompared []string       `json:"not_compared,omitempty"` // what was asked for and could not be looked at: status 1
}
