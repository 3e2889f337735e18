// Package deck records, replays and compares the runs of one unmodified program.
//
// Record runs a program in the jail with every axis on and leaves a recording (package recording): a directory that holds the
// event tape, its blobs, the work tree as the run found it and what the run changed there. Replay runs the program again as a
// closed world, over an overlay of that tree, with every answer taken from the tape, and compares the two tapes lane by lane.
// Fork is a Replay that leaves its tape at some point, and becomes a recording of its own (packages deck/fork, axis/exchange's Fork).
// Where there can be no jail both may run the program outside of it, with a proxy: the Proxy of their options says what
// that costs, and so does every such recording and verdict. ReplayTape runs any program against a bare tape, which has
// exchanges alone, and compares those.
// Deck is where the axes meet: it wires them to the jail; matching, comparing, masking and the formats belong to the packages
// that it uses. What is done with a recording lies below it, and knows nothing of runs.
//
// A run that cannot be recorded does not go on as if it were: the first write to the recording that fails ends it (session.fail).
// Nothing more gets on the tape, every exchange is cut, the program is killed with its world, and Record returns a *WriteError;
// the recording stays unfinished. So does that of a jail that is ended from outside. docs/reference/limits.md lists what may fail and what
// may be killed, package integration/kill tries it.
//
// Goals: nothing of the program is changed, nothing gets out of the jail on replay, what was not covered is said. Not goals: several
// programs in one recording, remote hosts.
//
// A program that uses this package calls Enter first thing in main (a test in TestMain): the jail starts its own
// executable again as its init.
package deck

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// Streams are the caller's ends of the program's standard streams. A nil Stdin is empty, a nil Stdout or Stderr is
// thrown away after it was recorded. A stream that is an *os.File of a terminal makes the program see a terminal.
type Streams struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// RecordOptions say what Record runs and what of it is let through. The zero value of every field but Argv works.
type RecordOptions struct {
	Argv []string // the program and its arguments; the program is looked up in the PATH of Env
	Dir  string   // working directory; the process's own when empty
	Env  []string // NAME=VALUE; the process's own when nil

	Streams
	Terminal terminal.Mode
	Signals  <-chan os.Signal // passed on to the program; nil for none

	Output    string            // directory of the recording; a new one in the work tree's library when empty
	Tree      string            // the work tree; found from Dir when empty
	Upstreams map[string]string // NAME[:PORT] to the URL that answers for it, before those of tapedeck.yaml
	// Configured is told, before the program starts, of each upstream of tapedeck.yaml that holds; nil is not told.
	Configured  func(name, url string)
	Writable    []string // directories that the program may change beside work tree, HOME and TMP
	Passthrough []string // hosts whose TLS is let through unread
	Isolated    bool     // the program's writes stay off the disk; Apply puts the work tree's there
	// Proxy runs the program outside the jail, for systems that cannot make one: recorded is what heeds HTTP_PROXY, and
	// nothing is confined. The recording lists what that does not cover.
	Proxy bool
	// RealTime leaves wall time and randomness to the kernel: they are not recorded, and a replay has others.
	RealTime bool
	Sync     bool // fsync at every barrier
	// NoSeal leaves the recording unsealed. Else it is sealed at the end, with the key in ConfigDir, which is made on first use.
	NoSeal bool

	// Begun is told the directory of the recording before the program starts, for who follows it; nil is not told.
	Begun func(dir string)
	// Withheld names variables of Env that the program does not get. What keys stand in them are secrets all the same.
	Withheld []string
	// Daemon is told the run while it goes on; nil is none.
	Daemon *daemon.Options

	ConfigDir string       // where the keys lie; the user's configuration directory when empty
	Log       *slog.Logger // nil is silent
	// Progress is told how far the snapshot of the work tree has come, and that it is done before the program starts.
	Progress func(files int, bytes int64, done bool)
	// Hiding is told how much has been looked through, after the program has ended, for secrets that became known late: files
	// and records together. It is not called where there are none.
	Hiding func(items int, bytes int64, done bool)
	// Sealing is told how much of the recording has been hashed, after the program has ended.
	Sealing func(done, total int64)
}

