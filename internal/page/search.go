package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Bounds of a search: how many places it lists, how long a text may be that is looked for, and how long a blob that is searched, in bytes.
const (
	maxHits   = 200
	maxNeedle = 1000
	maxBlob   = 64 << 20
)

// Search looks for a text in all that a recording holds: the lines of its tape and its blobs, those that came in gzip or zstd too. Letters
// of ASCII are found in either case. A text in a body of JSON is found as it reads, and as it is written there.
func (r *Source) Search(ctx context.Context, text string) (*Found, error) {
	out := &Found{Hits: []Hit{}}
	if text == "" || len(text) > maxNeedle {
		return out, nil
	}
	s := &search{needle: needles(text, escaped(text)), run: r.ID, blobs: make(map[cas.Digest]excerpt)}
	if err := s.searchBlobs(ctx, r.store); err != nil {
		return nil, err
	}
	taped := needles(escaped(text), escaped(escaped(text)))
	err := r.lines(0, func(line []byte) bool {
		if at, _ := taped.find(line); at < 0 && !s.namesBlob(line) {
			return ctx.Err() == nil
		}
		if rec, err := tape.ParseRecord(line); err == nil {
			out.Hits = append(out.Hits, s.hits(rec)...)
		}
		return len(out.Hits) <= maxHits && ctx.Err() == nil
	})
	if out.More = len(out.Hits) > maxHits; out.More {
		out.Hits = out.Hits[:maxHits]
	}
	return out, errors.Join(err, ctx.Err())
}

// escaped is a text as it stands within a JSON string.
func escaped(text string) string {
	b := canonjson.AppendString(nil, strings.ToValidUTF8(text, "\uFFFD"))
	return string(b[1 : len(b)-1])
}

// An excerpt is a place in a payload.
type excerpt struct {
	text    string
	at, len int
}

// A search is what is looked for in a run, and the blobs that have it.
type search struct {
	needle
	run   string
	blobs map[cas.Digest]excerpt
}

// searchBlobs looks into every blob, some at once.
func (s *search) searchBlobs(ctx context.Context, store *cas.Dir) error {
	if store == nil {
		return nil
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := make(chan cas.Digest)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var buf []byte
			for d := range next {
				buf = readBlob(store, buf[:0], d)
				b := plainBytes(buf)
				if at, length := s.find(b); at >= 0 {
					mu.Lock()
					s.blobs[d] = excerptOf(b, at, length)
					mu.Unlock()
				}
			}
		})
	}
	var err error
	for d, errAll := range store.All() {
		if err = errors.Join(errAll, ctx.Err()); err != nil {
			break
		}
		next <- d
	}
	close(next)
	workers.Wait()
	return errors.Join(err, ctx.Err())
}

// readBlob appends a blob to buf; one that cannot be read has nothing in it: verify tells of that.
func readBlob(store *cas.Dir, buf []byte, d cas.Digest) []byte {
	f, size, err := store.File(d)
	if err != nil {
		return buf
	}
	defer f.Close()
	if size > maxBlob {
		return buf
	}
	buf = slices.Grow(buf, int(size))[:size]
	if _, err := io.ReadFull(f, buf); err != nil {
		return buf[:0]
	}
	return buf
}

// plainBytes decodes what shows by its first bytes that it is compressed.
func plainBytes(b []byte) []byte {
	var encoding string
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		encoding = "gzip"
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		encoding = "zstd"
	default:
		return b
	}
	if plain, err := exchange.DecodeCut(encoding, b, maxBlob, true); err == nil {
		return plain
	}
	return b
}

// aroundBefore and aroundBehind are how many bytes around a place are shown.
const aroundBefore, aroundBehind = 60, 140

func excerptOf(b []byte, at, length int) excerpt {
	from, to := max(0, at-aroundBefore), min(len(b), at+length+aroundBehind)
	for from > 0 && from > at-aroundBefore-utf8.UTFMax && !utf8.RuneStart(b[from]) {
		from--
	}
	before := strings.ToValidUTF8(string(b[from:at]), "\uFFFD")
	hit := strings.ToValidUTF8(string(b[at:at+length]), "\uFFFD")
	return excerpt{before + hit + strings.ToValidUTF8(string(b[at+length:to]), ""), units(before), units(hit)}
}

