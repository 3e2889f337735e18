package page

import (
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/deck/compare"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// Library is library.json: what a page can show.
type Library struct {
	Title   string    `json:"title"`
	Runs    []Run     `json:"runs"` // newest first
	Compare bool      `json:"compare"`
	Live    bool      `json:"live"`   // documents change while they are looked at: .../live says so
	Open    string    `json:"open"`   // the place (what stands behind # in the page's address) that it opens at; "" for the runs
	Absent  []Absent  `json:"absent"` // documents and payloads that a file does not hold
	Problem []Problem `json:"problems"`
	Daemon  string    `json:"daemon"` // the URL of the daemon that the page shows too; "" for none
}

// Absent is what a page could not be given, and why.
type Absent struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Why  string `json:"why"`
}

// Problem is a recording, or a part of one, that cannot be read.
type Problem struct {
	Path string `json:"path"`
	What string `json:"what"`
}

// Run is a recording in a list.
type Run struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`    // of its directory or file
	State   string            `json:"state"`   // "finished", "recording", "interrupted"
	Started int64             `json:"started"` // Unix epoch ms
	Argv    []string          `json:"argv"`
	Exit    *recording.Exit   `json:"exit"`
	Records int               `json:"records"`
	Totals  *recording.Totals `json:"totals"`  // null where they are not known
	Verdict *Verdict          `json:"verdict"` // of its last replay
	Parent  *string           `json:"parent"`
	ForkSeq *uint64           `json:"fork_seq"`
	Sealed  bool              `json:"sealed"`
}

// Verdict is how the last replay of a run ended.
type Verdict struct {
	Status  string `json:"status"` // "faithful", "diverged", …
	Summary string `json:"summary"`
	At      int64  `json:"at"` // Unix epoch ms
}

// Detail is run/ID/run.json: a run by itself.
type Detail struct {
	Run
	Cwd           string            `json:"cwd"`
	Host          string            `json:"host"`
	Versions      map[string]string `json:"versions"`
	Coverage      []Coverage        `json:"coverage"`
	Refused       int               `json:"refused"`
	Upstreams     []string          `json:"upstreams"`
	Masks         map[string]int    `json:"masks"`
	Fork          *recording.Fork   `json:"fork"`
	Seal          *Seal             `json:"seal"` // null where there is none
	Conversations []Conversation    `json:"conversations"`
	Terminal      bool              `json:"terminal"` // run/ID/terminal.json is there
	Files         int               `json:"files"`    // paths in run/ID/files.json
	Report        bool              `json:"report"`   // run/ID/report.json is there
	Notes         []Note            `json:"notes"`    // of people, about records
	Problems      []Problem         `json:"problems"` // what of it cannot be read, or was not recorded
}

// Note is what somebody noted about a record.
type Note struct {
	Seq    uint64 `json:"seq"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Author string `json:"author"`
}

// Coverage is what one axis saw of a run, and what it did not.
type Coverage struct {
	Axis string   `json:"axis"`
	How  string   `json:"how"`
	Gaps []string `json:"gaps"`
}

// Seal is what stands in a seal; whether it holds is said by whoever checks it.
type Seal struct {
	Root    string `json:"root"`
	Key     string `json:"key"`
	Checked string `json:"checked"` // "holds", why it does not, or that nobody looked; one that is broken is in Detail.Problems too

	broken bool
}

// Index is run/ID/index.json: every record in columns, row N that of the N-th record. Numbers of Start are differences to the row before.
type Index struct {
	Rows  int      `json:"rows"`
	Block int      `json:"block"` // how many records stand in run/ID/records/B.json, but for the last B
	Kinds []string `json:"kinds"`
	Lanes []Lane   `json:"lanes"`
	Texts []string `json:"texts"` // titles, each once

	Seq   []int64 `json:"seq"` // none where row N has the seq N
	Kind  []int   `json:"kind"`
	Lane  []int   `json:"lane"`
	Start []int64 `json:"start"` // ms after the start, against the row before
	Took  []int64 `json:"took"`  // ms
	Turn  []int   `json:"turn"`  // the number of the turn that it belongs to in its conversation; 0 for none
	Size  []int64 `json:"size"`  // bytes of its payloads
	Flag  []int   `json:"flag"`  // bits: 1 failed or refused, 8 side traffic. Report.First and Detail.Notes name further rows
	Title []int   `json:"title"` // in Texts
}

// Lane is a row of the timeline.
type Lane struct {
	Name  string `json:"name"`
	Group string `json:"group"` // "model", "tool", "http", "process", "file", "network", "terminal", "clock", "other"
	Title string `json:"title"`
}

