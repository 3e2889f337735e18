//go:build linux

// Command load puts a crowd of sessions on a real daemon, a process of its own, and says how it held: turns that were
// acknowledged, how long that took, who was held up by whom, what a kill left, what a soak leaves behind.
//
//	go run ./integration/load                     every scenario, in its short form
//	go run ./integration/load -run turns -long    one, as long as docs/daemon.md quotes it
//
// Each scenario is measured beside its limit on the same machine in the same minute: the segment log alone, a file a session,
// the same daemon without the crowd. The figures are printed as a table (-json: as JSON); what must hold whatever the machine
// (no acknowledged turn is lost, nothing is left behind) fails the scenario, and the exit status is 1. Linux only.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// A scenario is one thing that is done to a daemon.
type scenario struct {
	name string
	what string
	run  func(context.Context, *stage) error
}

var scenarios = []scenario{
	{"turns", "acknowledged turns a second of all sessions at once, by the segment log alone and by a file a session", turns},
	{"arrivals", "how long an acknowledgement takes under given arrivals, by the segment log alone under the same", arrivals},
	{"crowd", "how long the others wait while some flood and some never read", crowd},
	{"kills", "kill -9 at random moments while sessions write turns", kills},
	{"soak", "full rate with connections coming and going: what is left behind", soak},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var status int
	if len(os.Args) == 4 && os.Args[1] == strangersWord {
		status = beStrangers(ctx, os.Args[2], os.Args[3], os.Stdout, os.Stderr)
	} else {
		status = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.SetOutput(stderr)
	which := f.String("run", "", "only the scenarios whose name matches this `regexp`")
	long := f.Bool("long", false, "the sizes and times that are quoted: 2,000 sessions, 200 kills, ten minutes")
	asJSON := f.Bool("json", false, "figures as JSON")
	if err := f.Parse(args); err != nil {
		return 1
	}
	wanted, err := regexp.Compile(*which)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	st, err := newStage(ctx, *long, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	defer st.close()
	status := 0
	for _, s := range scenarios {
		if !wanted.MatchString(s.name) {
			continue
		}
		fmt.Fprintf(stderr, "== %s: %s\n", s.name, s.what)
		if err := s.run(ctx, st); err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", s.name, err)
			status = 1
		}
	}
	if *asJSON {
		json.NewEncoder(stdout).Encode(st.figures)
		return status
	}
	for _, g := range st.figures {
		fmt.Fprintf(stdout, "| %s | %s | %s |\n", g.Scenario, g.What, g.Value)
	}
	return status
}
