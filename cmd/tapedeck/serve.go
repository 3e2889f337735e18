package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/otlp"
	"github.com/tapedeck-dev/tapedeck/deck/queue"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/deck/team/remote"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/seal"
)

type serveOptions struct {
	daemon.Options
	policies        string
	builtins, allow []string
	log             logOptions
	otlp            otlpOptions
}

// logOptions say how the daemon's log is written.
type logOptions struct{ format, level string }

var builtins = []string{"drive_cli", "check_outcome"}

func newServeCommand(std *console) *cobra.Command {
	var o serveOptions
	cmd := command("serve", "", func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), &o, std) })
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "", "TCP `address`, port 0 for a free one (default "+daemon.DefaultListen+", none where --socket is given)")
	f.StringVar(&o.Socket, "socket", "", "`path` of a Unix socket, for processes of this user alone")
	f.StringVar(&o.Data, "data", "", "`directory` that keeps the runs, made where it is not there (default: tapedeck/daemon in the XDG state directory)")
	f.StringVar(&o.Tokens, "tokens", "", "`directory` for the files of tokens (default: tapedeck/ in the XDG runtime, else config directory)")
	f.BoolVar(&o.NoAuth, "no-auth", false, "let in who reaches the address, without a token; on loopback alone")
	f.StringVar(&o.policies, "policies", "", "`file` with policies, YAML or JSON, for every proposal (docs/reference/policy.md)")
	f.StringSliceVar(&o.builtins, "builtin", nil, "turn on a built-in `tool`: "+strings.Join(builtins, ", ")+" (repeatable, or with commas)")
	f.StringSliceVar(&o.allow, "allow", nil, "a `command` that built-in tools may start (repeatable, or with commas)")
	f.DurationVar(&o.Grace, "grace", daemon.DefaultGrace, "how long a run stays open whose connection went away; 0 for not at all")
	f.DurationVar(&o.Drain, "drain", daemon.DefaultDrain, "how long requests in service may take once the daemon is to stop")
	f.DurationVar(&o.DecideWithin, "decide-within", daemon.DefaultDecideWithin, "how long something waits for a person before it is denied (tapedeck runs supervise)")
	o.log.define(cmd)
	o.otlp.add(f, "spans of runs, turns and verdicts for OpenTelemetry, to the `URL` of a receiver while they go on; env: as the environment has it")
	std.jsonFlag(cmd, "what is ready as a JSON object on stdout")
	completeFlag(cmd, "builtin", builtins...)
	return cmd
}

func (o *logOptions) define(cmd *cobra.Command) {
	wordFlag(cmd, &o.format, "log-format", "text", "`form` of the log: text, json", "text", "json")
	wordFlag(cmd, &o.level, "log-level", "info", "the `least` that is logged: debug, info, warn, error", "debug", "info", "warn", "error")
}

func (o *logOptions) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.level)) // one of those that the flag takes
	ho := &slog.HandlerOptions{Level: level}
	if o.format == "json" {
		return slog.New(slog.NewJSONHandler(w, ho))
	}
	return slog.New(slog.NewTextHandler(w, ho))
}

// maxSocket is how long the path of a Unix socket can be on every system.
const maxSocket = 103

// check refuses what cannot go together, before anything is opened.
func (o *serveOptions) check() error {
	switch {
	case o.NoAuth && len(o.builtins) > 0:
		return errors.New("--builtin and --no-auth: whoever reaches the address could start programs: leave one out")
	case len(o.builtins) > 0 && len(o.allow) == 0:
		return errors.New("--builtin: no command may be started: name those that may with --allow")
	case len(o.builtins) == 0 && len(o.allow) > 0:
		return errors.New("--allow says what built-in tools may start, and none is on: --builtin " + strings.Join(builtins, " or "))
	case o.Grace < 0:
		return fmt.Errorf("--grace %v: want a time of 0 or more", o.Grace)
	case o.DecideWithin <= 0:
		return fmt.Errorf("--decide-within %v: want a time of more than 0", o.DecideWithin)
	case o.Drain <= 0:
		return fmt.Errorf("--drain %v: want a time of more than 0", o.Drain)
	}
	if _, _, err := net.SplitHostPort(o.Listen); o.Listen != "" && err != nil {
		return fmt.Errorf("--listen %q: want HOST:PORT, as in %s", o.Listen, daemon.DefaultListen)
	}
	if len(o.Socket) > maxSocket {
		return fmt.Errorf("--socket: %d bytes: want a path of at most %d, or the system cannot bind it", len(o.Socket), maxSocket)
	}
	for _, name := range o.builtins {
		if !slices.Contains(builtins, name) {
			return fmt.Errorf("--builtin %q: want one of %s", name, strings.Join(builtins, ", "))
		}
	}
	return nil
}

