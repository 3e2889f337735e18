package main

import (
	"errors"
	"io"

	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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

// daemonNews says what the daemon did not learn; "" for nothing.
func daemonNews(res *deck.Result) string {
	if res.DaemonLost == nil {
		return ""
	}
	return res.DaemonLost.Error()
}

// showDaemon says which run of a daemon a recording is.
func (s *shown) showDaemon(out io.Writer) {
	if s.rec == nil || s.rec.Manifest.Daemon == nil {
		return
	}
	d := s.rec.Manifest.Daemon
	for i, run := range append([]string{d.RunID}, d.Continued...) {
		if i == 0 {
			told := ""
			if s.rec.Finished() {
				told = ", " + plural(d.Turns, "turn", "turns")
			}
			visible.Fprintf(out, "daemon: run %s of %s at %s%s (tapedeck runs show %s)\n", run, d.AgentID, d.URL, told, run)
			continue
		}
		visible.Fprintf(out, "daemon: it goes on as run %s\n", run)
	}
}
