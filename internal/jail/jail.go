package jail

import (
	"log/slog"
	"net/netip"
	"os"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
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

	// Watch is told of calls that change files below Writable and Overlays; nil for nobody.
	Watch Watcher
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

type (
	// An Overlay is a layered directory that a Config names.
	Overlay = mount.Overlay
	// A File is a file of the caller's that a Config names.
	File = mount.File
)

// An Exit is how the program ended: Signal is 0 unless a signal ended it.
type Exit struct {
	Code   int
	Signal syscall.Signal
}

// A Refusal is one attempt of the program to reach what the jail does not let it reach. Addr and Port are zero where the
// attempt got no further than a socket call.
type Refusal struct {
	Proto  string // tcp, udp, unix, or the socket's family and type: "vsock stream", "inet raw"
	Path   string // of a Unix socket, absolute
	Addr   netip.Addr
	Port   uint16
	Reason string
	By     Source // who asked for a Unix socket; nil where that is not known
}

// NoListener is the Reason of a connection to a port on which no program of the jail listens.
const NoListener = "tcp: nothing listens on this port inside"

// A Check is one thing that the jail needs, tried for real by Probe. Cost says what is lost without it.
type Check struct {
	Name   string
	OK     bool
	Detail string
	Cost   string
	// Evidence says that programs can be recorded and replayed without it: less is seen then.
	Evidence bool
}