// fill checks the options of the daemon, and sets those that flags name in words of their own.
func (o *serveOptions) fill(std *console) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	o.Logger = o.log.logger(std.err)
	if o.Data, err = filepath.Abs(cmp.Or(o.Data, defaultData())); err != nil {
		return err
	}
	if o.Grace == 0 {
		o.Grace = -1
	}
	for _, name := range o.builtins {
		o.Builtins = append(o.Builtins, daemon.Builtin{Name: name, Commands: o.allow})
	}
	if o.policies == "" {
		return nil
	}
	o.Policies, err = policy.ReadFile(o.policies)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return fmt.Errorf("--policies: %w; docs/reference/policy.md says what stands in such a file", err)
	}
	return err
}

func runServe(ctx context.Context, o *serveOptions, std *console) error {
	if err := o.fill(std); err != nil {
		return err
	}
	end, err := o.spans(std)
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := interruptible(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop() // before it is said: who reads it may send the second signal
		std.say("stopping; once more ends it at once")
	})()
	var opened func()
	o.Progress, opened = opening(std.err, o.Logger)
	d, err := daemon.Open(ctx, &o.Options)
	opened()
	if err != nil {
		return err
	}
	if err := o.ready(d.URL(), std); err != nil { // nobody can be told where it is
		return errors.Join(err, d.Shutdown(context.WithoutCancel(ctx)))
	}
	if err := d.Serve(ctx); err != nil {
		return err
	}
	std.say("stopped")
	return nil
}

// spans has the daemon tell its runs to the receiver that --otlp names. end sends what is left, and says what was not sent.
func (o *serveOptions) spans(std *console) (end func(), err error) {
	to, err := o.otlp.receiver()
	if err != nil || to == nil {
		return func() {}, err
	}
	var content func([]byte) []byte
	if o.otlp.wantsContent() {
		hide := secretsOut()
		content = func(b []byte) []byte { return []byte(hide(string(b))) }
	}
	std.say("spans of runs go to %s%s", to, o.otlp.with())
	host, _ := os.Hostname() // one without a name is none
	runs := otlp.NewRuns(to, host, content)
	o.Spans = runs
	return func() {
		if t := runs.Close(otlpPatience); t.Dropped > 0 {
			std.say("%s", t.Lost())
		}
	}, nil
}

// opening tells how far a store that takes a while to open has come: on a terminal in a line that changes, else in the log.
func opening(w io.Writer, log *slog.Logger) (step func(phase string, done, total uint64), end func()) {
	const every = 5 * time.Second
	p := newProgress(w)
	last := time.Now()
	return func(phase string, done, total uint64) {
		p.show(func() string { return fmt.Sprintf("%s: %d%%", phase, percent(int64(done), int64(total))) })
		if p.w == nil && time.Since(last) > every {
			last = time.Now()
			log.Info("opening the store", "phase", phase, "done", done, "total", total)
		}
	}, p.end
}

// served is what --json says once the daemon is ready.
type served struct {
	URL           string `json:"url"`
	Socket        string `json:"socket,omitempty"`
	Data          string `json:"data"`
	Auth          bool   `json:"auth"`
	TokenFile     string `json:"token_file,omitempty"`
	HostTokenFile string `json:"host_token_file,omitempty"`
	PID           int    `json:"pid"`
}

