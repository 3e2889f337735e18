package deck

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// What no recording covers, or older ones do not.
const (
	gapClock   = "wall time"      // outside the jail, with --time real, and of older recordings
	gapRandom  = "random numbers" // likewise
	gapReads   = "reads outside the work tree (what the run did not change there a replay shows as it is then)"
	gapMCP     = "MCP over stdio" // of older recordings, those of bare tapes, and where the jail cannot
	gapSockets = "WebSocket"      // of older recordings, and of bare tapes
	gapSpawns  = "spawns"         // outside the jail, and of older recordings

	gapBefore2 = "clock and random numbers" // of recordings of format 1
)

// UsualGaps are the gaps that all recordings have in common, or all that were made outside the jail, each with the short
// form in which a line of text names it.
func UsualGaps() map[string]string {
	all := []string{gapClock, gapRandom, recording.GapFiles, gapReads, gapMCP, recording.GapScreen, gapSockets, gapSpawns, gapBefore2}
	for _, gaps := range gapsOutside() {
		all = append(all, gaps...)
	}
	short := make(map[string]string)
	for _, g := range all {
		short[g], _, _ = strings.Cut(g, " (") // without the remark
	}
	return short
}

// axes is the ledger of what was and was not covered. lost are the bodies that could not
// be kept, gaps is what the jail did not cover.
func (r *recorder) axes(l *rescrub.Pass, lost, gaps []string) map[string]recording.Axis {
	net := slices.Concat([]string{}, lost)
	for _, h := range r.o.Passthrough {
		net = append(net, h+" (let through unread, not replayable)")
	}
	aboutMCP, gaps := splitGaps(gaps, gapMCP)
	aboutInputs, gaps := splitGaps(gaps, jail.InputGap)
	clock, random := r.processes.axes(aboutInputs)
	if r.processes == nil {
		gaps = append([]string{gapSpawns}, gaps...)
	}
	axes := map[string]recording.Axis{
		axisClock:         clock,
		axisRandom:        random,
		"files":           {On: r.trees.before != nil, NotCovered: recording.NoneTwice(slices.Concat(r.fileGaps(), r.notInTree()))},
		"llm":             {On: true, NotCovered: []string{}},
		recording.AxisMCP: {On: true, NotCovered: slices.Concat(aboutMCP, r.spawns.unseen(), r.s.mcp.Lost())},
		"network":         {On: true, NotCovered: net},
		"process":         {On: true, NotCovered: append([]string{}, gaps...)},
		"secrets":         {On: true, NotCovered: r.secretGaps(l)},
		"terminal":        {On: r.manifest.TTY != nil, NotCovered: []string{}},
	}
	axes = ledgerFor(axes, r.o.Proxy)
	if net := axes["network"]; r.o.Proxy && r.seen.counts["llm_call"]+r.seen.counts["http_exchange"] == 0 {
		net.NotCovered = append([]string{NothingCame}, net.NotCovered...)
		axes["network"] = net
	}
	return axes
}

// secretGaps lists what is not hidden everywhere: what is not searched for, and paths of the recording that hold what became known late.
func (r *recorder) secretGaps(l *rescrub.Pass) []string {
	out := []string{}
	for _, name := range r.s.scrub.NotCovered() {
		out = append(out, name+" (hidden in its own place only: too short or too common to be searched for elsewhere)")
	}
	for _, path := range l.InPaths(r.manifest) {
		out = append(out, path+" (a value that the run used as a secret stands in it)")
	}
	return out
}

// splitGaps takes what a jail says of one thing out of its gaps.
func splitGaps(gaps []string, of string) (its, others []string) {
	its = []string{}
	for _, g := range gaps {
		if strings.HasPrefix(g, of) {
			its = append(its, g)
		} else {
			others = append(others, g)
		}
	}
	return its, others
}

// fileGaps lists what is not seen of files, and what of those that the program changed could not be kept.
func (r *recorder) fileGaps() []string {
	if r.o.Proxy {
		return []string{recording.GapFiles}
	}
	r.manifest.LongFiles = r.changing.long()
	out := []string{gapReads}
	for _, n := range r.changing.journal.Load().NotCovered() {
		out = append(out, fmt.Sprintf("%s (%s)", n.Path, n.Reason))
	}
	return out
}

