// Package recording is the directory of a recording: its manifest, the paths in it, who is at work on it, the masks and the key
// that it was made with. Package deck makes recordings; the packages beside this one list, seal, verify, follow them.
//
// The life of a recording:
//
//	recording.json {"state":"recording"}      written first
//	tree.json, blobs                          the work tree, before the program starts
//	run.tape, run.tape.cas/, run.tape.part/   as the run goes
//	terminal/                                 as the run goes, where the program has a terminal
//	workspace.diff, found-*.json              after the program has ended
//	tree.json, run.tape, again                where a secret became known after it was written
//	session.jsonl                             derived from the tape, where a model was called
//	recording.json {"state":"finished"}       replaces the first one atomically: the recording is whole, and unsealed
//	seal.tiles/, seal.json                    over all of that and the recording.json to come, unless NoSeal
//	recording.json {"sealed":true}            replaces it atomically, last
//	run.seed                                  where it was packed with that: 64 hex digits, the seed of its random numbers
//
// found-*.json have the form of tree.json (package files): what the run found at the paths that it changed in HOME, the temporary
// directory and other places that it may write to, and at those of the work tree that Git ignores. They are partial: what they do
// not name was not changed, and a replay shows it as it is then.
//
// A recorder that is killed at any moment leaves what stands above that moment, each file whole or, the tape, whole up
// to its last record. A tape is never found without its header. So a recording is unfinished, or finished and says that it is not
// sealed, or sealed; package verify passes each of these, and package sealing seals the second. A sealing that fails leaves the second.
//
// What lies in temporary directories (layers, certificates, what is unpacked to be looked at) is locked by the process that made
// it, and goes with the next command where that was killed (library.Sweep).
//
// recording.json is a Manifest, whose fields say what an absent key stands for. A key that is not known is passed by.
//
// Goals: whoever opens a recording trusts nothing that it says; nothing of a tape is held in memory. Not goals: making recordings,
// judging them.
package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The files of a recording.
const (
	ManifestName = "recording.json"
	TapeName     = "run.tape"
	PartName     = "run.tape.part"
	TreeName     = "tree.json"
	DiffName     = "workspace.diff"
	TerminalName = "terminal" // the cassette of what the program's terminal showed
)

// MaxManifest bounds recording.json, in bytes: an environment and an argument list may be megabytes, not more.
const MaxManifest = 64 << 20

// A Recording is a recording on disk, opened for reading. Nothing of the tape is held in memory.
type Recording struct {
	Dir      string // absolute, and no link
	Manifest *Manifest
}

// Open opens the recording in dir. The error wraps ErrNotRecording where dir holds none.
func Open(dir string) (*Recording, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// What walks a directory does not enter one that is a link: it would find nothing there, and take that for an answer.
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	m, err := ReadManifest(abs)
	if err != nil {
		return nil, err
	}
	return &Recording{Dir: abs, Manifest: m}, nil
}

// OpenHead is Open for who looks at many, by paths that are absolute and no links: its Manifest has what headOf reads.
func OpenHead(dir string) (*Recording, error) {
	m, err := readManifest(dir, headOf)
	if err != nil {
		return nil, err
	}
	return &Recording{Dir: dir, Manifest: m}, nil
}

// Finished reports whether the recorder came to its end.
func (r *Recording) Finished() bool { return r.Manifest.State == StateFinished }

// TapePath is the path of the event tape.
func (r *Recording) TapePath() string { return filepath.Join(r.Dir, TapeName) }

// DiffPath is the path of the Git patch of what the run changed in the work tree.
func (r *Recording) DiffPath() string { return filepath.Join(r.Dir, DiffName) }

// PartDir is the directory of answers that were still streaming when the recorder was killed.
func (r *Recording) PartDir() string { return filepath.Join(r.Dir, PartName) }

// OpenTape opens the event tape. A torn last line, which is what a crash leaves, is dropped.
func (r *Recording) OpenTape() (*tape.Tape, error) {
	return tape.Open(r.TapePath(), &tape.ReaderOptions{Tolerant: true})
}

