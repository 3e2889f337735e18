package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	httpforeign "github.com/tapedeck-dev/tapedeck/httptape/foreign"
	"github.com/tapedeck-dev/tapedeck/internal/meant"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog/foreign"
)

// The exit statuses of every command but record, which ends as its program did.
const (
	statusDone     = 0
	statusFailed   = 1 // could not run, or bad usage
	statusDiverged = 2 // diverged, or found something
	statusRecorder = 125
)

// streams are the standard streams of one command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func stdStreams() streams { return streams{os.Stdin, os.Stdout, os.Stderr} }

// A statusError ends a command with a status. Err is nil where everything has been said.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// run runs one command line and returns its exit status.
func run(ctx context.Context, args []string, std streams) int {
	// net/http's clients have no other log than this one, and quote there what an upstream sent unasked.
	log.SetOutput(io.Discard)
	cmd := newRootCommand(std.forJSON(args), calledBy(args))
	cmd.SetArgs(args)
	if err := askedOfNone(cmd, args); err != nil {
		return report(err, std.err)
	}
	return report(cmd.ExecuteContext(ctx), std.err)
}

// report says what went wrong, with the next step where there is one, and returns the exit status.
func report(err error, w io.Writer) int {
	if err == nil {
		return statusDone
	}
	status := statusFailed
	var se *statusError
	if errors.As(err, &se) {
		status = se.status
		if se.err == nil {
			return status
		}
	}
	visible.Fprintf(w, "tapedeck: %v\n", err)
	if hint := hintFor(err); hint != "" {
		visible.Fprintf(w, "tapedeck: %s\n", hint)
	}
	return status
}

// hintFor is the next step after err.
func hintFor(err error) string {
	var conflict *files.ConflictError
	var ambiguous *library.AmbiguousError
	var unwritten *deck.WriteError
	switch {
	case errors.As(err, &unwritten):
		return "" // it names its own
	case errors.Is(err, deck.ErrUnavailable) && deck.AvailableOutside() != nil:
		return "record and replay inside WSL 2; everything else works here"
	case errors.Is(err, deck.ErrUnavailable):
		return "`tapedeck doctor` tries each part of the jail and says what is missing; --proxy does without it, and covers less"
	case errors.Is(err, library.ErrNoCassette):
		return "`tapedeck cassette record -- CMD` makes one"
	case errors.Is(err, library.ErrNoRecording):
		return "`tapedeck list` shows the recordings of this work tree, `tapedeck cassette list` its cassettes"
	case errors.Is(err, recording.ErrNotRecording):
		return "a recording is a directory with a recording.json; a bare tape is given as the file itself"
	case errors.As(err, &conflict) && conflict.Done:
		return "nothing was changed, and nothing is to be: every path stands already as this would leave it"
	case errors.As(err, &conflict):
		return "nothing was changed; `tapedeck restore REC DIR` gives the recorded tree in a directory of its own"
	case errors.Is(err, derive.ErrUnfinished):
		return "nothing was changed; `tapedeck restore REC DIR` gives the tree as the run found it in a directory of its own"
	case errors.As(err, &ambiguous):
		return "name it by its path, or by its whole id where no other has that"
	case errors.Is(err, files.ErrNotEmpty):
		return "name a directory that is empty, or that is not there yet"
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return "raise the limit of open files (ulimit -n)"
	case errors.Is(err, syscall.EADDRINUSE):
		return "a daemon may run there already: `tapedeck runs list` asks it; --listen 127.0.0.1:0 takes a free port"
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return "make room there"
	case errors.Is(err, syscall.EROFS):
		return "name a place that can be written to"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns the path, or name another one"
	}
	if hint := hintForRuns(err); hint != "" {
		return hint
	}
	return hintForCassette(err)
}

// newRootCommand is the root of all commands, or of that one alone which is called: most of them take longer to be made than one takes to begin.
func newRootCommand(on streams, called string) *cobra.Command {
	std := &console{streams: on}
	cmd := &cobra.Command{
		Use:   "tapedeck",
		Short: "The flight recorder for AI agents",
		Long: `Tapedeck is the flight recorder for AI agents: it records every input that a run of an agent program
consumed, replays the run offline as a closed world, and says exactly where two runs differ and why.

A run is one time that a program runs. Its tape is one file with every input of it, in order. A recording (REC) is the directory
of a recorded run: the tape, the bytes that it names, the work tree before and after, the seal. A cassette is the directory of what
one terminal showed; a recording with a terminal holds one. A session is what an agent said and did, turn by turn, as a log: derived
from a tape, or imported. A daemon keeps a trace of each run that an agent tells it (tapedeck runs).

REC is the path of a recording, an id, a unique prefix of one, or "last".

Exit status: 0 faithful or done; 2 diverged or found something; 1 could not run or bad usage.
record ends as its program did, 125 when it failed itself.`,
		Example: `  tapedeck quickstart
  tapedeck record -- gemini -p "write hello.txt"
  tapedeck replay last`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       recording.Version,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetVersionTemplate("tapedeck {{.Version}}\n")
	cmd.SetIn(std.in)
	cmd.SetOut(std.out)
	cmd.SetErr(std.err)
	for _, g := range helpGroups {
		cmd.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			if called == "" || called == c.name {
				cmd.AddCommand(c.of(g.id, std))
			}
		}
	}
	cmd.SetHelpCommandGroupID(formatsGroup)
	cmd.SetCompletionCommandGroupID(formatsGroup)
	cmd.InitDefaultCompletionCmd()
	return cmd
}

// A commandMaker makes a command of the first level.
type commandMaker struct {
	name string
	make func(*console) *cobra.Command
}

func (m commandMaker) of(group string, std *console) *cobra.Command {
	c := m.make(std)
	c.GroupID = group
	if sweeps[m.name] {
		c.PreRun = func(*cobra.Command, []string) { library.Sweep() }
	}
	return c
}

// A helpGroup is commands that stand together in the help.
type helpGroup struct {
	id, title string
	commands  []commandMaker
}

var helpGroups = []helpGroup{
	{"run", "Run a program again:", []commandMaker{
		{"quickstart", newQuickstartCommand}, {"record", newRecordCommand}, {"replay", newReplayCommand}, {"accept", newAcceptCommand},
		{"rerecord", newRerecordCommand}, {"fork", newForkCommand}, {"diff", newDiffCommand}, {"compare", newCompareCommand}, {"doctor", newDoctorCommand},
	}},
	{"look", "Look at what was recorded:", []commandMaker{
		{"show", newShowCommand}, {"list", newListCommand}, {"ui", newUICommand}, {"export", newExportCommand}, {"verify", newVerifyCommand},
		{"annotate", newAnnotateCommand}, {"apply", newApplyCommand}, {"restore", newRestoreCommand},
	}},
	{"share", "Keep and share recordings:", []commandMaker{
		{"seal", newSealCommand}, {"pack", newPackCommand}, {"unpack", newUnpackCommand}, {"redact", newRedactCommand}, {"rm", newRmCommand}, {"gc", newGCCommand},
	}},
	{"team", "Keep runs where a team finds them:", []commandMaker{
		{"push", newPushCommand}, {"pull", newPullCommand}, {"search", newSearchCommand}, {"tag", newTagCommand}, {"hold", newHoldCommand}, {"purge", newPurgeCommand},
		{"worker", newWorkerCommand}, {"jobs", newJobsCommand}, {"store", newStoreCommand},
	}},
	{"test", "Gate on recordings, test agent logic and terminals:", []commandMaker{
		{"test", newTestCommand}, {"script", newScriptCommand}, {"cassette", newCassetteCommand},
	}},
	{"serve", "Serve agents:", []commandMaker{{"serve", newServeCommand}, {"runs", newRunsCommand}, {"mcp", newMCPCommand}}},
	{formatsGroup, "Formats, and this command:", []commandMaker{{"session", newSessionCommand}, {"version", newVersionCommand}, {manName, newManCommand}}},
}

// manName is the command that writes pages about all the others.
const manName = "man"

