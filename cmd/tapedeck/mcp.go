package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/mcptest"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newMCPCommand(std *console) *cobra.Command {
	return commandGroup("mcp", newMCPServeCommand(std), newMCPTestCommand(std), newMCPWrapCommand(std))
}

type mcpServeOptions struct {
	server string
	http   string
}

func newMCPServeCommand(std *console) *cobra.Command {
	var o mcpServeOptions
	cmd := command("mcp serve", "REC", func(cmd *cobra.Command, args []string) error { return runMCPServe(cmd.Context(), &o, args[0], std) })
	f := cmd.Flags()
	f.StringVar(&o.server, "server", "", "`NAME` of the server, where REC holds several")
	f.StringVar(&o.http, "http", "", "serve over HTTP at `ADDR`, as 127.0.0.1:8931, in the place of stdin and stdout")
	return cmd
}

func runMCPServe(ctx context.Context, o *mcpServeOptions, name string, std *console) error {
	path, clean, err := anyTape(ctx, name, newProgress(std.err))
	if err != nil {
		return err
	}
	defer clean()
	book, err := derive.OpenMCPBook(path, os.Environ(), nil)
	if err != nil {
		return err
	}
	defer book.Close()
	served, err := book.Named(o.server)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	say := func(text string) { std.say("%s", text) }
	so := &mcp.ServeOptions{In: std.in, Out: std.out, Err: std.err, Lenient: true, Reveal: book.Reveal, Say: say}
	if o.http != "" {
		return serveMCPOverHTTP(ctx, o.http, served, so)
	}
	_, err = served.Serve(ctx, so)
	return err
}

// Where the server is: over Streamable HTTP, and for clients that speak the HTTP+SSE before it.
const (
	mcpPath    = "/mcp"
	mcpSSEPath = "/sse"
)

func serveMCPOverHTTP(ctx context.Context, addr string, served *mcp.Served, o *mcp.ServeOptions) error {
	mux := http.NewServeMux()
	mux.Handle(mcpPath, served.Handler(ctx, o))
	mux.Handle(mcpSSEPath, served.SSEHandler(ctx, o))
	return serveHTTP(ctx, addr, mux, func(at net.Addr) {
		o.Say("answering as " + served.Recorded().Server + " at http://" + at.String() + mcpPath)
	})
}

func newMCPWrapCommand(std *console) *cobra.Command {
	var o deck.RecordOptions
	cmd := recorderCommand("mcp wrap", "SERVER…", func(ctx context.Context, argv []string) (int, error) { return runMCPWrap(ctx, &o, argv, std) })
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "`directory` of the recording (default: a new one in .tapedeck/)")
	f.BoolVar(&o.Sync, "sync", false, "fsync at every barrier, so that a power cut loses nothing that the client saw")
	f.BoolVar(&o.NoSeal, "no-seal", false, "do not seal the recording at its end")
	return cmd
}

func runMCPWrap(ctx context.Context, o *deck.RecordOptions, args []string, std *console) (exit int, err error) {
	if o.Output == "" && program.InJail() { // whose recorder sees the conversation, and in which .tapedeck cannot be written to
		return 0, becomeServer(args)
	}
	boundMemory()
	signals, stop := catchSignals()
	defer stop()
	o.Argv, o.Streams, o.Signals, o.Log, o.Hiding = args, std.ofProgram(), signals, logger(std.err), newProgress(std.err).hiding
	res, err := deck.WrapMCP(ctx, o)
	if err != nil {
		return 0, err
	}
	line := fmt.Sprintf("tapedeck: recorded %s: %s, exit %d", shortPath(res.Recording.Dir), wrappedSeen(res), res.Exit.Code)
	if news := sealNews(res); news != "" {
		line += "; " + news
	}
	_, err = visible.Fprintln(std.err, line)
	return res.Exit.Code, err
}

// becomeServer runs the server in the place of this process. It returns where that cannot be.
func becomeServer(args []string) error {
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = syscall.Exec(path, args, os.Environ())
	}
	return err
}

