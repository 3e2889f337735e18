package recording

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ManifestFormat is the format number of recording.json that this package writes, and the highest that it reads.
//
//	1  neither time nor randomness was recorded, and of the processes that ran the program's alone; of files nothing but contents
//	   and what Git sees of a mode
//	2  both may be (axes clock and random), with each process, and each name that was looked up; files stand whole
const ManifestFormat = 2

// The states of a recording.
const (
	StateRecording = "recording" // the recorder is at work, or was killed
	StateFinished  = "finished"
)

// ErrNotRecording is returned for a directory that holds no recording.
var ErrNotRecording = errors.New("not a recording")

// ErrNewer says that a recording is of a format that this package does not read yet.
var ErrNewer = errors.New("is newer")

// ErrManifest is wrapped by the refusal of a recording.json that no recorder wrote.
var ErrManifest = errors.New("not what a recorder writes")

// A Manifest is recording.json.
type Manifest struct {
	ID        string          `json:"id"`
	Format    int             `json:"format"`
	State     string          `json:"state"`
	Program   Program         `json:"program"`
	Argv      []string        `json:"argv"` // as given, secrets as placeholders, never empty
	Cwd       string          `json:"cwd"`
	Umask     *int            `json:"umask,omitempty"` // which a replay has too; null where it is not known
	Env       []EnvVar        `json:"env"`
	Stdin     json.RawMessage `json:"stdin"` // payload or null
	Axes      map[string]Axis `json:"axes"`
	Host      Host            `json:"host"`
	Sealed    bool            `json:"sealed"`
	Versions  Versions        `json:"versions"`
	StartedAt time.Time       `json:"started_at"`
	Exit      *Exit           `json:"exit"`
	Parent    *string         `json:"parent"`
	ForkSeq   *uint64         `json:"fork_seq"`

	// Secrets in argv by their names argv.N, as Env has its own.
	ArgSecrets []EnvVar `json:"arg_secrets,omitempty"`
	// ScrubKey names the key of the project, under which placeholders and digests of files with secrets are made (scrub.Key.ID); "" of an
	// older recorder.
	ScrubKey string `json:"scrub_key,omitempty"`
	// ScrubRules is the version of the shapes that secrets were found by (scrub.Rules), which a replay uses; none is 1.
	ScrubRules  int      `json:"scrub_rules,omitempty"`
	SecretNames []string `json:"secret_names,omitempty"` // of variables, headers and fields: those of tapedeck.yaml
	// Secrets are placeholder and shape of each secret that the traffic or a file brought, 4,096 at most. A replay that lacks one makes up
	// another, and seeks those that are late, which stood somewhere before they were known. Of a killed recorder there are none.
	Secrets []scrub.Secret `json:"secrets,omitempty"`
	// ScrubLate says that what became known late was taken out of what stood there before, which a replay does likewise.
	ScrubLate bool              `json:"scrub_late,omitempty"`
	Raw       map[string][]byte `json:"raw,omitempty"`  // true bytes, scrubbed, of what is not UTF-8: argv.N, env.NAME
	MCP       *MCPSeen          `json:"mcp,omitempty"`  // tool servers that the program talked with, once finished
	Records   int               `json:"records"`        // on the tape, once finished
	Seed      string            `json:"seed,omitempty"` // id of the recording that the run's random bytes are of; "" for its own
	Roots     Roots             `json:"roots"`
	LongFiles map[string]string `json:"long_files,omitempty"` // that the run left and that are too large to keep: how many bytes, the mode, and their keyed digest
	Writable  []string          `json:"writable,omitempty"`   // directories that the run could change beside the roots
	Ports     []uint16          `json:"ports,omitempty"`      // TCP ports that a replay serves beside 80 and 443
	Loopback  bool              `json:"loopback,omitempty"`   // an upstream answered for an address of the loopback
	Proxy     bool              `json:"proxy,omitempty"`      // recorded outside the jail, through a proxy
	Wrapped   bool              `json:"wrapped,omitempty"`    // the conversation with one MCP server alone, recorded by WrapMCP
	TTY       *TTY              `json:"tty"`                  // null where no stream was a terminal
	Masks     map[string]int    `json:"masks,omitempty"`      // how often each mask was used; nil where none was, or the recorder was killed
	Masking   *Masking          `json:"masking,omitempty"`    // of tapedeck.yaml, which a replay uses

	// SessionRules is the version of the rules that session.jsonl was derived by, with which alone verify derives it again; 0 where there is none.
	SessionRules  int   `json:"session_rules,omitempty"`
	SessionHidden []int `json:"session_hidden,omitempty"` // its lines, from 1, in which a secret was hidden that the tape has in pieces

	Daemon *DaemonRun `json:"daemon,omitempty"` // to which the run was told
	Again  *Again     `json:"again,omitempty"`  // what recording it once more needs beside the fields above; nil where nobody kept it
	Totals *Totals    `json:"totals,omitempty"` // what it comes to; nil where package account is to add it up

	Redacted *Redacted `json:"redacted,omitempty"` // of a recording that was made of another without what a person named
	Fork     *Fork     `json:"fork,omitempty"`     // of a fork: what it did otherwise than its parent
}

