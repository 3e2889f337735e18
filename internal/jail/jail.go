package jail

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
)

// Config says what runs inside and what it sees. Path, Argv and Dir are needed. Every path is absolute and is one of the
// host unless it says otherwise.
type Config struct {
	Path string   // the program's file, as seen inside
	Argv []string // its arguments, the name it is called by first
	Env  []string // its whole environment, NAME=VALUE
	Dir  string   // its working directory, as seen inside

	// The program's streams; nil is /dev/null. The caller closes its copies after Start.
	Stdin, Stdout, Stderr *os.File
	// TTY is the stream (0, 1 or 2) that is the slave of a PTY and becomes the controlling terminal. -1 is none; so is
	// a stream that is no terminal. That its other end was closed is told to nobody inside but by Signal.
	TTY int
	// Background says that the program starts without its terminal: see Jail.Foreground.
	Background bool

	Hostname string   // the host's own when empty
	Umask    *int     // nil is the caller's own
	Ports    []uint16 // TCP ports with a listener beside 80 and 443; at most 200

	Writable []string        // directories that the program may change on the host
	Overlays []mount.Overlay // directories that it may change without the host's changing
	Masks    []string        // files and directories that look empty inside, but for a .gitignore of *; those that do not exist are skipped
	Files    []mount.File    // files that exist inside only

	// Watch is told of calls that change files below Writable and Overlays; nil for nobody. A FIFO that stood when the run began, which is now
	// where Began is zero, is the host's.
	Watch Watcher
	Began time.Time
	// Spawns is told of programs that start inside and that somebody talks with; nil for nobody.
	Spawns SpawnWatcher
	// Inputs answers for wall time and randomness; nil leaves both to the kernel. Shifted says that its wall time is not the
	// kernel's: waits for a moment of it are shifted, and the ends of processes may be held up.
	Inputs  Inputs
	Shifted bool

	// Prepared is gone on with where it is nobody's yet; nil starts the jail from the beginning.
	Prepared *Prepared

	Log *slog.Logger // nil is silent
}

// What a Config and a Jail speak of, in the words of the rooms that decide it.
type (
	// An Overlay is a layered directory that a Config names.
	Overlay = mount.Overlay
	// A File is a file of the caller's that a Config names.
	File = mount.File

	// An Exit is how a program ended.
	Exit = process.Exit
	// An Ended is how any process did.
	Ended = process.Ended
	// A Refusal is one attempt to reach what the jail does not let its program reach.
	Refusal = connect.Refusal

	// A Watcher is told of each FileCall.
	Watcher = changes.Watcher
	// A FileCall is a call that may change files.
	FileCall = changes.Call

	// A SpawnWatcher is told of each Spawn, and answers it.
	SpawnWatcher = spawns.Watcher
	// A Spawn is a program that is about to be executed.
	Spawn = spawns.Spawn
	// A SpawnAnswer says what becomes of a Spawn.
	SpawnAnswer = spawns.Answer
	// Streams are what stands at stdin, stdout and stderr.
	Streams = spawns.Streams

	// Inputs makes a Source for each Program.
	Inputs = inputs.Sources
	// A Source answers one process in the kernel's place.
	Source = process.Source
	// A Program is what a process executes.
	Program = process.Program
	// A Filler fills in random bytes.
	Filler = process.Filler
	// An ExecError says that the program could not be started inside.
	ExecError = step.ExecError
)

// NoListener is the Reason of a connection to a port on which no program of the jail listens.
const NoListener = network.NoListener

// InputGap is what texts of Jail.NotCovered begin with that are about Inputs.
const InputGap = inputs.Gap

// A Check is one thing that the jail needs, tried for real by Probe. Cost says what is lost without it.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Cost   string `json:"cost,omitempty"`
	// Evidence says that programs can be recorded and replayed without it: less is seen then.
	Evidence bool `json:"evidence,omitempty"`
}

// PortOf makes of random bytes one of the ports that Linux chooses from by itself.
func PortOf(random Filler) uint16 {
	const first, last = 32768, 60999
	var b [4]byte
	random.Fill(b[:])
	return uint16(first + binary.LittleEndian.Uint32(b[:])%(last-first+1))
}

// FileAgain is the recorded struct statx of a file, which are answers of Asked, where that has its owner, mode and size now, and else that of
// now. How long a directory is says nothing: an overlay's is that of its upper layer alone. Where written says that its times are looked after, a file was written when it says now.
func FileAgain(was, now []byte, written bool) []byte {
	if len(was) != len(now) || lasting(was) != lasting(now) {
		return now
	}
	const mode, mtime, end = 28, 112, 124
	if written && binary.NativeEndian.Uint16(now[mode:])>>12 == 8 { // a regular file
		was = slices.Concat(was[:mtime], now[mtime:end], was[end:])
	}
	return was
}

// lasting is what does not change by itself.
func lasting(b []byte) [3]uint64 {
	mode, size := binary.NativeEndian.Uint16(b[28:]), binary.NativeEndian.Uint64(b[40:])
	if mode>>12 == 4 { // a directory
		size = 0
	}
	return [3]uint64{binary.NativeEndian.Uint64(b[20:]), uint64(mode), size}
}

// ErrUnavailable is what every *UnavailableError is: this system cannot make the jail.
var ErrUnavailable = errors.New("jail unavailable")

// ErrNotEntered is returned by Start in a process whose main did not call Enter first: starting its executable again
// would run main again.
var ErrNotEntered = errors.New("jail: main did not call Enter first")

// An UnavailableError says why this system cannot make the jail, and what would change that.
type UnavailableError struct {
	Reason string
	Remedy string // empty where there is none
}

// Error implements error.
func (e *UnavailableError) Error() string {
	if e.Remedy == "" {
		return "jail unavailable: " + e.Reason
	}
	return "jail unavailable: " + e.Reason + " (" + e.Remedy + ")"
}

// Is makes errors.Is(err, ErrUnavailable) hold.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }
