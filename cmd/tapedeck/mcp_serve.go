package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type mcpServeOptions struct {
	server string
	http   string
	live   string
	args   []string // of live
}

func newMCPServeCommand(std streams) *cobra.Command {
	var o mcpServeOptions
	cmd := &cobra.Command{
		Use:   "serve REC [--server NAME] [--http ADDR] [--live-fallback CMD [ARG…]]",
		Short: "Answer any MCP client as a recorded server did",
		Long: `Answers as an MCP server that REC holds a talk with: over stdin and stdout, or with --http ADDR over Streamable HTTP, at
http://ADDR/mcp, and over the older HTTP+SSE, at http://ADDR/sse. No server runs.

Any client is answered, in whatever order it asks: initialize as it was recorded, tools/list and the rest by method and parameters
(what stands in _meta aside), equal requests in recorded order and after the last that one again. What the server asked while it
worked on a request (sampling, roots, elicitation) the client is asked again, if it can be; what it said unasked follows the answer
that it followed then. A tape that holds calls alone, as other producers write them, is introduced by what those name. What is not on the tape is an error that names the nearest request that is, and where the two differ.

With --live-fallback, and only then, CMD is started when a client asks for something that the tape lacks, and asked instead; each
request that it is asked is said on stderr. What follows CMD is CMD's own, a first argument with a dash behind "--".

REC is a recording, packed ones too, or a bare tape. Where it holds several servers --server names one; NAME#2 is the second talk with
NAME alone.

Exit status: 0 when the client has ended, or a signal came; 1 it could not begin.`,
		Example: `  tapedeck mcp serve last
  tapedeck mcp serve last --server filesystem --http 127.0.0.1:8931
  tapedeck mcp serve last --live-fallback npx -- -y @modelcontextprotocol/server-filesystem .`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && o.live != "" {
				return nil
			}
			return takes("REC")(cmd, args)
		},
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args[1:]
			return runMCPServe(cmd.Context(), &o, args[0], std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.server, "server", "", "`NAME` of the server, where REC holds several")
	f.StringVar(&o.http, "http", "", "serve over HTTP at `ADDR`, as 127.0.0.1:8931, in the place of stdin and stdout")
	f.Var(&lastFlag{&o.live, f}, "live-fallback", "start `CMD` for what the tape lacks, and ask it")
	return cmd
}

// A lastFlag takes a program: what follows are its arguments.
type lastFlag struct {
	value *string
	flags *pflag.FlagSet
}

func (l *lastFlag) String() string { return "" }
func (l *lastFlag) Type() string   { return "string" }

func (l *lastFlag) Set(s string) error {
	if s == "" {
		return errors.New("want a program")
	}
	*l.value = s
	l.flags.SetInterspersed(false)
	return nil
}

func runMCPServe(ctx context.Context, o *mcpServeOptions, name string, std streams) error {
	path, err := tapeOrRecording(name)
	if err != nil {
		return err
	}
	if err := notForCassette(path); err != nil {
		return err
	}
	path, clean, err := unpacked(ctx, path, newProgress(std.err))
	if err != nil {
		return err
	}
	defer clean()
	book, err := derive.OpenMCPBook(path, os.Environ())
	if err != nil {
		return err
	}
	defer book.Close()
	served, err := book.Named(o.server)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	say := func(text string) { visible.Fprintf(std.err, "tapedeck: %s\n", text) }
	so := &mcp.ServeOptions{In: std.in, Out: std.out, Err: std.err, Lenient: true, Reveal: book.Reveal, Say: say}
	if o.live != "" {
		so.Live = &mcp.Live{Command: append([]string{o.live}, o.args...), Stderr: std.err, Used: say}
	}
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

// serveMCPOverHTTP serves until ctx is done.
func serveMCPOverHTTP(ctx context.Context, addr string, served *mcp.Served, o *mcp.ServeOptions) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(mcpPath, served.Handler(ctx, o))
	mux.Handle(mcpSSEPath, served.SSEHandler(ctx, o))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	o.Say("answering as " + served.Recorded().Server + " at http://" + l.Addr().String() + mcpPath)
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
