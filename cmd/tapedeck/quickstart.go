package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/demoagent"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type quickstartOptions struct {
	dir string
}

func newQuickstartCommand(std *console) *cobra.Command {
	var o quickstartOptions
	cmd := command("quickstart", "", func(cmd *cobra.Command, _ []string) error { return runQuickstart(cmd.Context(), &o, std) })
	cmd.Flags().StringVar(&o.dir, "dir", "", "work in this `directory` and leave it (default: a temporary one)")
	std.jsonFlag(cmd, "what came of it as JSON on stdout, its recording null without --dir; the tour itself on stderr")
	cmd.AddCommand(newQuickstartAgentCommand(std), newQuickstartEndpointCommand(std))
	return cmd
}

// newQuickstartAgentCommand is the agent that quickstart records: a program of its own as far as the recorder can tell.
func newQuickstartAgentCommand(std *console) *cobra.Command {
	return command("quickstart agent", "PROMPT", func(cmd *cobra.Command, args []string) error {
		status := demoagent.Run(cmd.Context(), &demoagent.Options{
			Prompt: args[0], APIKey: os.Getenv("ANTHROPIC_API_KEY"), BaseURL: os.Getenv("ANTHROPIC_BASE_URL"),
			Stdout: std.out, Stderr: std.err,
		})
		if status != 0 {
			return &statusError{status: status}
		}
		return nil
	})
}

func runQuickstart(ctx context.Context, o *quickstartOptions, std *console) error {
	shown := std.streams
	if std.json {
		shown.out = std.err
	}
	tour, err := newTour(o.dir, shown)
	if err != nil {
		return err
	}
	defer tour.close()
	if err := tour.run(ctx); err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	if std.json {
		return printJSON(std.out, map[string]any{"recording": tour.left(), "unchanged": tour.green, "changed": tour.red})
	}
	return nil
}

// newQuickstartEndpointCommand is the endpoint that quickstart records its agent against, for whoever wants to go on from there.
func newQuickstartEndpointCommand(std *console) *cobra.Command {
	var listen string
	cmd := command("quickstart endpoint", "", func(cmd *cobra.Command, _ []string) error { return runQuickstartEndpoint(cmd.Context(), listen, std) })
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "TCP `address`, port 0 for a free one")
	return cmd
}

func runQuickstartEndpoint(ctx context.Context, listen string, std *console) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	return serveHTTP(ctx, listen, scriptedllm.New(nil), func(at net.Addr) { std.say("a scripted model at http://%s", at) })
}