// OpenStdin opens what the program was given, whose blob is in store; nil where that was nothing, or is not known because the recorder was
// killed.
func (r *Recording) OpenStdin(store cas.Store) (io.ReadCloser, error) {
	p, err := tape.ParsePayload(r.Manifest.Stdin)
	if p == nil && err == nil {
		return nil, nil
	}
	var in io.ReadCloser
	if err == nil {
		in, err = p.Open(store)
	}
	if err != nil {
		return nil, fmt.Errorf("recorded stdin: %w", err)
	}
	return in, nil
}

// Records reads the tape, as often as it is ranged over.
func (r *Recording) Records() iter.Seq2[*tape.Record, error] { return RecordsOf(r.TapePath()) }

// RecordsOf is Records for the tape at path.
func RecordsOf(path string) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		t, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
		if err != nil {
			yield(nil, err)
			return
		}
		defer t.Close()
		for rec, err := range t.Records() {
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Parts lists the answers that were still streaming when the recorder was killed, each as an exchange with the error
// "recorder ended". A finished recording has none.
func (r *Recording) Parts() ([]*exchange.Part, error) { return exchange.Parts(r.PartDir()) }

// Store opens the blobs.
func (r *Recording) Store() (*cas.Dir, error) { return cas.OpenDir(r.TapePath()+".cas", nil) }

// Tree reads the work tree as the run found it: nil, without an error, where no snapshot was taken.
func (r *Recording) Tree() (*files.Tree, error) { return ReadTree(filepath.Join(r.Dir, TreeName)) }

// ReadTree reads a tree of a recording, nil where there is none.
func ReadTree(path string) (*files.Tree, error) {
	f, err := regular.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := files.DecodeTree(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return t, nil
}

// OpenIfRecording opens path as a recording where it is a directory, and returns nil where it is a file: a bare tape.
func OpenIfRecording(path string) (*Recording, error) {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return nil, err
	}
	return Open(path)
}

// OpenEither opens what lies at path with its tape: a recording, or, where rec is nil, a bare tape. A torn last line is dropped.
func OpenEither(path string) (rec *Recording, t *tape.Tape, err error) {
	if rec, err = OpenIfRecording(path); err != nil {
		return nil, nil, err
	}
	if rec != nil {
		path = rec.TapePath()
	}
	t, err = tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	return rec, t, err
}

// Unfinished says what cannot be compared of a recording whose recorder was killed, or could not go on.
func (r *Recording) Unfinished() []string {
	if r.Finished() {
		return nil
	}
	return []string{r.Dir + " is unfinished: its recorder did not come to its end, and what the program did after that is not on the tape"}
}

// TerminalPath is the directory of the cassette of what the program's terminal showed; nothing is there where it had none.
func (r *Recording) TerminalPath() string { return filepath.Join(r.Dir, TerminalName) }

// OpenTerminal opens that cassette; nil, without an error, where there is none. Of an unfinished recording it opens what is whole.
func (r *Recording) OpenTerminal() (*cassette.Reader, error) {
	return OpenTerminal(r.TerminalPath(), !r.Finished())
}

// OpenTerminal opens the cassette in dir, or with partial what of it is whole; nil, without an error, where there is none.
func OpenTerminal(dir string, partial bool) (*cassette.Reader, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	t, err := cassette.Open(dir, &cassette.OpenOptions{Partial: partial, Lazy: !partial})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return t, nil
}

// A Followed is a directory whose changes are recorded.
type Followed struct {
	Dir    string
	Prefix string // of its paths on the tape
	Name   string // of the file that keeps what the run found there
}

// FoundPrefix begins the names of the files that keep what a run found at the paths that it changed.
const FoundPrefix = "found-"

// Followed lists the directories whose changes are recorded, none twice. They need not exist. extra are those that the run
// could change beside the roots.
func (r *Roots) Followed(extra []string) []Followed {
	all := []Followed{
		{r.Tree, "", "tree"}, {r.Home, "~/", "home"}, {r.Temp, "$TMP/", "tmp"}, {Resolved("/tmp"), "/tmp/", "slash-tmp"},
	}
	for i, dir := range extra {
		all = append(all, Followed{dir, dir + "/", fmt.Sprintf("%d", i)})
	}
	var out []Followed
	seen := map[string]bool{"": true, "/": true}
	for _, dir := range r.Absent {
		seen[dir] = true
	}
	for _, f := range all {
		if !seen[f.Dir] {
			seen[f.Dir] = true
			f.Name = FoundPrefix + f.Name + ".json"
			out = append(out, f)
		}
	}
	return out
}

// Found reads what the run found at the paths that it changed and that tree.json does not have, by directory.
func (r *Recording) Found() (map[string]*files.Tree, error) {
	out := make(map[string]*files.Tree)
	for _, f := range r.Manifest.Roots.Followed(r.Manifest.Writable) {
		t, err := ReadTree(filepath.Join(r.Dir, f.Name))
		if err != nil {
			return nil, err
		}
		if t != nil {
			out[f.Dir] = t
		}
	}
	return out, nil
}

// allTrees reads everything that the run found.
func (r *Recording) allTrees() ([]*files.Tree, error) {
	var out []*files.Tree
	t, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if t != nil {
		out = append(out, t)
	}
	found, err := r.Found()
	return slices.AppendSeq(out, maps.Values(found)), err
}

// MissingBlobs lists what the recording names and store does not hold. Whether the bytes hold is verify's to say.
func (r *Recording) MissingBlobs(store cas.Store) ([]string, error) {
	lost := tape.LostIn(store)
	f, err := r.OpenTape()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for rec, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		lost.Record(rec)
	}
	trees, err := r.allTrees()
	if err != nil {
		return nil, err
	}
	for _, t := range trees {
		for _, e := range t.Entries {
			if !e.Digest.IsZero() {
				lost.Blob(e.Digest, e.Path)
			}
		}
	}
	missing := lost.List()
	if f.Torn() && r.Finished() {
		missing = append(missing, "the tape of a finished recording ends in a torn line")
	}
	return missing, nil
}