func wrappedSeen(res *deck.Result) string {
	if res.Counts["mcp_open"] == 0 {
		return "NOTHING WAS SAID THAT IS MCP"
	}
	text := seen(res)
	if lost := res.Recording.Manifest.Axes["mcp"].NotCovered; len(lost) > 0 {
		text += "; not covered: " + strings.Join(lost, ", ")
	}
	return text
}

type mcpTestOptions struct {
	mcptest.Options
	header []string
}

func newMCPTestCommand(std *console) *cobra.Command {
	var o mcpTestOptions
	cmd := withHelp("mcp test", &cobra.Command{
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); o.URL == "" && (dash != 1 || len(args) < 2) || o.URL != "" && len(args) != 1 {
				return fmt.Errorf("mcp test takes one REC, and the server behind -- or --url: tapedeck mcp test last -- python3 server.py")
			}
			return runMCPTest(cmd.Context(), &o, args[0], args[1:], std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.Server, "server", "", "`NAME` of the server, where REC holds several")
	f.StringVar(&o.URL, "url", "", "`URL` of a server over HTTP, in the place of one behind --")
	f.StringArrayVar(&o.header, "header", nil, "`NAME: VALUE` of a header of each request there, as a key (repeatable)")
	f.DurationVar(&o.Timeout, "timeout", mcptest.DefaultTimeout, "how long an answer may take")
	std.jsonFlag(cmd, "a line of JSON a request, and one for all")
	return cmd
}

func runMCPTest(ctx context.Context, o *mcpTestOptions, name string, argv []string, std *console) error {
	path, clean, err := anyTape(ctx, name, newProgress(std.err))
	if err != nil {
		return err
	}
	defer clean()
	ctx, stop := interruptible(ctx)
	defer stop()
	if o.Header, err = o.headers(std.err); err != nil {
		return err
	}
	o.Argv, o.Env, o.Stderr = argv, os.Environ(), std.err
	o.Report = func(r *mcptest.Result) {
		if std.json {
			printLine(std.out, r)
			return
		}
		printMCPTest(std.out, r)
	}
	results, err := mcptest.Run(ctx, path, &o.Options)
	if err != nil {
		return orInterrupted(err)
	}
	counts := make(map[mcptest.Status]int)
	for _, r := range results {
		counts[r.Status]++
	}
	status := statusDone
	if counts[mcptest.Differs]+counts[mcptest.NoAnswer] > 0 {
		status = statusDiverged
	}
	if std.json {
		printLine(std.out, map[string]any{"summary": counts, "exit": status})
	} else {
		text := plural(len(results), "request", "requests")
		for _, s := range []mcptest.Status{mcptest.Same, mcptest.Differs, mcptest.NoAnswer, mcptest.NotCompared} {
			if counts[s] > 0 {
				text += fmt.Sprintf(", %d %s", counts[s], s)
			}
		}
		visible.Fprintln(std.out, text)
	}
	if status != statusDone {
		return &statusError{status: status}
	}
	return nil
}

// headers reads --url and --header, and says whom that means.
func (o *mcpTestOptions) headers(w io.Writer) (http.Header, error) {
	if o.URL == "" && len(o.header) > 0 {
		return nil, errors.New("--header is for a server over HTTP: add --url")
	}
	h := make(http.Header)
	for _, line := range o.header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, errors.New("--header: want NAME: VALUE, as in 'Authorization: Bearer KEY'")
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if o.URL == "" {
		return h, nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("--url: want http://HOST/PATH or https://HOST/PATH")
	}
	visible.Fprintf(w, "tapedeck: asking %s://%s%s what recorded clients asked\n", u.Scheme, u.Host, u.Path) // its query may hold a key
	return h, nil
}

// maxMCPChanges is how many differences of one answer are printed.
const maxMCPChanges = 20

func printMCPTest(w io.Writer, r *mcptest.Result) {
	word := string(r.Status)
	if r.Status == mcptest.Differs || r.Status == mcptest.NoAnswer {
		word = strings.ToUpper(word)
	}
	visible.Fprintf(w, "%-12s %s  %.0f ms\n", word, strings.TrimSpace(r.Server+" "+r.Method+" "+r.Tool), r.MS)
	if r.Why != "" {
		visible.Fprintf(w, "         | %s\n", visible.Line(r.Why))
	}
	below(w, fidelity.Summary(r.Changes, maxMCPChanges))
}