// serveHTTP serves at a TCP address, which ready is told once it is ours, until ctx ends.
func serveHTTP(ctx context.Context, address string, h http.Handler, ready func(at net.Addr)) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	ready(l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// The two prompts of the tour, which differ in what its verdict must show.
const (
	tourPrompt  = "write hello.txt"
	tourChanged = "write goodbye.txt"
)

// A tour is one quickstart: a directory, a scripted endpoint and the recording made there.
type tour struct {
	std     streams
	dir     string // the work tree
	home    string // empty, and removed at the end
	remove  bool   // dir too
	proxy   bool   // there is no jail here: outside of it
	self    string
	server  *http.Server
	served  chan struct{} // closed when server has ended
	address string
	rec     *recording.Recording

	green, red *fidelity.Report // of the unchanged agent and of the changed one
}

// newTour makes the directories and starts the endpoint. The tour must be closed.
func newTour(dir string, std streams) (*tour, error) {
	t := &tour{std: std, dir: dir, remove: dir == "", served: make(chan struct{})}
	if err := t.start(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tour) start() (err error) {
	if err := deck.Available(); err != nil {
		if deck.AvailableOutside() != nil {
			return err
		}
		t.proxy = true
	}
	if t.self, err = os.Executable(); err != nil {
		return err
	}
	if t.home, err = os.MkdirTemp("", "tapedeck-home-"); err != nil {
		return err
	}
	if t.remove {
		if t.dir, err = os.MkdirTemp("", "tapedeck-quickstart-"); err != nil {
			return err
		}
	} else if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.address = "http://" + l.Addr().String()
	t.server = &http.Server{Handler: scriptedllm.New(nil), ReadHeaderTimeout: 10 * time.Second}
	go func() { // ends with stopEndpoint, which waits for it
		defer close(t.served)
		t.server.Serve(l)
	}()
	return nil
}

func (t *tour) stopEndpoint() {
	if t.server != nil {
		t.server.Close()
		<-t.served
	}
}

func (t *tour) close() {
	t.stopEndpoint()
	os.RemoveAll(t.home)
	if t.remove {
		os.RemoveAll(t.dir)
	}
}

// left is the path of the recording that the tour leaves behind; nil where it is removed with the rest.
func (t *tour) left() *string {
	if t.remove {
		return nil
	}
	return &t.rec.Dir
}

func (t *tour) run(ctx context.Context) error {
	begun := time.Now()
	if t.proxy {
		why := strings.TrimPrefix(deck.Available().Error(), deck.ErrUnavailable.Error()+": ")
		t.say("There is no jail here: %s.\nThis tour runs the agent outside of it, with --proxy.\n", why)
	}
	if err := t.record(ctx); err != nil {
		return err
	}
	t.stopEndpoint()
	if err := t.replayGreen(ctx); err != nil {
		return err
	}
	if err := t.replayRed(ctx); err != nil {
		return err
	}
	t.say("Done in %.1f s. Now yours:", time.Since(begun).Seconds())
	t.sayCommand(t.command("record") + " -- your-agent …")
	t.sayCommand(t.command("replay") + " last")
	if !t.remove {
		t.say("\nThe recording stays in %s.", t.rec.Dir)
	}
	return nil
}

func (t *tour) record(ctx context.Context) error {
	t.say("1. Record an agent. The endpoint is scripted: no key, no network.\n")
	t.sayCommand(fmt.Sprintf("%s --upstream api.anthropic.com=%s -- tapedeck quickstart agent %q", t.command("record"), t.address, tourPrompt))
	res, err := deck.Record(ctx, &deck.RecordOptions{
		Argv: t.agent(tourPrompt), Dir: t.dir, Tree: t.dir, Env: t.env(),
		Streams:   t.streams(),
		Upstreams: map[string]string{"api.anthropic.com": t.address},
		Proxy:     t.proxy,
		Log:       logger(t.std.err),
	})
	if err != nil {
		return err
	}
	t.rec = res.Recording
	visible.Fprintf(t.std.out, "  %s\n\n", lastLine(res, false))
	if res.Exit.Code != 0 {
		return fmt.Errorf("the agent ended with status %d", res.Exit.Code)
	}
	if _, err := os.Stat(filepath.Join(t.dir, "hello.txt")); err != nil {
		return errors.New("the agent did not write hello.txt")
	}
	return nil
}

func (t *tour) replayGreen(ctx context.Context) error {
	t.say("2. Take the endpoint away and replay. Every answer comes from the tape.\n")
	t.sayCommand(t.command("replay") + " last")
	v, err := t.replay(ctx, nil)
	if err != nil {
		return err
	}
	if t.green = v.Report; !v.Faithful() {
		return errors.New("the replay diverged, and it should not have")
	}
	return nil
}

func (t *tour) replayRed(ctx context.Context) error {
	t.say("3. Change the prompt and replay against the same tape. It must say what changed.\n")
	t.sayCommand(fmt.Sprintf("%s last -- tapedeck quickstart agent %q", t.command("replay"), tourChanged))
	v, err := t.replay(ctx, t.agent(tourChanged))
	if err != nil {
		return err
	}
	if t.red = v.Report; v.Faithful() {
		return errors.New("the replay was green, and it should have diverged")
	}
	return nil
}

func (t *tour) replay(ctx context.Context, argv []string) (*deck.Verdict, error) {
	v, err := deck.Replay(ctx, t.rec, &deck.ReplayOptions{
		Argv: argv, Env: t.env(), Streams: t.streams(), Log: logger(t.std.err), Proxy: t.proxy,
	})
	if err != nil {
		return nil, err
	}
	text := &indenter{w: t.std.out}
	if err := v.WriteText(text, &fidelity.TextOptions{Color: colour(t.std.out), Width: width(t.std.out) - 2}); err != nil {
		return nil, err
	}
	visible.Fprintln(t.std.out)
	return v, nil
}

// agent is the command line of the recorded agent: this executable, as a program of its own.
func (t *tour) agent(prompt string) []string { return []string{t.self, "quickstart", "agent", prompt} }

// env is a small environment with a key that is no key: it must not be found in the recording.
func (t *tour) env() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.home, "ANTHROPIC_API_KEY=sk-ant-quickstart-not-a-key"}
	if t.proxy { // in clear as far as the recorder: a Go program on macOS trusts no certificate but the keychain's
		env = append(env, "ANTHROPIC_BASE_URL=http://api.anthropic.com")
	}
	return env
}

// streams show the agent's output indented, so that it stands apart from ours.
func (t *tour) streams() deck.Streams {
	w := &indenter{w: t.std.out}
	return deck.Streams{Stdout: w, Stderr: w}
}

// command is a command's name with the flag that the tour needs here.
func (t *tour) command(name string) string {
	if t.proxy {
		return name + " --proxy"
	}
	return name
}

func (t *tour) say(format string, args ...any) { visible.Fprintf(t.std.out, format+"\n", args...) }

func (t *tour) sayCommand(args string) {
	visible.Fprintf(t.std.out, "  $ tapedeck %s\n", strings.TrimSpace(args))
}