// Totals are what a recording comes to, in a few numbers. Package account adds them up; recording.json keeps them, so that a list of
// recordings need not read their tapes.
type Totals struct {
	Models       []string `json:"models"` // that were asked, in order
	Turns        int      `json:"turns"`  // answers of models in conversations
	Tools        int      `json:"tools"`  // calls of tools that models asked for
	Failed       int      `json:"failed"` // calls of models that none answered
	Spawns       int      `json:"spawns"` // processes beside the program
	Files        int      `json:"files"`  // of the work tree, changed
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CachedTokens int64    `json:"cached_tokens"` // of InputTokens, read from a cache
	Uncounted    int      `json:"uncounted"`     // answers that do not say what they used
	CostUSD      *float64 `json:"cost_usd"`      // null where that of one answer is not known
	PricedUSD    float64  `json:"priced_usd"`    // of the answers whose cost is known
	Unpriced     []string `json:"unpriced"`      // models without a price, ten at most
	PricesAsOf   string   `json:"prices_as_of"`  // date of the table
	DurationMS   int64    `json:"duration_ms"`
}

// Cost is what the answers cost, for people: "$0.0042", "$0.0042 + ?" where that of some is not known, "unknown" where it is of none.
func (t *Totals) Cost() string {
	switch {
	case t.CostUSD != nil:
		return Dollars(*t.CostUSD)
	case t.PricedUSD > 0:
		return Dollars(t.PricedUSD) + " + ?"
	}
	return "unknown"
}

// Dollars has four decimals; less than the last of them is said to be less.
func Dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	}
	return "$" + strconv.FormatFloat(usd, 'f', 4, 64)
}
