package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/otlp"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type recordOptions struct {
	deck.RecordOptions
	time   string
	daemon recordDaemon
	otlp   otlpOptions
}

func newRecordCommand(std *console) *cobra.Command {
	var o recordOptions
	cmd := recorderCommand("record", "CMD…", func(ctx context.Context, argv []string) (int, error) { return runRecord(ctx, &o, argv, std) })
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "`directory` of the recording (default: a new one in .tapedeck/)")
	upstreamFlag(f, &o.Upstreams, "`NAME[:PORT]=URL`: requests for that host go to URL; the way to a server on this host (repeatable)")
	f.StringVar(&o.Tree, "tree", "", "the work tree `directory` (default: the Git checkout, else the working directory)")
	f.BoolVar(&o.Isolated, "isolated", false, "keep the program's writes off the disk")
	f.StringArrayVar(&o.Writable, "writable", nil, "`directory` that the program may write to, beside work tree, HOME and TMP (repeatable)")
	f.StringArrayVar(&o.Passthrough, "passthrough", nil, "`HOST` whose TLS is let through unread; not replayable there (repeatable)")
	parsedFlag(f, &o.Terminal, "tty", "auto", "give the program a terminal: auto, on or off", terminal.ParseMode)
	f.BoolVar(&o.Sync, "sync", false, "fsync at every barrier, so that a power cut loses nothing that the program saw")
	f.BoolVar(&o.Proxy, "proxy", false, "run the program outside the jail and record what heeds HTTP_PROXY")
	wordFlag(cmd, &o.time, "time", "recorded", "wall time and random numbers: recorded, so that a replay has the same, or real", "recorded", "real")
	f.BoolVar(&o.NoSeal, "no-seal", false, "do not seal the recording at its end")
	o.daemon.add(f)
	o.otlp.add(f, "spans for OpenTelemetry, to the `URL` of a receiver while it runs; env: as the environment has it")
	std.jsonFlag(cmd, "the result as JSON on stdout; the program's stdout then goes to stderr")
	completeFlag(cmd, "tty", "auto", "on", "off")
	return cmd
}

func runRecord(ctx context.Context, o *recordOptions, args []string, std *console) (exit int, err error) {
	o.Argv, o.Streams, o.RealTime = args, std.ofProgram(), o.time == "real"
	if o.Daemon, err = o.daemon.options(); err != nil {
		return 0, err
	}
	spans, err := o.otlp.live(std)
	if err != nil {
		return 0, err
	}
	o.Begun = spans.begin
	if spans.to != nil {
		o.Withheld = otlp.HeaderVars
	}
	boundMemory()
	signals, stop := catchSignals()
	defer stop()
	hashing := newProgress(std.err)
	o.Signals, o.Configured, o.Log = signals, sayConfigured(std.err), logger(std.err)
	o.Progress, o.Hiding, o.Sealing = newProgress(std.err).step, newProgress(std.err).hiding, hashing.bytes("sealing")
	res, err := deck.Record(ctx, &o.RecordOptions)
	hashing.end()
	if err != nil {
		spans.end(nil, std)
		return 0, err
	}
	endLine(std.err, res.OpenLine)
	spans.end(res.Recording, std)
	news := bothNews(sealNews(res), daemonNews(res))
	if std.json {
		if news != "" {
			std.say("%s", news)
		}
		err = printJSON(std.out, newRecordResult(res))
	} else {
		line := lastLine(res, o.Isolated)
		if news != "" {
			line += "; " + news
		}
		_, err = visible.Fprintln(std.err, line)
	}
	page.Prepare(res.Recording)
	return res.Exit.Code, err
}

// sayConfigured says where requests go because of tapedeck.yaml, which may be somebody else's: keys go there too.
func sayConfigured(w io.Writer) func(name, url string) {
	return func(name, url string) {
		visible.Fprintf(w, "tapedeck: requests for %s go to %s, as %s says\n", name, url, recording.ConfigName)
	}
}