// ready says where the daemon is, and where its tokens are.
func (o *serveOptions) ready(url string, std *console) error {
	s := served{URL: url, Socket: o.Socket, Data: o.Data, Auth: !o.NoAuth, PID: os.Getpid()}
	if s.Auth {
		agent, errAgent := token.File(o.Tokens, url, false)
		host, errHost := token.File(o.Tokens, url, true)
		if err := errors.Join(errAgent, errHost); err != nil {
			return err
		}
		s.TokenFile, s.HostTokenFile = agent, host
	}
	if std.json { // on one line: who waits for it reads no further
		return printLine(std.out, s)
	}
	at := s.URL
	if s.Socket != "" && !strings.HasPrefix(at, "unix:") {
		at += " and unix:" + s.Socket
	}
	text := fmt.Sprintf("tapedeck: serving at %s\ntapedeck: runs in %s\n", at, s.Data)
	if s.Auth {
		text += fmt.Sprintf("tapedeck: token in %s, the host's beside it\n", s.TokenFile)
	} else {
		text += "tapedeck: without a token: every process on this machine may use it\n"
	}
	if o.policies != "" {
		text += fmt.Sprintf("tapedeck: %s in force for every proposal, of %s\n", plural(len(o.Policies), "policy", "policies"), o.policies)
	}
	_, err := io.WriteString(std.err, visible.Text(text))
	return err
}

func newStoreCommand(std *console) *cobra.Command {
	return commandGroup("store", newStoreServeCommand(std), newStoreGrantCommand(std), newStoreRevokeCommand(), newStoreTokensCommand(std), newStoreAuditCommand(std))
}

type storeServeOptions struct {
	storeFlags
	listen, cert, key    string
	maxPush, maxUnpacked int64
	log                  logOptions
}

func newStoreServeCommand(std *console) *cobra.Command {
	var o storeServeOptions
	cmd := command("store serve", "", func(cmd *cobra.Command, _ []string) error {
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error { return runStoreServe(ctx, s, &o, std) })
	})
	f := cmd.Flags()
	o.definePlaces(f)
	f.StringVar(&o.listen, "listen", "127.0.0.1:9200", "TCP `address`, port 0 for a free one; one that other machines reach wants --tls-cert")
	f.StringVar(&o.cert, "tls-cert", "", "`file` with the certificate of the server and those above it, PEM")
	f.StringVar(&o.key, "tls-key", "", "`file` with its key, PEM")
	parsedFlag(f, &o.maxPush, "max-push", "2G", "take no packed recording of more `bytes` than this: a number with K, M, G or T", parseSize)
	parsedFlag(f, &o.maxUnpacked, "max-size", "8G", "take none that unpacks to more `bytes` than this", parseSize)
	o.log.define(cmd)
	return cmd
}

func runStoreServe(ctx context.Context, s *team.Store, o *storeServeOptions, std *console) (err error) {
	server := remote.Options{Store: s, MaxPush: o.maxPush, MaxUnpacked: o.maxUnpacked}
	server.Logger = o.log.logger(std.err)
	if server.Signer, err = seal.LoadKey(recording.ConfigDir("")); err != nil {
		return err
	}
	if server.Queue, err = queue.Open(ctx, s); err != nil {
		return err
	}
	defer server.Queue.Close()
	scheme := "http"
	if o.cert != "" || o.key != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return prefixedError("--tls-cert", err)
		}
		scheme, server.TLS = "https", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return prefixedError("--listen", err)
	}
	defer l.Close()
	if at, err := netip.ParseAddrPort(l.Addr().String()); server.TLS == nil && (err != nil || !at.Addr().IsLoopback()) {
		return fmt.Errorf("--listen %s: tokens would cross the network in the clear: want --tls-cert and --tls-key, or an address of this machine alone", o.listen)
	}
	std.say("serving %s at %s://%s", s.Name(), scheme, l.Addr())
	return remote.New(&server).Serve(ctx, l)
}

