package cassette

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