// recordResult is what record --json prints.
type recordResult struct {
	Recording  string                    `json:"recording"`
	ID         string                    `json:"id"`
	Exit       recording.Exit            `json:"exit"`
	Records    map[string]int            `json:"records"`
	MCP        *recording.MCPSeen        `json:"mcp"` // tool servers, where there were some
	Changed    int                       `json:"changed"`
	Beside     int                       `json:"changed_beside"`
	NotCovered []string                  `json:"not_covered"`
	Axes       map[string]recording.Axis `json:"axes"`
	Sealed     *sealing.Sealing          `json:"sealed"`      // null where it is not
	NotSealed  string                    `json:"not_sealed"`  // why not, where it was to be
	Daemon     *recording.DaemonRun      `json:"daemon"`      // to which the run was told
	DaemonLost string                    `json:"daemon_lost"` // why it did not learn how the run ended
}

func newRecordResult(res *deck.Result) *recordResult {
	m := res.Recording.Manifest
	why := ""
	if res.NotSealed != nil {
		why = res.NotSealed.Error()
	}
	return &recordResult{
		Sealed: res.Sealed, NotSealed: why, Daemon: m.Daemon, DaemonLost: daemonNews(res),
		Recording: res.Recording.Dir, ID: m.ID, Exit: res.Exit, Records: res.Counts, MCP: m.MCP, Changed: res.Changed, Beside: res.Beside,
		NotCovered: m.NotCovered(), Axes: m.Axes,
	}
}

func bothNews(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

// sealNews is what is news of the seal: that there is none, and why, or where the key lies that was made; "" for nothing.
func sealNews(res *deck.Result) string {
	switch {
	case res.NotSealed != nil:
		return fmt.Sprintf("not sealed: %v; the recording is whole: once that is mended, `tapedeck seal %s` seals it",
			res.NotSealed, shortPath(res.Recording.Dir))
	case res.Sealed != nil && res.Sealed.KeyMade:
		return keyMade()
	}
	return ""
}

func keyMade() string {
	return "made a sealing key; who is to check your recordings needs its public half, " + sealing.KeyPath("")
}

// lastLine says where the recording lies, what was seen and what was not covered: first what is news of this run.
func lastLine(res *deck.Result, isolated bool) string {
	rec := res.Recording
	line := fmt.Sprintf("tapedeck: recorded %s: %s, exit %d", shortPath(rec.Dir), seen(res), res.Exit.Code)
	if isolated && res.Changed+res.Beside > 0 {
		line += "; none of that is on the disk (tapedeck apply REC puts the work tree's files there)"
	}
	if rec.Manifest.Proxy && res.Counts["llm_call"]+res.Counts["http_exchange"] == 0 {
		line += "; " + deck.NothingCame
	}
	if len(res.Silent) > 0 {
		line += "; no answer from " + strings.Join(shortList(res.Silent, 2, rec.Manifest.ID), ", ")
	}
	if len(res.Unreached) > 0 {
		line += "; " + unreached(res.Unreached)
	}
	return line + "; not covered: " + uncovered(rec.Manifest)
}

// uncovered says what a recording does not cover: of what is its own a few items of each axis, and what is usual in short.
func uncovered(m *recording.Manifest) string {
	usual := deck.UsualGaps()
	var gaps []string
	for _, name := range sortedKeys(m.Axes) {
		var own []string
		for _, g := range m.Axes[name].NotCovered {
			switch _, always := usual[g]; {
			case always:
				gaps = append(gaps, g)
			case g != deck.NothingCame: // said before all else
				own = append(own, g)
			}
		}
		gaps = append(gaps, shortList(own, 2, m.ID)...)
	}
	return fidelity.Uncovered(gaps, usual)
}

// unreached says how what the program did not reach is recorded.
func unreached(list []follow.Unreached) string {
	var flags []string
	for i := range list[:min(len(list), 3)] {
		flags = append(flags, "--upstream "+list[i].Upstream())
	}
	return "to let it reach a server on this host: record " + strings.Join(flags, " ") + " -- CMD"
}

// seen counts what people ask for first.
func seen(res *deck.Result) string {
	var parts []string
	counts := res.Counts
	exchanges := counts["http_exchange"] - res.MCP.Carried
	if n := counts["llm_call"]; n > 0 || exchanges == 0 && len(res.MCP.Servers) == 0 {
		parts = append(parts, plural(n, "LLM call", "LLM calls")+unanswered(n, res.Unanswered["llm_call"]))
	}
	if n := exchanges; n > 0 {
		parts = append(parts, plural(n, "HTTP exchange", "HTTP exchanges")+unanswered(n, res.Unanswered["http_exchange"]))
	}
	if said := mcpCalls(&res.MCP); said != "" {
		parts = append(parts, said)
	}
	if n := counts["ws_open"]; n > 0 {
		parts = append(parts, plural(n, "WebSocket", "WebSockets"))
	}
	if res.Changed > 0 {
		parts = append(parts, plural(res.Changed, "file changed", "files changed"))
	}
	if res.Beside > 0 {
		parts = append(parts, plural(res.Beside, "file", "files")+" beside the work tree")
	}
	if n := counts["net_refused"] + counts["tls_refused"]; n > 0 {
		parts = append(parts, plural(n, "connection refused", "connections refused"))
	}
	return strings.Join(parts, ", ")
}

// mcpCalls counts calls of tool servers: "3 MCP calls", "3 MCP calls to 2 servers"; "" where there was no server.
func mcpCalls(m *recording.MCPSeen) string {
	if m == nil || len(m.Servers) == 0 {
		return ""
	}
	said := plural(m.Calls, "MCP call", "MCP calls")
	if n := len(m.Servers); n > 1 {
		said += fmt.Sprintf(" to %d servers", n)
	}
	return said
}

// unanswered says how many of n exchanges got no answer; "" for none.
func unanswered(n, silent int) string {
	switch silent {
	case 0:
		return ""
	case n:
		return " without an answer"
	}
	return fmt.Sprintf(" (%d without an answer)", silent)
}

// shortList is list, of which only the first most entries are told and the rest counted. id is the recording's.
func shortList(list []string, most int, id string) []string {
	if len(list) <= most+1 {
		return list
	}
	return append(list[:most:most], fmt.Sprintf("%d more (tapedeck show %s --coverage)", len(list)-most, id))
}

// shortPath is path relative to the working directory where that is shorter.
func shortPath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// catchSignals returns the signals that are meant for the program.
func catchSignals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, procgroup.Passed...)
	// A reader that has gone must end the program, not the recorder: writes then fail instead.
	signal.Ignore(procgroup.BrokenPipe...)
	return ch, func() {
		signal.Stop(ch)
		signal.Reset(procgroup.BrokenPipe...)
	}
}

