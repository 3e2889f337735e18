package redact

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxDepth is how many forms may lie over each other: JSON in base64 in what gzip compressed.
const maxDepth = 4

// eachContent calls do with every file of a recording, and with every body of its tape that has an encoding, without it.
func eachContent(ctx context.Context, rec *recording.Recording, do func(place string, b []byte) error) error {
	err := filepath.WalkDir(rec.Dir, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		place, _ := filepath.Rel(rec.Dir, path)
		return do(place, b)
	})
	if err != nil {
		return err
	}
	store, err := rec.Store()
	if err != nil {
		return err
	}
	for r, err := range rec.Records() {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		x := tape.ExchangeOf(r.Kind)
		if x == nil {
			continue
		}
		for _, side := range []struct {
			headers []tape.HeaderField
			body    *tape.Payload
		}{{x.RequestHeaders, x.RequestPayload}, {x.ResponseHeaders, x.Response}} {
			encoding := exchange.HeaderOf(side.headers).Get("Content-Encoding")
			if encoding == "" || side.body == nil {
				continue
			}
			b, err := side.body.Bytes(store)
			if err != nil {
				return err
			}
			b, err = exchange.DecodeCut(encoding, b, exchange.DefaultMaxBody, true)
			if err != nil {
				continue // it stands there decoded: what could not be scanned was not kept
			}
			if err := do(fmt.Sprintf("record %d", r.Seq), b); err != nil {
				return err
			}
		}
	}
	return nil
}

// An unfolding calls do with the texts that a content holds, each without the forms that lie over it, and without placeholders.
type unfolding struct{ do func(text []byte) }

// content is what a file or a body holds: compressed, JSON, lines of which some are, or another text.
func (u *unfolding) content(b []byte, depth int) {
	if depth == 0 || len(b) == 0 {
		return
	}
	if plain := inflated(b); plain != nil {
		u.content(plain, depth-1)
		return
	}
	if u.json(b, depth) {
		return
	}
	if !utf8.Valid(b) {
		for _, run := range printable.FindAll(b, -1) {
			u.text(run, depth)
		}
		return
	}
	var rest []byte
	for line := range bytes.Lines(b) {
		if !u.json(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data:")), depth) {
			rest = append(rest, line...)
		}
	}
	u.text(rest, depth)
}

// What texts stand in: runs of characters in what is no text, and of digits that may be base64 or hex.
var (
	printable = lazyregexp.New(`[\x20-\x7e\t]{16,}`)
	encoded   = lazyregexp.New(`[A-Za-z0-9+/_-]{12,}`)
)

// json unfolds b where it is an object, a list or a string of JSON: its names, its strings and its numbers are texts of their own.
func (u *unfolding) json(b []byte, depth int) bool {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || bytes.IndexByte([]byte(`{["`), b[0]) < 0 || !json.Valid(b) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) || err != nil {
			return true
		}
		switch t := t.(type) {
		case string:
			if s := []byte(t); !u.json(s, depth-1) || depth <= 1 {
				u.text(s, depth)
			}
		case json.Number:
			u.plain([]byte(t))
		}
	}
}

// text is one text as it stands, and what is encoded in it.
func (u *unfolding) text(b []byte, depth int) {
	u.plain(b)
	if depth <= 1 {
		return
	}
	if bytes.IndexByte(b, '%') >= 0 {
		if s, err := url.QueryUnescape(string(b)); err == nil && s != string(b) {
			u.text([]byte(s), depth-1)
		}
	}
	for _, run := range encoded.FindAll(b, -1) {
		for _, plain := range decoded(run) {
			u.content(plain, depth-1)
		}
	}
}

// plain gives a text away in the pieces between its placeholders.
func (u *unfolding) plain(b []byte) {
	gap := func(string) (string, bool) { return "\x00", true }
	for piece := range bytes.SplitSeq(scrub.Fill(b, gap), []byte{0}) {
		if len(piece) > 0 {
			u.do(piece)
		}
	}
}

// decoded returns the texts that a run of digits may stand for.
func decoded(run []byte) (out [][]byte) {
	if b, err := hex.DecodeString(string(run)); err == nil && utf8.Valid(b) {
		out = append(out, b)
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(string(run)); err == nil && (utf8.Valid(b) || inflated(b) != nil) {
			out = append(out, b)
		}
	}
	return out
}

// inflated returns what b decompresses to; nil where it is not compressed.
func inflated(b []byte) []byte {
	for coding, magics := range map[string][]string{
		"gzip": {"\x1f\x8b"}, "zstd": {"\x28\xb5\x2f\xfd"}, "deflate": {"\x78\x01", "\x78\x5e", "\x78\x9c", "\x78\xda"},
	} {
		for _, magic := range magics {
			if !bytes.HasPrefix(b, []byte(magic)) {
				continue
			}
			if plain, err := exchange.Decode(coding, b, exchange.DefaultMaxBody); err == nil {
				return plain
			}
		}
	}
	return nil
}
