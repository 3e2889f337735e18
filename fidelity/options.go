package fidelity

import (
	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// LaneOptions are what CompareLanes needs beside two tapes. The zero value works.
type LaneOptions struct {
	Watch           []string          // paths outside the work tree that gate too, as the tape writes them: ~/x, $TMP/x, /x
	AgentFiles      []string          // of the same form: what an agent logs of itself, which does not gate
	Crossed         int               // answers that replay served to a request of another key, or twice
	Masked          map[string]int    // masks that were used, by name
	Notes           []string          // notes of the caller, put before those found here
	NotCompared     []string          // what was asked for and could not be looked at
	NotCovered      []string          // what the recordings never looked at: a verdict says nothing of it
	Usual           map[string]string // short forms of what in NotCovered all recordings leave out, for the text
	ProgramReplaced bool              // replay ran another program: its path and arguments are a note

	// Sides are what messages call the two recordings, such as A and B. Empty stands for what was recorded and its replay.
	Sides [2]string
	// Masks mask the texts of each side as masks are set now: one argument, path or line of output, so that two of them compare,
	// and each place at which two records differ though their digests agree. nil masks nothing.
	Masks [2]*masks.Masker
	// Payload returns the bytes of a payload of one side, to explain a divergence with. nil explains with what stands in the records.
	Payload func(p *tape.Payload, s Side) ([]byte, error)
	// Request returns of the body of a model call, as it was recorded, what its digests are of: the matchable surface and the
	// parameters, both JSON; of any other request the body as it compares, and nil. nil explains with the body as it stands.
	Request func(ex *tape.Exchange, body []byte) (surface, params []byte)
	// Answer returns an answer without its Content-Encoding. nil takes it as it stands.
	Answer func(ex *tape.Exchange, body []byte) []byte
	// InCallOrder returns a request to a model with the results of calls of one turn in the order of these calls; nil where there
	// are no two. A nil function compares them as they stand.
	InCallOrder func(ex *tape.Exchange, body []byte) []byte
	// Side is what a project says of paths. nil says nothing.
	Side *SideRules
	// AnswerSurface returns of the answer of a model what two of them compare by, where their bytes differ: decoded, masked,
	// and numbered what a provider makes up for every answer, such as the ids that pair calls of tools with results. nil
	// for an answer that compares by its bytes. A nil function compares all of them by their bytes.
	AnswerSurface func(ex *tape.Exchange, body []byte) []byte
	// RequestBody returns the body of a request without its Content-Encoding. nil takes it as it stands.
	RequestBody func(ex *tape.Exchange, body []byte) []byte
	// Remasked says that the digests of the tapes were taken under other masks than Masks and Request use.
	Remasked bool
	// Exact says that both runs were given the same time and randomness: what a mask of such would hide is a divergence.
	Exact bool
	// Times are the wall times that each run read, in ns since 1970. What runs side by side reads the clock in another order each
	// time: a time of the one that stands where the other has one of its own is a note.
	Times [2][]int64
	// OwnTimes says that the replay read times beyond the recorded ones: two times are in doubt then, and files outside the work tree do not gate.
	OwnTimes bool
	// New reports whether a value stands in what is new in the program of the replay, and so is no measurement. nil stands for no.
	New func(value string) bool
	// SameSecrets says that placeholders of both tapes were made with one key, and stand for one secret where they are equal.
	SameSecrets bool
	// Headers says of the header of a request whether it compares. nil compares none.
	Headers func(name string) bool
	// Format1 says that a recording is of format 1, whose tape tells neither directories, FIFOs, whole modes nor attributes of files,
	// nor names that were looked up, Unix sockets and variables of MCP servers: they do not compare.
	Format1 bool
	// Held reports whether the replay found what this file_write of the recording left, and left it so: it wrote the same
	// again, or nothing, which no snapshot tells apart. Such a write, where the replay has no record of its path, is a note.
	// nil stands for no.
	Held func(*tape.Record) bool
	// SameStart says that the replay ran the recorded program with the recorded arguments, environment (but for secrets),
	// stdin and work tree: a request that differs before all else holds something that was new in that run.
	SameStart bool
	// Unseen are the files that the command line names of which nothing tells whether they are as recorded.
	Unseen []string
	// Inputs are what both runs were given and what differs between them: a divergence may follow from one.
	Inputs []Input
	// LongFiles are the files of each side that are too large for a tape, by path, with what tells two of them apart.
	LongFiles [2]map[string]string
	// Screens are what the runs' terminals showed. nil stands for nothing that is known.
	Screens *Screens
}

// An Input is something that two runs were given in different forms: a file of the work tree, stdin, a variable.
type Input struct {
	Name string // for people: "the file notes.txt, which the runs found different"
	// Short is the name in a list of several: "the file notes.txt". Empty is Name.
	Short string
	// Chance says that it may differ by chance from run to run, as a variable of the session does.
	Chance bool
	// Bytes returns what it was on a side; nothing where it was not there. It is called to explain, and to tell what a program was
	// given from what differs by chance.
	Bytes func(s Side) ([]byte, error)
}

// masked returns a text without its volatile parts.
func (o *LaneOptions) masked(s string) string {
	b := scrub.Renumber([]byte(s))
	if m := o.Masks[Recorded]; m != nil {
		b = m.Mask(b)
	}
	return string(b)
}

// SideRules are what a project says of paths: whether they gate, or are side traffic.
type SideRules = sidetraffic.Rules
