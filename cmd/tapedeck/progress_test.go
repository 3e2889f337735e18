package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// late is a progress whose work has been going on for a while, on something that counts as a terminal.
func late() (*progress, *bytes.Buffer) {
	var buf bytes.Buffer
	return &progress{w: &buf, begun: time.Now().Add(-time.Minute)}, &buf
}

func TestProgress(t *testing.T) {
	for want, tell := range map[string]func(*progress){
		"packing: 50% of 3000 bytes":              func(p *progress) { p.bytes("packing")(1500, 3000) },
		"verifying: 1 record, 20 kB":              func(p *progress) { p.records("verifying")(1, 20_000) },
		"reading the work tree: 2 files, 5 bytes": func(p *progress) { p.step(2, 5, false) },
		"packing: 100% of 0 bytes":                func(p *progress) { p.bytes("packing")(0, 0) },
		"verifying: 7 records, 0 bytes":           func(p *progress) { p.records("verifying")(7, 0); p.records("x")(8, 0) },
		"reading the work tree: 9 files, 10 MB":   func(p *progress) { p.step(9, 10_000_000, false) },
		"unpacking: 33% of 3 bytes":               func(p *progress) { p.bytes("unpacking")(1, 3) },
	} {
		p, buf := late()
		tell(p)
		p.step(0, 0, true)
		p.end()
		if got := buf.String(); got != "\rtapedeck: "+want+"\x1b[K\r\x1b[K" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestProgressIsSilent(t *testing.T) {
	var buf bytes.Buffer
	for name, p := range map[string]*progress{
		"nil": nil, "no terminal": newProgress(&buf), "json": (&console{streams: streams{err: &buf}, json: true}).progress(),
		"young": {w: &buf, begun: time.Now()},
	} {
		p.bytes("x")(1, 2)
		p.busy("x")()
		p.end()
		if buf.Len() > 0 {
			t.Errorf("%s: %q", name, &buf)
		}
	}
}

func TestBusyTicks(t *testing.T) {
	p, _ := late()
	told := make(chan string, 100)
	p.w = writerFunc(func(b []byte) (int, error) { told <- string(b); return len(b), nil })
	stop := p.busy("comparing")
	if got := <-told; !strings.HasPrefix(got, "\rtapedeck: comparing: 60 s") {
		t.Errorf("got %q", got)
	}
	stop()
}

// TestCountedTicks: what has begun is told, not only what has ended.
func TestCountedTicks(t *testing.T) {
	p, _ := late()
	told := make(chan string, 100)
	p.w = writerFunc(func(b []byte) (int, error) { told <- string(b); return len(b), nil })
	step, stop := p.counted("looking")
	if got := <-told; got != "\rtapedeck: looking\x1b[K" {
		t.Errorf("got %q", got)
	}
	step(3, 4)
	for got := range told {
		if got == "\rtapedeck: looking: 3 of 4\x1b[K" {
			break
		}
	}
	stop()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
