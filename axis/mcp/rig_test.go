package mcp_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A rig is a tape in memory.
type rig struct {
	t     testing.TB
	tape  bytes.Buffer
	store *cas.Memory
	rec   *tape.Recorder
	scrub *scrub.Scrubber
	log   *mcp.Log
}

func newRig(t testing.TB, env ...string) *rig {
	return newRigWith(t, scrub.New(scrub.Key{1}, &scrub.Options{Env: env}), nil)
}

func newRigWith(t testing.TB, s *scrub.Scrubber, o *mcp.LogOptions) *rig {
	t.Helper()
	r := &rig{t: t, store: cas.NewMemory(), scrub: s}
	w, err := tape.NewWriter(&r.tape, &tape.Header{Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	r.rec = tape.NewRecorder(w, &tape.RecorderOptions{
		Store: r.store, Now: func() (int64, int64) { return 0, 0 },
	})
	r.log = mcp.NewLog(r.rec, s, masks.New(nil), o)
	return r
}

// records are what is with the kernel.
func (r *rig) records() (all []tape.Kind) {
	r.t.Helper()
	return kindsOf(r.t, r.tape.Bytes())
}

func kindsOf(t testing.TB, b []byte) (all []tape.Kind) {
	t.Helper()
	rd, err := tape.NewReader(bytes.NewReader(b), "tape")
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range rd.Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec.Kind)
	}
	return all
}

// said is what the tape says, a line a record, without digests.
func (r *rig) said() string {
	r.t.Helper()
	var b strings.Builder
	for _, k := range r.records() {
		b.WriteString(r.line(k) + "\n")
	}
	return b.String()
}

func (r *rig) line(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.MCPOpen:
		return fmt.Sprintf("open %s %d %s program=%s args=%q url=%s %s", k.Server, k.Conversation, k.Transport, k.Program, k.Args, k.URL, k.Protocol)
	case *tape.MCPJSONRPC:
		line := fmt.Sprintf("%s %s %s %d-%d %s > %s", k.Server, k.From, k.Method, k.Arrival, k.Answered, r.text(k.Request), r.text(k.Response))
		if k.Error != "" {
			line += " error: " + k.Error
		}
		return line
	case *tape.MCPText:
		return fmt.Sprintf("%s %s text %d %q", k.Server, k.From, k.Arrival, r.text(k.Payload))
	case *tape.MCPClose:
		code := "?"
		if k.ExitCode != nil {
			code = fmt.Sprint(*k.ExitCode)
		}
		return strings.TrimSpace(fmt.Sprintf("close %s %d %s %s %s", k.Server, k.Arrival, code, k.Signal, k.Error))
	}
	return k.Name()
}

func (r *rig) text(p *tape.Payload) string {
	r.t.Helper()
	b, err := p.Bytes(r.store)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *rig) want(lines ...string) {
	r.t.Helper()
	if got, want := r.said(), strings.Join(lines, "\n")+"\n"; got != want {
		r.t.Errorf("the tape says\n%s\nwant\n%s", got, want)
	}
}

// pipe returns a pipe whose ends are closed in the end.
func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