// Redacted says of what a recording was made, and by which rules something was taken out: their names alone.
type Redacted struct {
	Of    string   `json:"of"` // id
	Rules []string `json:"rules"`
}

// Again is what a run was let reach while it was recorded.
type Again struct {
	Upstreams   map[string]string `json:"upstreams"`            // NAME[:PORT] to a URL; to "" where that held a secret
	Configured  []string          `json:"configured,omitempty"` // those that tapedeck.yaml named, whose URLs are those that it has then
	Passthrough []string          `json:"passthrough,omitempty"`
	Isolated    bool              `json:"isolated,omitempty"`
}

// A Fork says where a run left its parent's tape, and what is changed there.
type Fork struct {
	Lane    string          `json:"lane,omitempty"`   // the conversation that was left
	Turn    int             `json:"turn,omitempty"`   // of it, the first that is not the parent's; 0 for none
	Live    bool            `json:"live"`             // models were asked
	MCP     []string        `json:"mcp,omitempty"`    // tool servers that were started
	Changes json.RawMessage `json:"changes"`          // fork.Changes
	Failed  string          `json:"failed,omitempty"` // why it did not come to its end; "" where it did
	Verify  *Check          `json:"verify,omitempty"`
}

// A Check is how a command ended over the work tree as a run left it.
type Check struct {
	Command  string `json:"command"`
	Exit     int    `json:"exit"`      // 128+n on death by signal n; -1 where it did not run
	TimedOut bool   `json:"timed_out"` // it was ended, with all that it had started
	Why      string `json:"why"`       // why it did not run; "" where it did
	Output   string `json:"output"`    // the end of what it wrote, where it did not pass
	TookMS   int64  `json:"took_ms"`
}

// Passed reports whether the command ended with 0.
func (c *Check) Passed() bool { return c.Exit == 0 && !c.TimedOut && c.Why == "" }

// Program is the recorded program: its resolved path and the BLAKE3 of its file.
type Program struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// EnvVar is one environment variable. A secret has its placeholder as Value, and a Shape from which a replay that lacks
// the variable makes a dummy.
type EnvVar struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"`
	Shape  string `json:"shape,omitempty"`
}

// Axis says whether a host boundary was recorded, and what of it was not.
type Axis struct {
	On         bool     `json:"on"`
	NotCovered []string `json:"not_covered"`
}

// Host is the machine that recorded.
type Host struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
	Name   string `json:"name"` // the host name, which a replay has too
	// Proc holds files of /proc as the run found them, by their names there. The program sees these, here and on a replay: a replay
	// may be on another machine, and what this one is busy with differs at every look.
	Proc map[string]string `json:"proc,omitempty"`
}

// Versions names who recorded what.
type Versions struct {
	Tapedeck string `json:"tapedeck"`
	Program  string `json:"program"` // "" where the program does not tell without being asked
}

