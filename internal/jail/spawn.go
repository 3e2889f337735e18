package jail

import "os"

// A SpawnWatcher is told of programs that are about to start and that somebody inside talks with through their standard
// input and output. What it sees is evidence, never confinement.
type SpawnWatcher interface {
	// Spawning is told of an execve while it waits; the call may still fail. It is called by one goroutine at a time and
	// must not block for long: every other notified call inside waits. nil lets the call go on as it is. s and what was
	// taken from it stay valid.
	Spawning(s *Spawn) *SpawnAnswer
}

// A Spawn is one execve of a process that somebody talks with. See "Spawns" in the package comment for which those are.
type Spawn struct {
	PID  int      // of the process, as the recorder's PID namespace knows it
	Path string   // the program, as the call spells it; what stands there may not exist
	Argv []string // at most 1,024, of 128 KiB in all; what is more is left out
	Env  []string // what the call gives it as variables, NAME=VALUE; at most 1,024, of 1 MiB in all
	Dir  string   // working directory, as the program sees it; empty where it cannot be told

	// Key is one for all that one process executes with what an answer gave it, and no other's.
	Key uint64
	// Again says that the standard streams are already those that an earlier answer of this Key put there: this is the next
	// try along PATH, or the program that a shell or a launcher became.
	Again bool
	// InputOnly says that nobody reads what it writes who gives it its input: its Streams are that of standard input alone.
	InputOnly bool

	process *spawnProcess
}

// Streams are the ways between a process and who talks with it, by descriptor: 0, 1 and 2. Where two descriptors are one
// stream (a socket for both directions, 2>&1) they are the same *os.File. nil stands for what is not to be changed: a
// standard error that is closed or a terminal. All are the receiver's of Spawn.Streams.
type Streams struct {
	Far  [3]*os.File // what stood there, so towards who talks: 0 is read, 1 and 2 are written
	Near [3]*os.File // the recorder's ends of Put: 0 is written, 1 and 2 are read
	Put  [3]*os.File // for SpawnAnswer.Stdio: of the same type as what stood there, pipe or socket
}

// A SpawnAnswer says what becomes of an execve.
type SpawnAnswer struct {
	// Stdio are put at 0, 1 and 2 before the call goes on; nil leaves what stands there. They are closed here afterwards.
	Stdio [3]*os.File
	// Stub makes a process start that does nothing but wait, in place of the program, whether or not that exists: it reads one
	// byte from its standard input and ends with it as its exit status, or with 0 at the end of file. It has the arguments,
	// the environment and the PID that the program would have. Should the process execute anything else before that, it is
	// the stub again, and nobody is told.
	Stub bool
	// Failed, if given, is told that the answer could not be carried out; it must not block. The caller is gone then, or its
	// execve fails with EIO. Streams may or may not have been put.
	Failed func(error)
}

// Ended says how a process ended.
type Ended struct {
	Exit  Exit
	Known bool // false: the process is gone, and this kernel does not tell how it ended
	Left  bool // it lived when the jail's program had ended or the jail was closed: what is left is killed then
	Again bool // of a Program alone: the process lives, as another one
}