// notInTree lists the paths of the work tree that the snapshot left out, or says why there is none.
func (r *recorder) notInTree() []string {
	if r.trees.before == nil {
		return []string{r.why}
	}
	own := r.ownOutput()
	var out []string
	for _, n := range r.trees.before.NotCovered {
		if n.Reason != files.Excluded || slices.Contains(own, filepath.Join(r.manifest.Roots.Tree, n.Path)) {
			out = append(out, fmt.Sprintf("%s (%s)", n.Path, n.Reason))
		}
	}
	for _, e := range r.trees.before.Entries {
		if e.Secret != "" {
			out = append(out, e.Path+" (holds a secret: kept without it)")
		}
	}
	return out
}

// A surveyed tape is one that was read once for its ledger.
type surveyed struct {
	upstreams  map[string]string
	counts     map[string]int     // records by kind
	lost       []string           // bodies that were not kept, and why
	silent     []string           // requests that no upstream answered: "host: why", each once
	unanswered map[string]int     // records by kind: exchanges without an answer
	unreached  []follow.Unreached // ports of this host
	ports      []uint16           // that requests were for, beside 80 and 443
	mcp        recording.MCPSeen
	changed    map[string]bool // paths; true for those in the work tree that Git does not ignore
	totals     recording.Totals
}

// countedAs is the name by which records are counted. Unix sockets of the host's are tried by the C library: they are none of the
// connections that people look for.
func countedAs(k tape.Kind) string {
	if r, ok := k.(*tape.NetRefused); ok && strings.HasPrefix(r.Addr, "/") {
		return "unix_refused"
	}
	return k.Name()
}

// survey reads a tape for its ledger and its totals. upstreams are those of the run; nil prices are those that are built in.
func survey(path string, upstreams map[string]string, prices *llm.Prices) (*surveyed, error) {
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &surveyed{
		upstreams: upstreams, counts: make(map[string]int), unanswered: make(map[string]int), changed: make(map[string]bool),
	}
	book := account.NewBook(f.Store, prices)
	for rec, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		book.Add(rec)
		s.counts[countedAs(rec.Kind)]++
		s.mcp.Add(rec.Kind)
		if f := tape.ChangedFile(rec.Kind); f != nil && !f.IsPlace() {
			s.changed[strings.Clone(f.Path)] = files.InTree(f) // the path is cut from the record, which would stay as a whole
		}
		u := follow.UnreachedBy(rec.Kind)
		if u != nil {
			s.unreached = follow.AddUnreached(s.unreached, u)
		}
		if x := tape.ExchangeOf(rec.Kind); x != nil {
			s.addExchange(x, u != nil)
			if x.Status == 0 {
				s.unanswered[rec.Kind.Name()]++
			}
		}
		if extra := tape.Extras(rec.Kind); extra != nil {
			for _, f := range *extra {
				if what, lost := strings.CutSuffix(f.Name, "_lost"); lost { // request_lost, response_lost, payload_lost
					s.lost = append(s.lost, fmt.Sprintf("record %d: its %s was not kept", rec.Seq, what))
				}
			}
		}
	}
	s.totals = book.Close().Total
	return s, nil
}

// addExchange notes the port of x, and that no upstream answered it. One that is unreached is listed as that.
func (s *surveyed) addExchange(x *tape.Exchange, unreached bool) {
	host := x.URL
	u, err := url.Parse(x.URL)
	if err == nil {
		host = u.Host
		if p := program.PortIn(u); p != 0 && !slices.Contains(s.ports, p) {
			s.ports = append(s.ports, p)
		}
	}
	if x.Status != 0 || unreached {
		return
	}
	if err == nil && !strings.HasPrefix(x.Error, exchange.NoSuchHost) {
		if to := network.UpstreamOf(s.upstreams, u); to != "" {
			host += " (its upstream is " + to + ")"
		}
	}
	text := host + ": " + x.Error
	if !slices.Contains(s.silent, text) {
		s.silent = append(s.silent, text)
	}
}