// Exit is how the program ended: its code, 128+n on death by signal n.
type Exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// String is how it ended in words: "exit 3", "SIGKILL".
func (e Exit) String() string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// Roots are the absolute paths that the tape's paths are relative to. Tree is empty where no snapshot was taken.
type Roots struct {
	Tree string `json:"tree"`
	Home string `json:"home"`
	Temp string `json:"temp"`
	// Absent are HOME and Temp where they did not exist when the run began. What it made there counts as that of the
	// directory above, on a replay too, when they may exist.
	Absent []string `json:"absent,omitempty"`
	// Moved is where Tree was recorded, of a replay that has it elsewhere.
	Moved string `json:"-"`
}

// TTY says which of the standard streams were the terminal, its size and modes at the start, and when what was typed.
type TTY struct {
	Streams []int            `json:"streams"`
	Rows    int              `json:"rows"`
	Cols    int              `json:"cols"`
	Width   int              `json:"width,omitempty"`  // pixels
	Height  int              `json:"height,omitempty"` // pixels
	Modes   string           `json:"modes,omitempty"`  // terminal.Modes of the caller's
	Typed   []terminal.Input `json:"typed"`
	Keys    []byte           `json:"keys,omitempty"` // scrubbed, typed where stdin was something else; else they are stdin
}

// NewManifest returns the manifest of a recording that begins now.
func NewManifest(now time.Time) *Manifest {
	return &Manifest{
		ID: NewID(now), Format: ManifestFormat, State: StateRecording, Stdin: json.RawMessage("null"),
		Axes: map[string]Axis{}, Host: ThisHost(), Versions: Versions{Tapedeck: Version}, StartedAt: now.UTC(),
		ScrubRules: scrub.Rules,
	}
}

// Write replaces recording.json atomically.
func (m *Manifest) Write(dir string, sync bool) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, ManifestName), append(b, '\n'), &durable.Options{Mode: 0o644, Sync: sync})
}

// ReadManifest reads and checks recording.json of dir.
func ReadManifest(dir string) (*Manifest, error) {
	return readManifest(dir, func(b []byte) ([]byte, error) { return b, nil })
}

// notInHead are the keys that make recording.json long, and that a list of recordings does without.
var notInHead = map[string]bool{
	"env": true, "host": true, "axes": true, "stdin": true, "arg_secrets": true, "secrets": true, "raw": true, "long_files": true, "tty": true,
	"masks": true, "masking": true,
}

func headOf(b []byte) ([]byte, error) {
	var s jsonscan.Scanner
	s.Reset(b)
	head := []byte{'{'}
	for s.Begin('{'); s.More('}'); {
		key := string(s.Key())
		if notInHead[key] {
			s.Skip()
			continue
		}
		if len(head) > 1 {
			head = append(head, ',')
		}
		head = append(append(jsonscan.AppendText(head, key), ':'), s.Raw()...)
	}
	return append(head, '}'), s.End()
}

// readManifest reads what part leaves of recording.json.
func readManifest(dir string, part func([]byte) ([]byte, error)) (*Manifest, error) {
	file := filepath.Join(dir, ManifestName)
	b, err := ReadBounded(file, MaxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: it has no %s", dir, ErrNotRecording, ManifestName)
	}
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if b, err = part(b); err == nil {
		err = json.Unmarshal(b, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, ErrManifest, err)
	}
	if m.Format > ManifestFormat {
		return nil, fmt.Errorf("%s: format %d %w than %d, the newest that this tapedeck reads", file, m.Format, ErrNewer, ManifestFormat)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, ErrManifest, err)
	}
	return m, nil
}

// check refuses what no recorder of any version writes: everything else may take the rest for granted.
func (m *Manifest) check() error {
	switch {
	case m.Format < 1 || m.State != StateRecording && m.State != StateFinished:
		return fmt.Errorf("format %d with state %q is no recording", m.Format, m.State)
	case m.ID == "" || filepath.Base(m.ID) != m.ID:
		return fmt.Errorf("id %q", m.ID)
	case len(m.Argv) == 0:
		return errors.New("argv is empty")
	case m.TTY != nil && !m.TTY.valid():
		return fmt.Errorf("tty %+v", *m.TTY)
	case len(m.SecretNames) > maxSecretNames:
		return fmt.Errorf("%d names of secrets, want %d at most", len(m.SecretNames), maxSecretNames)
	case len(m.Secrets) > scrub.MaxFound:
		return fmt.Errorf("%d secrets, want %d at most", len(m.Secrets), scrub.MaxFound)
	case shapeLen(m.Env)+shapeLen(m.ArgSecrets) > maxShapes:
		return fmt.Errorf("secrets of more than %d bytes in the environment and the arguments", maxShapes)
	}
	for name, p := range map[string]string{"program": m.Program.Path, "cwd": m.Cwd} {
		if !path.IsAbs(p) { // of the system that recorded, which had slashes
			return fmt.Errorf("%s %q is not an absolute path", name, p)
		}
	}
	for _, p := range append([]string{m.Roots.Tree, m.Roots.Home, m.Roots.Temp}, m.Writable...) {
		if p != "" && (!path.IsAbs(p) || path.Clean(p) != p) {
			return fmt.Errorf("%q is not a clean absolute path", p)
		}
	}
	return nil
}

