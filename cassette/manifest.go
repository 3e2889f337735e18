package cassette

import "encoding/json"

// A Manifest says what a cassette is. It is written last.
type Manifest struct {
	Version          int                        `json:"version"`
	ID               string                     `json:"id"`
	ContentDigest    ContentDigest              `json:"content_digest"`
	Harness          Harness                    `json:"harness"`
	Command          Command                    `json:"command"`
	Terminal         Terminal                   `json:"terminal"`
	Timing           Timing                     `json:"timing"`
	Provenance       Provenance                 `json:"provenance"`
	RequiredFeatures []string                   `json:"required_features,omitzero"` // written when empty too; nil where it was not there
	Optional         map[string]json.RawMessage `json:"optional,omitzero"`          // likewise
}

// ContentDigest is what output.raw hashes to.
type ContentDigest struct {
	SHA256 string `json:"sha256"` // lowercase hex
}

// A Harness is the program that was recorded, as the layer above knows it.
type Harness struct {
	Name                   string          `json:"name"`
	BinaryPathDigestSHA256 string          `json:"binary_path_digest_sha256,omitempty"`
	BinaryVersion          string          `json:"binary_version,omitempty"`
	Capability             json.RawMessage `json:"capability,omitempty"` // an object
	AccountClass           string          `json:"account_class,omitempty"`
	CapturedAt             string          `json:"captured_at,omitempty"`
	FreshnessWindow        json.RawMessage `json:"freshness_window,omitempty"` // as the producer has it: a string, or a number
}

// A Command is how the program was started.
type Command struct {
	Argv           []string `json:"argv,omitempty"`
	WorkdirPolicy  string   `json:"workdir_policy"` // "" is written as "unspecified"
	EnvAllowlist   []string `json:"env_allowlist,omitempty"`
	TimeoutMS      int64    `json:"timeout_ms,omitempty"`
	PermissionMode string   `json:"permission_mode,omitempty"`
}

// A Terminal is the terminal that the program was given.
type Terminal struct {
	InitialRows int             `json:"initial_rows"`
	InitialCols int             `json:"initial_cols"`
	Locale      string          `json:"locale,omitempty"`
	Term        string          `json:"term,omitempty"`
	PTYMode     json.RawMessage `json:"pty_mode,omitempty"` // an object
	Emulator    Emulator        `json:"emulator"`
}

// An Emulator names the screen model that the frames come from. Equal emulators give equal frames of equal bytes.
type Emulator struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Timing says what the times of a cassette mean.
type Timing struct {
	ResolutionMS  int64      `json:"resolution_ms"`
	ClockPolicy   string     `json:"clock_policy"`
	ReplayDefault ReplayMode `json:"replay_default"`
}

// Provenance says who recorded, when and where.
type Provenance struct {
	GitSHA          string `json:"git_sha,omitempty"`
	ContractVersion string `json:"contract_version,omitempty"`
	OS              string `json:"os"`
	Arch            string `json:"arch"`
	RecordedAt      string `json:"recorded_at"` // RFC 3339
	RecorderVersion string `json:"recorder_version"`
}

// A Final says how the program ended. It is the last event.
type Final struct {
	Timed
	Exit           *Exit           `json:"exit,omitempty"`
	DurationMS     int64           `json:"duration_ms"`
	Metadata       json.RawMessage `json:"metadata,omitempty"` // an object
	Usage          json.RawMessage `json:"usage,omitempty"`    // an object
	CostUSD        float64         `json:"cost_usd,omitempty"`
	RoutingActual  json.RawMessage `json:"routing_actual,omitempty"` // as the producer has it
	SessionLogPath string          `json:"session_log_path,omitempty"`
	FinalText      string          `json:"final_text,omitempty"`
	G              uint64          `json:"g,omitempty"`
}

// A Capability is what quota.json and discovery.json hold: evidence of what an account or a program could do.
type Capability struct {
	Source            string            `json:"source"`
	Status            string            `json:"status"`
	Models            []json.RawMessage `json:"models,omitempty"` // names, or whatever the producer has of each; so are the levels
	ReasoningLevels   []json.RawMessage `json:"reasoning_levels,omitempty"`
	CapturedAt        string            `json:"captured_at,omitempty"`
	FreshnessWindow   json.RawMessage   `json:"freshness_window,omitempty"` // as the producer has it: a string, or a number
	StalenessBehavior string            `json:"staleness_behavior,omitempty"`
	AccountClass      string            `json:"account_class,omitempty"`
	Windows           []json.RawMessage `json:"windows,omitempty"`
	Metadata          json.RawMessage   `json:"metadata,omitempty"` // an object
}

// A ScrubReport says what scrubbing did.
type ScrubReport struct {
	Status                 string         `json:"status"` // Clean or Redacted
	Rules                  []string       `json:"rules"`  // those that were applied, sorted
	HitCounts              map[string]int `json:"hit_counts"`
	EnvAllowlist           []string       `json:"env_allowlist,omitempty"`
	IntentionallyPreserved []string       `json:"intentionally_preserved,omitzero"` // as required_features
	// LateHits are those of them that were found when they stood on the disk already, and masked there.
	LateHits int `json:"late_hits,omitempty"`
}

// The status of a ScrubReport.
const (
	Clean    = "clean"
	Redacted = "redacted"
)

// Version is the format's version.
const Version = 1

// The files of a cassette.
const (
	ManifestFile    = "manifest.json"
	InputFile       = "input.jsonl"
	OutputFile      = "output.raw"
	ChunksFile      = "output.jsonl"
	FramesFile      = "frames.jsonl"
	ServiceFile     = "service-events.jsonl"
	FinalFile       = "final.json"
	QuotaFile       = "quota.json"
	DiscoveryFile   = "discovery.json"
	ScrubReportFile = "scrub-report.json"
)

// Limits of what a reader takes. A cassette beyond them is refused, never read into memory.
const (
	MaxLine  = 16 << 20 // bytes of a line of a stream, and of a JSON file
	MaxChunk = 64 << 20 // bytes of a chunk
)

// Defaults of what a manifest does not say.
const (
	DefaultRows         = 24
	DefaultCols         = 80
	DefaultResolutionMS = 100
	DefaultReplay       = ReplayCollapsed
)

// ClockPolicy is the clock of every t_ms.
const ClockPolicy = "monotonic-elapsed"

// A ReplayMode says how Replay spends the time between events.
type ReplayMode string

// The modes of replay.
const (
	ReplayRealtime  ReplayMode = "realtime"  // the recorded time
	ReplayScaled    ReplayMode = "scaled"    // the recorded time times a factor
	ReplayCollapsed ReplayMode = "collapsed" // none
)