// calledBy returns the command of the first level that args call, where it needs none of the others; "" where that is not certain.
func calledBy(args []string) string {
	if len(args) == 0 || args[0] == manName {
		return ""
	}
	for _, g := range helpGroups {
		for _, c := range g.commands {
			if c.name == args[0] {
				return c.name
			}
		}
	}
	return ""
}

// formatsGroup is the group of the commands that are about formats, or about this command.
const formatsGroup = "formats"

// sweeps are the commands that begin by removing what killed ones left in temporary directories. replay does so where it makes its own,
// gc with a report.
var sweeps = map[string]bool{
	"record": true, "fork": true, "diff": true, "show": true, "verify": true, "apply": true, "restore": true, "list": true,
	"rm": true, "pack": true, "unpack": true, "seal": true, "test": true, "accept": true, "rerecord": true, "compare": true, "export": true, "ui": true,
}

// askedOfNone refuses --help of what is no command, which would be told of all of them.
func askedOfNone(cmd *cobra.Command, args []string) error {
	if len(args) < 2 || calledBy(args) != "" || strings.HasPrefix(args[0], "-") || slices.Contains([]string{manName, "help", "completion"}, args[0]) ||
		!slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
		return nil
	}
	return knownCommand(cmd, args[:1])
}

// knownCommand refuses what is no command, and names those that it may have meant.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if len(args[0]) < 4 { // else "ls" is near every short name
		cmd.SuggestionsMinimumDistance = 1
	}
	if near := nearest(cmd, args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q: %s --help lists them", args[0], cmd.CommandPath())
}

// typedFor are words that people type who come from other tools, and what does that here.
var typedFor = map[string][]string{
	"view": {"show", "ui", "export"}, "inspect": {"show"}, "cat": {"show"}, "open": {"ui", "show"}, "html": {"export"}, "browse": {"ui"}, "dump": {"show"}, "trace": {"show"},
	"timeline": {"show"}, "watch": {"show --follow"}, "tail": {"show --follow"}, "cost": {"show", "compare"}, "usage": {"show", "compare"},
	"log": {"list"}, "logs": {"list"}, "history": {"list"}, "recordings": {"list"}, "status": {"list", "doctor"}, "tree": {"list --tree"}, "forks": {"list --tree"},
	"run": {"record"}, "exec": {"record"}, "capture": {"record"}, "start": {"record"}, "rec": {"record"},
	"play": {"replay", "cassette play"}, "playback": {"replay"}, "rerun": {"replay", "rerecord"}, "repeat": {"replay", "fork --times"},
	"branch": {"fork"}, "resume": {"fork"}, "rewind": {"fork"}, "edit": {"fork --edit"},
	"benchmark": {"compare"}, "bench": {"compare"}, "eval": {"compare --verify"}, "stats": {"compare"}, "versus": {"compare"},
	"check": {"test", "verify"}, "ci": {"test"}, "gate": {"test"}, "validate": {"verify"}, "fsck": {"verify"},
	"approve": {"accept"}, "update": {"accept", "rerecord"}, "bless": {"accept"},
	"remove": {"rm"}, "delete": {"rm"}, "del": {"rm"}, "prune": {"gc"}, "clean": {"gc"},
	"undo": {"apply --reverse"}, "revert": {"apply --reverse"}, "rollback": {"apply --reverse"}, "checkout": {"restore"},
	"import": {"session import", "unpack", "cassette import"},
	"zip":    {"pack"}, "archive": {"pack"}, "share": {"pack"}, "unzip": {"unpack"}, "sign": {"seal"},
	"daemon": {"serve"}, "server": {"serve"}, "agents": {"runs"}, "note": {"annotate"}, "comment": {"annotate"},
	"init": {"quickstart"}, "demo": {"quickstart"}, "tutorial": {"quickstart"}, "setup": {"doctor"}, "doc": {"man"}, "docs": {"man"},
}

// nearest are the commands below cmd that word may have meant: those that it is typed for (typedFor), that which says of itself that it is looked for by this word, else those
// of a like name.
func nearest(cmd *cobra.Command, word string) []string {
	if commands := typedFor[word]; commands != nil && !cmd.HasParent() {
		return commands
	}
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, word) {
			return []string{c.Name()}
		}
	}
	return cmd.SuggestionsFor(word)
}

