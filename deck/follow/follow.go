// Package follow reads a recording for people: records chosen by a Filter, told while they are made, in one timeline with what the
// terminal showed.
//
// Goals: a record is told within milliseconds; a tape of any length needs the memory of one record. Not goals: how a record looks.
package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	followEvery = 20 * time.Millisecond // between two looks at a tape that gives nothing
	askEvery    = 10                    // looks between two questions after the recorder
)

// Options say what Follow tells. Each function may be nil; all are called on the goroutine of Follow, and an error
// of one ends it.
type Options struct {
	Record func(*tape.Record) error
	// CaughtUp is called once: everything that was on the tape when Follow began has been told.
	CaughtUp func() error
	// Parts is called with the answers that are still streaming, in order of arrival, whenever they have changed.
	Parts func([]Streaming) error
}

// A Streaming is an answer on its way to the program.
type Streaming struct {
	*tape.Exchange
	Kind string // "llm_call" or "http_exchange"
	Len  int64  // bytes of the answer that have been kept so far
}

// Follow tells every record of r, those that are there and then those that come, until its recorder has ended: finished
// says whether it came to its end; false means that it was killed, or that somebody deleted the recording. A record is
// told within milliseconds of its reaching the kernel; a line that is not whole yet is waited for. Of a finished recording
// it tells what is there and returns. It ends with ctx's error when ctx does.
func Follow(ctx context.Context, r *recording.Recording, o *Options) (finished bool, err error) {
	f := &follower{ctx: ctx, rec: r}
	if o != nil {
		f.o = *o
	}
	defer f.close()
	t, err := tape.NewReaderOptions(f, r.TapePath(), &tape.ReaderOptions{Tolerant: true})
	if errors.Is(err, tape.ErrEmpty) && f.ended {
		return f.finished, errors.Join(f.caughtUp(), f.failed) // killed before the tape began
	}
	if err != nil {
		return f.finished, cmp.Or(f.failed, err)
	}
	for rec, err := range t.Records() {
		if err != nil {
			return f.finished, cmp.Or(f.failed, err)
		}
		if f.o.Record != nil {
			if err := f.o.Record(rec); err != nil {
				return f.finished, err
			}
		}
	}
	return f.finished, f.caughtUp()
}

