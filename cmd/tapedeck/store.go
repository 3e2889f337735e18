package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/deck/team/remote"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
)

func newStoreCommand(std *console) *cobra.Command {
	return commandGroup("store", newStoreServeCommand(std), newStoreGrantCommand(std), newStoreRevokeCommand(std), newStoreTokensCommand(std), newStoreAuditCommand(std))
}

type storeServeOptions struct {
	storeFlags
	listen, cert, key    string
	maxPush, maxUnpacked string
	log                  logOptions
}

func newStoreServeCommand(std *console) *cobra.Command {
	o := storeServeOptions{log: logOptions{"text", "info"}}
	cmd := command("store serve", "", func(cmd *cobra.Command, _ []string) error {
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error { return runStoreServe(ctx, s, &o, std) })
	})
	f := cmd.Flags()
	o.definePlaces(f)
	f.StringVar(&o.listen, "listen", "127.0.0.1:9200", "TCP `address`, port 0 for a free one; one that other machines reach wants --tls-cert")
	f.StringVar(&o.cert, "tls-cert", "", "`file` with the certificate of the server and those above it, PEM")
	f.StringVar(&o.key, "tls-key", "", "`file` with its key, PEM")
	f.StringVar(&o.maxPush, "max-push", "2G", "take no packed recording of more `bytes` than this: a number with K, M, G or T")
	f.StringVar(&o.maxUnpacked, "max-size", "8G", "take none that unpacks to more `bytes` than this")
	f.StringVar(&o.log.format, "log-format", o.log.format, "`form` of the log: "+strings.Join(logFormats, ", "))
	f.StringVar(&o.log.level, "log-level", o.log.level, "the `least` that is logged: "+strings.Join(logLevels, ", "))
	completeFlag(cmd, "log-format", logFormats...)
	completeFlag(cmd, "log-level", logLevels...)
	return cmd
}

func runStoreServe(ctx context.Context, s *team.Store, o *storeServeOptions, std *console) (err error) {
	server := remote.Options{Store: s}
	if server.MaxPush, err = parseSize(o.maxPush); err != nil {
		return prefixedError("--max-push", err)
	}
	if server.MaxUnpacked, err = parseSize(o.maxUnpacked); err != nil {
		return prefixedError("--max-size", err)
	}
	if server.Logger, err = o.log.logger(std.err); err != nil {
		return err
	}
	if server.Signer, err = seal.LoadKey(recording.ConfigDir("")); err != nil {
		return err
	}
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
	var expires string
	cmd := command("store grant", "NAME", func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error {
			return runStoreGrant(ctx, s, &team.Token{Name: args[0], Project: o.project, Roles: roles}, expires, std)
		})
	})
	f := cmd.Flags()
	o.define(f)
	f.StringSliceVar(&roles, "role", nil, "what it lets do: "+strings.Join(team.Roles, ", ")+" (repeatable, or with commas)")
	f.StringVar(&expires, "expires", "", "the `age` at which it ends, as in 90d or 12h (default: never)")
	std.jsonFlag(cmd, "the token as JSON")
	completeFlag(cmd, "role", team.Roles...)
	return cmd
}

func runStoreGrant(ctx context.Context, s *team.Store, t *team.Token, expires string, std *console) error {
	if len(t.Roles) == 0 {
		return errors.New("--role is missing: want some of " + strings.Join(team.Roles, ", "))
	}
	life, err := library.ParseAge(expires)
	if expires != "" && err != nil {
		return prefixedError("--expires", err)
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

func newStoreRevokeCommand(std *console) *cobra.Command {
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
		visible.Fprintf(std.out, "%s  project %s  %s  %s %s\n", a.At.Local().Format("2006-01-02 15:04:05"), cmp.Or(a.Project, "-"), cmp.Or(a.Token, "-"), a.What, a.About)
	}
	return nil
}

func day(t time.Time) string { return t.Local().Format("2006-01-02") }