// ReplayOptions say how Replay runs a recording again. The zero value works.
type ReplayOptions struct {
	Argv []string // another program to run against the same tape; the recorded one when empty
	Env  []string // where secrets are taken from; the process's own when nil

	Streams // Stdin is not read: the program gets the recorded one
	Signals <-chan os.Signal

	Mode fidelity.Mode // semantic when zero
	// Watch lists paths that gate though files there do not by themselves: outside the work tree, ignored, Git's own. Absolute,
	// seen from the recorded working directory, or ~/… and $TMP/…; patterns of path.Match too.
	Watch []string
	// Config is the directory whose tapedeck.yaml says what compares, in place of that of the recorded work tree; "" is that one.
	Config string
	Speed  float64 // 0 answers without waiting, 1 in real time, n n times as fast
	// Proxy runs the program outside the jail, in a copy of the recorded work tree: what heeds HTTP_PROXY is answered from
	// the tape, and whatever does not reaches the real network. The verdict notes it.
	Proxy bool
	// Screens compares what the program's terminal showed, when something was typed and at the end, in the place of the bytes
	// that drew it; keys are typed once the screen shows what it showed.
	Screens bool
	// TreeNow runs the program over the work tree as it is on the disk now, in place of the recorded one, in a layer or a
	// copy all the same: for asking whether an agent that lives in its work tree still does what it did.
	TreeNow bool
	// TreeAt is where the work tree lies on this machine's disk, where that is not the recorded path: a fresh checkout of it, say. The
	// program sees it at the recorded path. "" is that path.
	TreeAt string
	// Own lists files that the caller writes to meanwhile, as a report below the work tree. They are none of the program's, as those are
	// that Stdout and Stderr lead to.
	Own []string
	// Patience is how much longer than while recording a replay waits for what does not come: an answer of a tool server by what its
	// program does not say before it, keys by the screen that they were typed at. 0 is 2 s and 5 s.
	Patience time.Duration
	// Limit is how long the program may take; one that takes longer is ended, and the verdict says so. 0 is as long as it likes, unless it waits
	// for what a refused request ended: nothing happens for a minute, and for as long as the recorded run took.
	Limit time.Duration
	Keep  string // a directory that gets the work tree as the replay left it; must not exist or be empty
	Out   string // a directory that gets the replay as a recording of its own; none when empty

	// Starting is called once all is restored and read, before the program starts; nil is not.
	Starting func()

	ConfigDir string
	Log       *slog.Logger
}

// A Check is one thing that the jail needs, tried for real. Cost says what is lost without it.
type Check = jail.Check

// A Diagnosis is what Diagnose found. Works says that programs can be recorded and replayed here.
type Diagnosis struct {
	Works  bool     `json:"works"`
	Checks []Check  `json:"checks"`
	Notes  []string `json:"notes"`
	// NotHeld is what a hostile program can reach although everything works.
	NotHeld []string `json:"not_held"`
}

// Diagnose tries every part of the jail.
func Diagnose() *Diagnosis { return diagnosis(jail.Probe()) }

func diagnosis(checks []jail.Check) *Diagnosis {
	d := &Diagnosis{Works: true, Checks: checks}
	for _, c := range checks {
		d.Works = d.Works && (c.OK || c.Evidence)
	}
	if !d.Works {
		d.Notes = []string{"`record --proxy` and `replay --proxy` do without the jail, and cover what heeds HTTP_PROXY"}
		if outsideAvailable() != nil {
			d.Notes = []string{"programs can be recorded and replayed inside WSL 2; recordings can be read, checked and compared here"}
		}
		return d
	}
	d.NotHeld = notHeld
	return d
}

// notHeld is what no jail of ours can hold, each said in docs/security.md too, where integration/escape tries it.
var notHeld = []string{
	"a FIFO of this machine that a program may open can be read, and written to where it was made after the start: under HOME, TMP and the " +
		"work tree while recording, elsewhere on replay too; run untrusted programs as a user that may not",
	"the program reads what you may read, and while recording may send it to any host by HTTP: what it sent is on the tape",
	"it may lock files that it may read, and shares CPU, memory, disk and your user's limits with you",
	"bugs of the kernel: see docs/security.md for what is tried, and what the jail is not for",
}

// ErrUnavailable is wrapped by every error that says that the jail cannot be made here, with the reason.
var ErrUnavailable = jail.ErrUnavailable

// Enter must be the first call of main, and of TestMain where a test records: in a process that the jail started it does
// the jail's work and never returns, in any other it returns at once.
func Enter() { jail.Enter() }

// Available reports whether the jail can be made here, tried once a process. The error wraps ErrUnavailable.
func Available() error { return jail.Available() }

// AvailableOutside reports whether programs can be run outside the jail on this system.
func AvailableOutside() error { return outsideAvailable() }