func newStoreGrantCommand(std *console) *cobra.Command {
	var o storeFlags
	var roles []string
	var expires time.Duration
	cmd := command("store grant", "NAME", func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error {
			return runStoreGrant(ctx, s, &team.Token{Name: args[0], Project: o.project, Roles: roles}, expires, std)
		})
	})
	f := cmd.Flags()
	o.define(f)
	f.StringSliceVar(&roles, "role", nil, "what it lets do: "+strings.Join(team.Roles, ", ")+" (repeatable, or with commas)")
	parsedFlag(f, &expires, "expires", "", "the `age` at which it ends, as in 90d or 12h (default: never)", library.ParseAge)
	std.jsonFlag(cmd, "the token as JSON")
	completeFlag(cmd, "role", team.Roles...)
	return cmd
}

func runStoreGrant(ctx context.Context, s *team.Store, t *team.Token, life time.Duration, std *console) error {
	if len(t.Roles) == 0 {
		return errors.New("--role is missing: want some of " + strings.Join(team.Roles, ", "))
	}
	secret, err := s.Grant(ctx, t, life)
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"name": t.Name, "project": t.Project, "roles": t.Roles, "token": secret})
	}
	std.say("the token of %s, which is shown this once; whoever has it sets TAPEDECK_STORE_TOKEN to it", t.Name)
	_, err = visible.Fprintln(std.out, secret)
	return err
}

func newStoreRevokeCommand() *cobra.Command {
	var o storeFlags
	cmd := command("store revoke", "NAME…", func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error {
			var errs []error
			for _, name := range args {
				errs = append(errs, s.Revoke(ctx, name))
			}
			return errors.Join(errs...)
		})
	})
	o.definePlaces(cmd.Flags())
	return cmd
}

func newStoreTokensCommand(std *console) *cobra.Command {
	var o storeFlags
	cmd := command("store tokens", "", func(cmd *cobra.Command, _ []string) error {
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error { return runStoreTokens(ctx, s, std) })
	})
	o.definePlaces(cmd.Flags())
	std.jsonFlag(cmd, "the tokens as JSON")
	return cmd
}

func runStoreTokens(ctx context.Context, s *team.Store, std *console) error {
	tokens, err := s.Tokens(ctx)
	if err != nil || std.json {
		return errors.Join(err, printJSON(std.out, map[string]any{"tokens": tokens}))
	}
	for i := range tokens {
		t, state := &tokens[i], "for ever"
		switch {
		case t.Revoked != nil:
			state = "revoked " + day(*t.Revoked)
		case t.Expires != nil:
			state = "until " + day(*t.Expires)
		}
		visible.Fprintf(std.out, "%s  project %s  %s  made %s  %s\n", t.Name, cmp.Or(t.Project, "-"), strings.Join(t.Roles, ","), day(t.MadeAt), state)
	}
	return nil
}

func newStoreAuditCommand(std *console) *cobra.Command {
	var o storeFlags
	var limit int
	cmd := command("store audit", "", func(cmd *cobra.Command, _ []string) error {
		var project *string
		if cmd.Flags().Changed("project") {
			project = &o.project
		}
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error { return runStoreAudit(ctx, s, project, limit, std) })
	})
	o.definePlaces(cmd.Flags())
	cmd.Flags().StringVar(&o.project, "project", "", "only what was done in the project of this `name` (default: in all)")
	cmd.Flags().IntVar(&limit, "limit", 1000, "the last `N` lines")
	std.jsonFlag(cmd, "the lines as JSON")
	return cmd
}

func runStoreAudit(ctx context.Context, s *team.Store, project *string, limit int, std *console) error {
	if limit < 1 {
		return fmt.Errorf("--limit %d: want at least 1", limit)
	}
	acts, err := s.Acts(ctx, project, limit)
	if err != nil || std.json {
		return errors.Join(err, printJSON(std.out, map[string]any{"audit": acts}))
	}
	for i := range acts {
		a := &acts[i]
		visible.Fprintf(std.out, "%s  project %s  %s  %s %s\n", stamp(a.At), cmp.Or(a.Project, "-"), cmp.Or(a.Token, "-"), a.What, a.About)
	}
	return nil
}

func day(t time.Time) string { return t.Local().Format("2006-01-02") }