// SeededBy is the id of the recording that the random bytes of the run are of.
func (m *Manifest) SeededBy() string { return cmp.Or(m.Seed, m.ID) }

// HoldsTree reports whether a recorder that came to its end has left what it found in the work tree, and what was changed there.
func (m *Manifest) HoldsTree() bool { return m.Roots.Tree != "" && !m.Wrapped }

// maxShapes bounds in bytes the secrets of an environment and an argument list: no system gives a program as much.
const maxShapes = 16 << 20

func shapeLen(vars []EnvVar) (sum int) {
	for _, v := range vars {
		sum += scrub.ShapeLen(v.Shape)
	}
	return sum
}

// Has reports whether stream i was the terminal; a nil TTY has none.
func (t *TTY) Has(i int) bool { return t != nil && slices.Contains(t.Streams, i) }

// valid reports whether a terminal can be made of t.
func (t *TTY) valid() bool {
	const largest = 1 << 15 // of a terminal's rows and columns
	ok := len(t.Streams) > 0 && len(t.Streams) <= 3 && t.Rows >= 0 && t.Rows < largest && t.Cols >= 0 && t.Cols < largest
	for _, s := range t.Streams {
		ok = ok && s >= 0 && s <= 2
	}
	for _, n := range []int{t.Width, t.Height} {
		ok = ok && n >= 0 && n < largest
	}
	for _, in := range t.Typed {
		s := in.Size()
		ok = ok && in.After >= 0 && in.Len >= 0 && in.AtMS >= 0 && in.IdleMS >= 0
		ok = ok && min(s.Rows, s.Cols, s.Width, s.Height) >= 0 && max(s.Rows, s.Cols, s.Width, s.Height) < largest
	}
	return ok
}

// NewID makes the id of a recording: the time to the second, for people, and 48 random bits.
func NewID(now time.Time) string {
	var b [6]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:])
}

// NotCovered lists what no axis of m covered, in the order of the axes' names.
func (m *Manifest) NotCovered() []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(m.Axes)) {
		out = append(out, m.Axes[name].NotCovered...)
	}
	return NoneTwice(out)
}

// FollowsMCP reports whether a recording follows MCP. Older ones do not: over HTTP it is HTTP like any other there, and servers on
// pipes are processes that run again. One that is unfinished does not say, and its servers do not run because of that.
func (m *Manifest) FollowsMCP() bool { return m.Axes[AxisMCP].On || m.State == StateRecording }

// ShownAs is which stream of the program holds what its terminal showed: stdout, or stderr where that alone is the terminal.
func (t *TTY) ShownAs() int {
	if !t.Has(1) && t.Has(2) {
		return 2
	}
	return 1
}

// LateSecrets lists those that stood in a recording before they were known.
func LateSecrets(secrets []scrub.Secret) (late []scrub.Secret) {
	for _, s := range secrets {
		if s.Late {
			late = append(late, s)
		}
	}
	return late
}

// JoinSecrets returns first and what of second is not in it, as many as a recording may list: what the program of a replay
// brought, or a work tree as it is now, stands in a tape that is kept.
func JoinSecrets(first, second []scrub.Secret) []scrub.Secret {
	out, listed := slices.Clone(first), make(map[string]bool, len(first))
	for _, s := range first {
		listed[scrub.Digits(s.Placeholder)] = true
	}
	for _, s := range second {
		if !listed[scrub.Digits(s.Placeholder)] && len(out) < scrub.MaxFound {
			out = append(out, s)
		}
	}
	return out
}