// openLibrary is the one of the work tree that holds the working directory.
func openLibrary() (*library.Library, error) { return library.At("") }

// openRecording opens what a REC argument stands for.
func openRecording(name string) (*recording.Recording, error) {
	lib, err := openLibrary()
	if err != nil {
		return nil, err
	}
	rec, err := lib.Find(name)
	if err != nil && library.LooksPacked(name) {
		return nil, fmt.Errorf("%s is a packed recording: tapedeck unpack %[1]s first", name)
	}
	if err != nil {
		if err := notForCassette(name); err != nil {
			return nil, err
		}
	}
	if st, errStat := os.Stat(name); err != nil && errStat == nil && !st.IsDir() {
		return nil, fmt.Errorf("%s is a file, and this takes a recording, which is a directory: %w", name, recording.ErrNotRecording)
	}
	return rec, err
}

// notForCassette is the error where path, which is to be a recording or a tape, is a cassette.
func notForCassette(path string) error {
	if !isCassette(path) || library.HoldsRecording(path) {
		return nil
	}
	return fmt.Errorf("%s is a cassette, and this takes a recording: tapedeck cassette --help has what works with cassettes", path)
}

// recordingNames completes a REC argument.
var recordingNames = libraryNames(func(lib *library.Library) (names []string, err error) {
	entries, err := lib.List()
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
})

// cassetteNames completes a CASSETTE argument.
var cassetteNames = libraryNames((*library.Library).CassetteNames)

// libraryNames completes what the library has names of, and files.
func libraryNames(of func(*library.Library) ([]string, error)) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) (out []string, _ cobra.ShellCompDirective) {
		lib, err := openLibrary()
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		names, err := of(lib)
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		for _, name := range append([]string{"last"}, names...) {
			if name == visible.Line(name) { // a shell gets no other
				out = append(out, name)
			}
		}
		return out, cobra.ShellCompDirectiveDefault
	}
}

// takes checks that there is one argument for each of names, as they stand in the command's usage. The last may stand for
// several where its name ends so: REC….
func takes(names ...string) cobra.PositionalArgs {
	many := strings.HasSuffix(names[len(names)-1], "…")
	return func(cmd *cobra.Command, args []string) error {
		all := strings.Join(names, " and ")
		switch {
		case len(args) < len(names):
			missing, are := strings.Join(names[len(args):], " and "), "is"
			if len(args)+1 < len(names) {
				are = "are"
			}
			return fmt.Errorf("%s takes %s: %s %s missing (%s --help has examples)", cmd.Name(), all,
				strings.TrimSuffix(missing, "…"), are, cmd.CommandPath())
		case len(args) > len(names) && !many:
			return fmt.Errorf("%s takes %s: %q is one too many (%s --help has examples)", cmd.Name(), all, args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

// recorderCommand is the command called by path whose arguments are a program, called name in its usage. It ends as run says that the
// program did, and with statusRecorder where it failed itself.
func recorderCommand(path, name string, run func(ctx context.Context, argv []string) (exit int, err error)) *cobra.Command {
	ended := func(exit int, err error) error {
		switch {
		case err != nil:
			return &statusError{statusRecorder, err}
		case exit != 0:
			return &statusError{status: exit}
		}
		return nil
	}
	cmd := withHelp(path, &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error { return ended(0, takes(name)(cmd, args)) },
		RunE: func(cmd *cobra.Command, args []string) error { return ended(run(cmd.Context(), args)) },
	})
	cmd.Flags().SetInterspersed(false) // what follows the program is the program's
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return ended(0, flagError(cmd, err)) })
	return cmd
}

// flagError says what a flag wants, in the words of its help in place of those of the package that parses it.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var own *valueError
	switch errors.As(err, &invalid); {
	case errors.As(err, &unknown):
		if near := meantFlag(cmd, unknown.GetSpecifiedName()); near != "" {
			err = fmt.Errorf("%w: did you mean %s?", err, near)
		}
	case errors.As(err, &own):
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, own.error)
	case invalid != nil:
		f := invalid.GetFlag()
		_, usage := pflag.UnquoteUsage(f)
		err = fmt.Errorf("--%s %q: want %s: %s", f.Name, invalid.GetValue(), wanted(f.Value.Type()), usage)
	}
	return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
}