// units is how long a text is in UTF-16.
func units(s string) (n int) {
	for _, c := range s {
		if n++; c > 0xFFFF {
			n++
		}
	}
	return n
}

var lenKey = []byte(`","len_bytes":`)

// namesBlob reports whether a line of a tape names a blob that has it.
func (s *search) namesBlob(line []byte) bool {
	if len(s.blobs) == 0 {
		return false
	}
	for at := 0; ; {
		i := bytes.Index(line[at:], lenKey)
		if i < 0 {
			return false
		}
		if at += i; at >= 2*cas.Size {
			if d, err := cas.Parse(string(line[at-2*cas.Size : at])); err == nil {
				if _, ok := s.blobs[d]; ok {
					return true
				}
			}
		}
		at += len(lenKey)
	}
}

// hits are the places of a record: its payloads, else what stands in the record itself.
func (s *search) hits(rec *tape.Record) (out []Hit) {
	add := func(where string, e excerpt) {
		out = append(out, Hit{Run: s.run, Seq: rec.Seq, Where: where, Text: e.text, At: e.at, Len: e.len})
	}
	for _, p := range follow.PayloadsOf(rec.Kind) {
		if !p.Inline {
			if e, ok := s.blobs[p.Hash]; ok {
				add(p.Name, e)
			}
		} else if at, length := s.find([]byte(p.Text)); at >= 0 {
			add(p.Name, excerptOf([]byte(p.Text), at, length))
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, text := range [][]byte{[]byte(tapeview.Line(rec.Kind)), tape.AppendRecord(nil, rec)} {
		if at, length := s.find(text); at >= 0 {
			add("record", excerptOf(text, at, length))
			break
		}
	}
	return out
}

// A needle is what is looked for, in one or two forms.
type needle []form

// A form is one spelling of it: found by its rarest byte, the rest held against what stands around.
type form struct {
	text         string // letters of ASCII in lower case
	rare         int
	lower, upper byte
}

func needles(forms ...string) (n needle) {
	for _, text := range slices.Compact(forms) {
		f := form{text: lowered(text)}
		for i := range f.text {
			if rarity(f.text[i]) < rarity(f.text[f.rare]) {
				f.rare = i
			}
		}
		f.lower, f.upper = f.text[f.rare], f.text[f.rare]
		if 'a' <= f.lower && f.lower <= 'z' {
			f.upper -= 'a' - 'A'
		}
		n = append(n, f)
	}
	return n
}

func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = low(c)
	}
	return string(b)
}

func low(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// common are bytes by how often they stand in texts and JSON, the commonest first.
const common = ` "e,t\:aoinsr0hdlc1u{}mp_g2-.fy354w67b98v/k[]xjqz`

// rarity is small for a byte that is seldom.
func rarity(c byte) int {
	if i := strings.IndexByte(common, c); i >= 0 {
		return len(common) - i
	}
	return 0
}

// find returns where one of the forms stands first, -1 for nowhere.
func (n needle) find(b []byte) (at, length int) {
	at = -1
	for i := range n {
		if found := n[i].find(b); found >= 0 && (at < 0 || found < at) {
			at, length = found, len(n[i].text)
		}
	}
	return at, length
}

func (f *form) find(b []byte) int {
	const never = -1
	next := func(c byte, from int) int {
		if i := bytes.IndexByte(b[min(from, len(b)):], c); i >= 0 {
			return from + i
		}
		return never
	}
	one, two := next(f.lower, f.rare), never
	if f.upper != f.lower {
		two = next(f.upper, f.rare)
	}
	for one >= 0 || two >= 0 {
		at := one
		if one < 0 || two >= 0 && two < one {
			at = two
		}
		if begin := at - f.rare; begin >= 0 && begin+len(f.text) <= len(b) && f.like(b[begin:begin+len(f.text)]) {
			return begin
		}
		if at == one {
			one = next(f.lower, at+1)
		} else {
			two = next(f.upper, at+1)
		}
	}
	return never
}

func (f *form) like(b []byte) bool {
	for i, c := range b {
		if low(c) != f.text[i] {
			return false
		}
	}
	return true
}