// logger writes what the recorder has to say beside its result.
func logger(w io.Writer) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("TAPEDECK_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// recordDaemon are the flags of record that tell the run to a daemon.
type recordDaemon struct {
	url    string
	intent string
	agent  string
}

func (o *recordDaemon) add(f *pflag.FlagSet) {
	f.StringVar(&o.url, "daemon", "", "`URL` of a daemon (ws://HOST:PORT, unix:PATH) that is told each tool call as it happens")
	f.StringVar(&o.intent, "intent", "", "`TEXT` that says what the run is for; with --daemon")
	f.StringVar(&o.agent, "agent", "", "`NAME` of the agent; with --daemon (default: the program's, or that of the script that an interpreter runs)")
}

// options are those of the deck; nil where no daemon is named.
func (o *recordDaemon) options() (*daemon.Options, error) {
	switch {
	case o.url == "" && o.intent+o.agent != "":
		return nil, errors.New("--intent and --agent are for a daemon: name it with --daemon URL")
	case o.url == "":
		return nil, nil
	case o.intent == "":
		return nil, errors.New("--daemon wants to know what the run is for: add --intent TEXT")
	}
	return &daemon.Options{URL: o.url, Intent: o.intent, Agent: o.agent}, nil
}

func daemonNews(res *deck.Result) string {
	if res.DaemonLost == nil {
		return ""
	}
	return res.DaemonLost.Error()
}