// meantFlag is what may have been meant by the name of a flag that cmd has not; "" for nothing.
func meantFlag(cmd *cobra.Command, name string) string {
	if shows := []string{"compare", "diff", "show"}; slices.Contains(shows, cmd.Name()) && slices.Contains([]string{"o", "output", "html"}, name) {
		return "tapedeck export REC -o FILE.html"
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := meant.By(name, names); near != "" && len(name) > 1 {
		return "--" + near
	}
	return ""
}

func wanted(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// helpTexts are the texts of the commands, a file for each command of the first level. A section is
//
//	= seal prove
//	prove REC [SEQ]
//	What it does, in a line
//
//	What there is to know, and the exit statuses
//
//	Examples:
//	  tapedeck seal prove last 3
//
//go:embed help/*.txt
var helpTexts embed.FS

// inHelp is what stands in the texts for what more than one of them says, or the code knows.
var inHelp = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(
		"{{modes}}", strings.Trim(modesHelp, "\n"),
		"{{transcripts}}", strings.Join(foreign.Names(), ", "),
		"{{http cassettes}}", strings.Join(httpforeign.Names(), ", "),
	)
})

// helpSection is the section of the command called by path; "" for none.
func helpSection(path string) string {
	first, _, _ := strings.Cut(path, " ")
	text, err := helpTexts.ReadFile("help/" + first + ".txt")
	if err != nil {
		return ""
	}
	_, section, _ := strings.Cut("\n"+string(text), "\n= "+path+"\n")
	section, _, _ = strings.Cut(section, "\n= ")
	return section
}

// withHelp gives cmd, which is called by path ("seal prove"), its usage and help.
func withHelp(path string, cmd *cobra.Command) *cobra.Command {
	section := helpSection(path)
	if section == "" {
		panic(fmt.Sprintf("no help for %q", path))
	}
	cmd.Use, section, _ = strings.Cut(section, "\n")
	cmd.Short, section, _ = strings.Cut(section, "\n")
	long, example, _ := strings.Cut(section, "\nExamples:\n")
	if strings.Contains(long, "{{") {
		long = inHelp().Replace(long)
	}
	cmd.Long, cmd.Example = strings.Trim(long, "\n"), strings.TrimRight(example, "\n")
	return cmd
}

// completions are what a shell offers for an argument, by its name in the usage. Of a name that is not here it offers files.
var completions = map[string]cobra.CompletionFunc{
	"": cobra.NoFileCompletions, "CASSETTE": cassetteNames, "REC": recordingNames, "TAPE|REC": recordingNames, "TAPE": recordingNames,
	"PATH": recordingNames, "A": recordingNames, "B": recordingNames,
}

// command is the command called by path that takes the arguments of these names: none, "REC", "REC FILE", or several of the last, "REC…".
func command(path, names string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	all := strings.Fields(names)
	cmd := withHelp(path, &cobra.Command{Args: cobra.NoArgs, ValidArgsFunction: completions[""], RunE: run})
	if len(all) > 0 {
		cmd.Args = takes(all...)
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			name := strings.TrimSuffix(all[min(len(args), len(all)-1)], "…")
			if complete := completions[name]; complete != nil {
				return complete(cmd, args, word)
			}
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	return cmd
}

// orAnother runs something with a recording, and another program where one stands behind --.
func orAnother(run func(ctx context.Context, name string, argv []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); len(args) > 1 && dash != 1 {
			return fmt.Errorf("%s takes one REC; another program goes behind --: tapedeck %[1]s %s -- %s", cmd.Name(), args[0], args[1])
		}
		return run(cmd.Context(), args[0], args[1:])
	}
}

// commandGroup is a command that does nothing but hold others.
func commandGroup(path string, commands ...*cobra.Command) *cobra.Command {
	cmd := withHelp(path, &cobra.Command{Args: knownCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }})
	cmd.AddCommand(commands...)
	return cmd
}