// Records is run/ID/records/B.json: records as they stand on the tape.
type Records struct {
	First   int               `json:"first"` // row of the first one
	Records []json.RawMessage `json:"records"`
}

// Conversation is what was said with models in one lane.
type Conversation struct {
	Lane  string    `json:"lane"`
	Title string    `json:"title"`
	Turns []TurnRow `json:"turns"`
}

// TurnRow is a turn in a list.
type TurnRow struct {
	Seq     uint64   `json:"seq"`
	Number  int      `json:"number"`
	Model   string   `json:"model"`
	Prompt  string   `json:"prompt"` // first words
	Answer  string   `json:"answer"`
	Tools   []string `json:"tools"`
	Start   int64    `json:"start"`   // ms after the start of the run
	Latency int64    `json:"latency"` // ms
	Input   int64    `json:"input_tokens"`
	Cached  int64    `json:"cached_tokens"`
	Output  int64    `json:"output_tokens"`
	Cost    *float64 `json:"cost_usd"`
	Error   string   `json:"error"`
}

// Turn is run/ID/turn/SEQ.json: one call of a model as people read it, whichever provider's. What it repeats of the turn before in its
// conversation is not said again: its first Keep messages are the first of Previous, its answer among them.
type Turn struct {
	TurnRow
	Lane     string    `json:"lane"`
	Provider string    `json:"provider"`
	Previous *uint64   `json:"previous"` // seq; null for none
	Keep     int       `json:"keep"`
	System   *string   `json:"system"` // null where it is that of Previous
	Declared []Tool    `json:"declared"`
	Same     bool      `json:"same_declared"` // those of Previous
	Params   []Param   `json:"params"`
	Messages []Message `json:"messages"` // behind the Keep
	Said     *Message  `json:"said"`     // the answer; null for none
	Chunks   []Chunk   `json:"chunks"`
	Stop     string    `json:"stop"`
	Request  *Payload  `json:"request"`
	Response *Payload  `json:"response"`
}

// Tool is one that a request declares.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Param is one of a request that may change the answer.
type Param struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Message is one of a conversation.
type Message struct {
	Role  string `json:"role"` // "system", "user", "assistant", "tool"
	Parts []Part `json:"parts"`
}

// Part is a part of a message.
type Part struct {
	Type string          `json:"type"` // "text", "thinking", "call", "result", "image", "other"
	Text string          `json:"text"` // of an image that a page can show base64, "" of any other: it stands in the request
	ID   string          `json:"id"`   // of the call; of an image the digest of its base64
	Name string          `json:"name"` // of the tool
	Args json.RawMessage `json:"args"` // of the call
	Fail bool            `json:"fail"` // a result that says so
	Mime string          `json:"mime"` // of an image: where it has Text what its first bytes say
	More int64           `json:"more"` // bytes of Text that were left out
}

// Chunk is a piece of a streamed answer.
type Chunk struct {
	At   int64  `json:"at"` // ms after the request
	Size int64  `json:"size"`
	Text string `json:"text"` // what it adds for a reader; "" for nothing
}

// Payload names bytes: those of Digest at run/ID/payload/DIGEST, or Text itself, and then no digest.
type Payload struct {
	Digest string  `json:"digest"` // with a dot and an encoding behind it of what came compressed: the bytes are those decoded; or another name
	Size   int64   `json:"size"`   // as it lies on the disk
	Text   *string `json:"text"`
}

// Files is run/ID/files.json: what a list of them needs, by path.
type Files struct {
	Block int `json:"block"` // rows in a run/ID/files/B.json
	FileColumns
}

// FileColumns are files and how many bytes stood there when, as columns: FileGone for none, FileBytes where they are not kept, as of a link.
type FileColumns struct {
	Path   []string `json:"path"`
	Before []int64  `json:"before"` // the run; FileGone where that is not known too
	Count  []int    `json:"count"`  // of changes
	At     []int64  `json:"at"`     // of each change, path by path: ms behind the one before
	Size   []int64  `json:"size"`   // of each change: from then on

	last int64 // of At, ms after the start
}

// What stands for no bytes.
const (
	FileGone  = -1
	FileBytes = -2
)

// FileBlock is run/ID/files/B.json: what is known of some files, in the order of the list.
type FileBlock struct {
	Files []File `json:"files"`
}

// File is a path and what stood there when.
type File struct {
	Path   string      `json:"path"`
	Before *FileState  `json:"before"` // null where nothing stood there, or that is not known
	States []FileState `json:"states"`
}