// follower reads a tape that grows: at its end it waits. The tape's reader never sees an end before the recorder's.
type follower struct {
	ctx  context.Context
	rec  *recording.Recording
	o    Options
	file *os.File // nil until the tape is there

	told     bool // CaughtUp was called
	looks    int
	manifest os.FileInfo // of recording.json, as first seen
	ended    bool        // nothing is written any more
	finished bool
	failed   error // what ended it, but for the tape
	last     []Streaming
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// Read implements io.Reader.
func (f *follower) Read(b []byte) (int, error) {
	for {
		n, err := f.read(b)
		if n > 0 || err != nil {
			return n, err
		}
		if f.ended { // it was before that look, which found nothing more
			return 0, io.EOF
		}
		if f.failed = errors.Join(f.caughtUp(), f.parts()); f.failed != nil {
			return 0, f.failed
		}
		if f.looks++; f.replaced() || f.looks%askEvery == 1 {
			f.ask()
		}
		if f.ended {
			continue
		}
		select {
		case <-f.ctx.Done():
			f.failed = f.ctx.Err()
			return 0, f.failed
		case <-time.After(followEvery):
		}
	}
}

// read reads what is there now: 0 and no error where that is nothing.
func (f *follower) read(b []byte) (int, error) {
	if f.file == nil {
		file, err := regular.Open(f.rec.TapePath())
		if err != nil {
			return 0, recording.Gone(err)
		}
		f.file = file
	}
	n, err := f.file.Read(b)
	return n, recording.NotEOF(err)
}

func (f *follower) caughtUp() error {
	if f.told || f.o.CaughtUp == nil {
		return nil
	}
	f.told = true
	return f.o.CaughtUp()
}

// replaced reports whether recording.json is another file than when Follow began: the cheap question, asked at every look.
func (f *follower) replaced() bool {
	info, err := os.Lstat(filepath.Join(f.rec.Dir, recording.ManifestName))
	if err != nil {
		return true
	}
	if f.manifest == nil {
		f.manifest = info
	}
	return !os.SameFile(f.manifest, info)
}

// ask finds out whether the recorder has ended. It is asked before the last look at the tape, not after: what it wrote
// until then must be told.
func (f *follower) ask() {
	m, err := recording.ReadManifest(f.rec.Dir)
	switch {
	case err == nil && m.State == recording.StateFinished:
		f.ended, f.finished = true, true
	case err != nil || f.rec.Live() == recording.LiveNo:
		m, err = recording.ReadManifest(f.rec.Dir) // it may have finished between the two questions
		f.ended, f.finished = true, err == nil && m.State == recording.StateFinished
	}
}

// parts tells the answers that are still streaming, where they have changed.
func (f *follower) parts() error {
	if f.o.Parts == nil {
		return nil
	}
	entries, err := os.ReadDir(f.rec.PartDir())
	if recording.Gone(err) != nil {
		return err
	}
	var now []Streaming
	for _, e := range entries {
		if !exchange.IsPart(e) {
			continue
		}
		h, err := exchange.ReadPartHead(filepath.Join(f.rec.PartDir(), e.Name()))
		info, errInfo := e.Info()
		if h == nil || err != nil || errInfo != nil {
			continue // its exchange has just begun, or has just ended; what is wrong else Parts reports once the recorder has
		}
		now = append(now, Streaming{h.Exchange, h.Kind.Name(), max(0, info.Size()-h.Head)})
	}
	slices.SortFunc(now, func(a, b Streaming) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if slices.EqualFunc(now, f.last, func(a, b Streaming) bool { return a.Arrival == b.Arrival && a.Len == b.Len }) {
		return nil
	}
	f.last = now
	return f.o.Parts(now)
}

// An Unreached is a port of this host that a program asked for and that nothing was behind, since no upstream names it: that of
// a server of local models, say. It may as well be a port on which the program's own server did not listen yet.
type Unreached struct {
	Name   string // NAME:PORT, as the program has it
	Target string // the URL of a server there
}

// Upstream is the value of record's --upstream that leads there, for a shell.
func (u *Unreached) Upstream() string {
	s := u.Name + "=" + u.Target
	if strings.ContainsAny(s, "[]") { // patterns, to some shells
		return "'" + s + "'"
	}
	return s
}

// UnreachedBy says which port of this host a record says was asked for in vain; nil for any other record.
func UnreachedBy(k tape.Kind) *Unreached {
	if r, ok := k.(*tape.NetRefused); ok {
		return unreachedPort(r)
	}
	if x := tape.ExchangeOf(k); x != nil && x.Status == 0 {
		return unreachedURL(x)
	}
	return nil
}

// unreachedPort is that of a connection that met nobody in the jail.
func unreachedPort(r *tape.NetRefused) *Unreached {
	addr, err := netip.ParseAddr(r.Addr)
	if err != nil || !addr.IsLoopback() || r.Reason != jail.NoListener {
		return nil
	}
	name := net.JoinHostPort(r.Addr, strconv.Itoa(r.Port))
	return &Unreached{Name: name, Target: "http://" + name}
}

// unreachedURL is that of a request that was not sent on, for it would have stayed on this host.
func unreachedURL(x *tape.Exchange) *Unreached {
	text, ok := strings.CutSuffix(x.Error, network.OnlyNamed)
	if !ok {
		return nil
	}
	text, _, _ = strings.Cut(text, " ")
	addr, err := netip.ParseAddrPort(text)
	u, errURL := url.Parse(x.URL)
	if err != nil || errURL != nil || addr.Addr().IsLinkLocalUnicast() || addr.Addr().IsMulticast() {
		return nil
	}
	target := addr.String()
	if addr.Addr().IsUnspecified() { // not to be dialled everywhere
		target = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(addr.Port())))
	}
	return &Unreached{Name: net.JoinHostPort(u.Hostname(), strconv.Itoa(int(addr.Port()))), Target: fmt.Sprintf("%s://%s", u.Scheme, target)}
}

// AddUnreached notes u once. A name has several addresses, which are tried in turn: of IPv6 and IPv4 the latter is kept, where
// servers listen.
func AddUnreached(list []Unreached, u *Unreached) []Unreached {
	host, port, _ := net.SplitHostPort(u.Name)
	for i := range list {
		if h, p, _ := net.SplitHostPort(list[i].Name); p == port && (h == "::1" || host == "::1") {
			if h == "::1" {
				list[i] = *u
			}
			return list
		}
	}
	if slices.Contains(list, *u) {
		return list
	}
	return append(list, *u)
}