// A DaemonRun names the run of a recording at a daemon.
type DaemonRun struct {
	URL     string `json:"url"` // without user, token and query
	AgentID string `json:"agent_id"`
	RunID   string `json:"run_id"`
	// Continued are further runs, in order: the daemon was started again, and what it had was ended as incomplete.
	Continued []string `json:"continued,omitempty"`
	Turns     int      `json:"turns"` // that the daemon has acknowledged, in all of them
}

// NoteArgs puts argv into m: secrets as placeholders with the shapes that dummies are made from, bytes that are not UTF-8
// beside them.
func (m *Manifest) NoteArgs(s *scrub.Scrubber, argv []string) {
	m.Argv = make([]string, len(argv))
	for i, a := range argv {
		v := s.Arg(a)
		text, raw := tape.SafeString(v.Value)
		m.Argv[i] = text
		key := "argv." + strconv.Itoa(i)
		if raw != nil {
			m.setRaw(key, raw)
		}
		if v.Secret {
			m.ArgSecrets = append(m.ArgSecrets, EnvVar{Name: key, Value: text, Secret: true, Shape: v.Shape})
		}
	}
}

// NoteEnv puts env into m in the same way.
func (m *Manifest) NoteEnv(s *scrub.Scrubber, env []string) {
	m.Env = []EnvVar{}
	for _, v := range s.Env(env) {
		text, raw := tape.SafeString(v.Value)
		if raw != nil {
			m.setRaw("env."+v.Name, raw)
		}
		m.Env = append(m.Env, EnvVar{Name: v.Name, Value: text, Secret: v.Secret, Shape: v.Shape})
	}
}

func (m *Manifest) setRaw(key string, b []byte) {
	if m.Raw == nil {
		m.Raw = make(map[string][]byte)
	}
	m.Raw[key] = b
}

// Bytes returns the true bytes of a string of m.
func (m *Manifest) Bytes(key, text string) string {
	if raw, ok := m.Raw[key]; ok {
		return string(raw)
	}
	return text
}

// NoneTwice drops what was listed before: the snapshot leaves out what the journal could not keep.
func NoneTwice(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		was := seen[s]
		seen[s] = true
		return was
	})
}

// Axes that are no boundary of their own.
const (
	AxisMCP    = "mcp"    // what a program and its tool servers say to each other
	AxisDaemon = "daemon" // what a daemon does not have of the run
)

// What recordings of some kinds do not cover.
const (
	GapFiles  = "files outside the work tree (a replay reads them as they are then)" // without a jail, and older ones
	GapScreen = "the screen"                                                         // without terminal/
)

// Version is the version of tapedeck, and Producer what tapes and recordings name as their producer.
const (
	Version  = version.Version
	Producer = producer + Version
	producer = "tapedeck "
)

// MCPSeen is what a run had of tool servers.
type MCPSeen struct {
	Calls   int      `json:"calls"`   // what the program asked them for: no notifications, no handshakes
	Servers []string `json:"servers"` // in the order in which they came
	Carried int      `json:"-"`       // HTTP exchanges that carried messages, which Counts has among the others
}

// Add counts a record of the tape.
func (m *MCPSeen) Add(k tape.Kind) {
	switch k := k.(type) {
	case *tape.MCPOpen:
		m.note(k.Server)
	case *tape.MCPJSONRPC:
		m.note(k.Server)
		if k.IsCall() {
			m.Calls++
		}
	case *tape.HTTPExchange:
		if strings.HasPrefix(k.Lane, "mcp:") {
			m.Carried++
		}
	}
}

// note notes a server. A further conversation with one of the same name is one with that server too.
func (m *MCPSeen) note(name string) {
	if server := tape.MCPServer(name); !slices.Contains(m.Servers, server) {
		m.Servers = append(m.Servers, strings.Clone(server)) // it is cut from the record, which would stay as a whole
	}
}

// OrNil is m where there was a server.
func (m *MCPSeen) OrNil() *MCPSeen {
	if len(m.Servers) == 0 {
		return nil
	}
	return m
}