// FileState is what stood at a path from a record on.
type FileState struct {
	Seq    uint64   `json:"seq"`
	At     int64    `json:"at"` // ms after the start
	Gone   bool     `json:"gone"`
	Mode   string   `json:"mode"`
	Bytes  *Payload `json:"bytes"`  // null where they are not kept
	Target string   `json:"target"` // of a symbolic link
	Causes []Cause  `json:"causes"`
}

// Cause is what made a file change.
type Cause struct {
	What     string `json:"what"` // "turn", "spawn", "server"
	Seq      uint64 `json:"seq"`
	Title    string `json:"title"`
	Recorded bool   `json:"recorded"` // false: inferred from time and names
	Why      string `json:"why"`
}

// Terminal is run/ID/terminal.json: what a terminal showed, as the player of package picture takes it.
type Terminal struct {
	Cols   int             `json:"cols"`
	Rows   int             `json:"rows"`
	Start  int64           `json:"start"`  // ms after the start of the run
	Events json.RawMessage `json:"events"` // the list of the records of its data; times are ms after Start, pauses as they were
}

// Report is run/ID/report.json: the last replay held against its recording.
type Report struct {
	Fidelity *fidelity.Report `json:"fidelity"`
	Replay   string           `json:"replay"` // the id of the replay's own documents (run/ID/…); "" where they are not kept
	First    *uint64          `json:"first"`  // seq of the first divergence
	Other    bool             `json:"other"`  // another program ran than the recording's
	At       int64            `json:"at"`     // Unix epoch ms
}

// Comparison is compare.json.
type Comparison struct {
	*compare.Comparison
	Runs []string `json:"runs"` // ids, in the order of the rows
}

// Found is what search.json?run=ID&q=TEXT gives.
type Found struct {
	Hits []Hit `json:"hits"`
	More bool  `json:"more"`
}

// Hit is a place where a text was found.
type Hit struct {
	Run   string `json:"run"`
	Seq   uint64 `json:"seq"`
	Where string `json:"where"` // "request", "response", "stdout", …
	Text  string `json:"text"`  // around it
	At    int    `json:"at"`    // where in Text it begins, in UTF-16 units
	Len   int    `json:"len"`
}

// DaemonView is daemon.json: the runs that a daemon traces, and what waits there for a person.
type DaemonView struct {
	Name    string         `json:"name"`  // its URL
	Error   string         `json:"error"` // why it cannot be asked
	Runs    []DaemonRun    `json:"runs"`  // newest first
	Intents []DaemonIntent `json:"intents"`
}

// DaemonRun is a run in a daemon's list.
type DaemonRun struct {
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Intent  string `json:"intent"`
	Status  string `json:"status"`
	Started int64  `json:"started"` // Unix epoch ms
	Ended   int64  `json:"ended"`   // 0 while it goes on
	Turns   int    `json:"turns"`
}

// DaemonIntent waits for a decision.
type DaemonIntent struct {
	ID        string         `json:"id"`
	Agent     string         `json:"agent"`
	Run       string         `json:"run"`
	Actions   []DaemonAction `json:"actions"`
	Reason    string         `json:"reason"` // of the policies that ask
	Policies  []string       `json:"policies"`
	Deadline  int64          `json:"deadline"` // Unix epoch ms
	Escalated string         `json:"escalated"`
}

// DaemonAction is what an intent would do. Nobody is shown values.
type DaemonAction struct {
	Tool   string   `json:"tool"` // or the type of what calls none
	Keys   []string `json:"keys"` // of the parameters
	Digest string   `json:"digest"`
}

// DaemonTrace is daemon/run/ID.json: a run turn by turn.
type DaemonTrace struct {
	Run       DaemonRun    `json:"run"`
	Recording string       `json:"recording"` // the id of the recording that was made beside it
	Outcome   string       `json:"outcome"`   // in words
	Turns     []DaemonTurn `json:"turns"`
}

// DaemonTurn is one turn of a trace.
type DaemonTurn struct {
	Index  int           `json:"index"`
	Tool   string        `json:"tool"`
	Prompt string        `json:"prompt"`
	Params []DaemonField `json:"params"`
	Output []DaemonField `json:"output"`
	Mark   string        `json:"mark"` // "exit 1", "rejected", …; "" where nobody judged
	Bad    bool          `json:"bad"`
	Why    string        `json:"why"` // it was rejected or failed
}

// DaemonField is a named part of what a tool was given or gave; its text may be cut.
type DaemonField struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Size int    `json:"size"` // bytes of the whole text
}
