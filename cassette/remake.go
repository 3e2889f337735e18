package cassette

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// A remake is a cassette whose output or input is masked after it was written: what follows from them is written anew. Lines keep
// their seq, their order and what is not known here.
//
// The order of its steps: frames while the output is as it was, then input, output, and the index with the digests of it.
type remake struct {
	from, to string // directories; may be the same one
	size     Size   // at the start
	hits     []tty.Hit
	keys     []tty.Hit // in the stream of all input
	text     func(string) string
	sync     bool
}

// frames writes the frames anew: where masking changes a row of the screen, the row; of such a frame cells and the title go by the
// masked screen too.
func (m *remake) frames() error {
	if len(m.hits) == 0 && m.text == nil {
		return m.copy(FramesFile)
	}
	raw, err := os.Open(filepath.Join(m.from, OutputFile))
	if err != nil {
		return err
	}
	defer raw.Close()
	d := newDouble(raw, m.size, m.hits)
	resizes, err := m.resizes()
	if err != nil {
		return err
	}
	return m.lines(FramesFile, func(b []byte, n int) ([]byte, error) {
		e, err := decodeEvent(StreamFrames, n, b)
		if err != nil {
			return nil, err
		}
		for len(resizes) > 0 && resizes[0].seq < e.Seq && resizes[0].offset <= e.Frame.RawEnd {
			if err := d.resize(resizes[0]); err != nil {
				return nil, err
			}
			resizes = resizes[1:]
		}
		if err := d.show(e.Frame.RawEnd); err != nil {
			return nil, err
		}
		return m.frame(b, e.Frame, d)
	})
}

// frame returns the line b of the frame f as it reads masked.
func (m *remake) frame(b []byte, f *Frame, d *double) ([]byte, error) {
	one, other := d.plain, d.masked
	plain, masked := one.Text(), other.Text()
	text := slices.Clone(f.Text)
	for i := range text {
		if i < len(masked) && plain[i] != masked[i] {
			text[i] = masked[i]
		}
		if m.text != nil {
			text[i] = m.text(text[i])
		}
	}
	title := f.Title
	if one.Title() != other.Title() {
		title = other.Title()
	}
	if m.text != nil {
		title = m.text(title)
	}
	if title == f.Title && slices.Equal(text, f.Text) {
		return b, nil
	}
	b, err := set(b, "text", text)
	if err != nil {
		return nil, err
	}
	if b, err = set(b, "title", title); err != nil {
		return nil, err
	}
	return set(b, "cells", nil)
}

// A sized is a resize with its place in the output.
type sized struct {
	seq    uint64
	offset int64
	size   Size
}

// resizes returns the sizes that the terminal was given: each behind the chunks that came before it.
func (m *remake) resizes() ([]sized, error) {
	mg, err := newMerger(m.from, []Stream{StreamInput, StreamOutput}, nil, 0, true)
	if err != nil {
		return nil, err
	}
	defer mg.close()
	var all []sized
	var end int64
	for {
		e, err := mg.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if e.Chunk != nil {
			end = e.Chunk.Offset + e.Chunk.Length
		} else if e.Input.Kind == KindResize && e.Input.Size != nil {
			all = append(all, sized{e.Seq, end, *e.Input.Size})
		}
	}
}

// input writes the input anew.
func (m *remake) input() error {
	var at int64
	return m.lines(InputFile, func(b []byte, n int) ([]byte, error) {
		e, err := decodeEvent(StreamInput, n, b)
		if err != nil || len(e.Input.Bytes) == 0 {
			return b, err
		}
		masked := bytes.Clone(e.Input.Bytes)
		tty.Mask(masked, at, within(m.keys, at, int64(len(masked))))
		at += int64(len(masked))
		if bytes.Equal(masked, e.Input.Bytes) {
			return b, nil
		}
		if b, err = set(b, "bytes", masked); err != nil {
			return nil, err
		}
		return edit(b, "key", func([]byte) ([]byte, error) { return []byte(`""`), nil }) // it may name what was typed
	})
}

// output masks the output and returns the digest of the whole.
func (m *remake) output() ([]byte, error) {
	if m.from == m.to {
		return m.inPlace()
	}
	in, err := os.Open(filepath.Join(m.from, OutputFile))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(m.to, OutputFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	st, err := in.Stat()
	if err != nil {
		return nil, err
	}
	whole := sha256.New()
	if err := masked(in, st.Size(), m.hits, io.MultiWriter(out, whole)); err != nil {
		return nil, err
	}
	return whole.Sum(nil), out.Close()
}

// inPlace masks the output where it stands, and reads it once more for its digest.
func (m *remake) inPlace() ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(m.from, OutputFile), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := tty.MaskAt(f, m.hits); err != nil {
		return nil, err
	}
	whole := sha256.New()
	if _, err := io.Copy(whole, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return nil, err
	}
	return whole.Sum(nil), f.Close()
}

// chunks writes the index anew, from the output as it is masked now.
func (m *remake) chunks() error {
	raw, err := os.Open(filepath.Join(m.to, OutputFile))
	if err != nil {
		return err
	}
	defer raw.Close()
	return m.lines(ChunksFile, func(b []byte, n int) ([]byte, error) {
		e, err := decodeEvent(StreamOutput, n, b)
		if err != nil {
			return nil, err
		}
		c := e.Chunk
		if c.SHA256 == "" || len(within(m.hits, c.Offset, c.Length)) == 0 {
			return b, nil
		}
		part := sha256.New()
		if _, err := io.Copy(part, io.NewSectionReader(raw, c.Offset, c.Length)); err != nil {
			return nil, err
		}
		return set(b, "sha256", hex.EncodeToString(part.Sum(nil)))
	})
}

// service writes the service events anew.
func (m *remake) service() error {
	return m.lines(ServiceFile, func(b []byte, _ int) ([]byte, error) {
		return edit(b, "payload", func(v []byte) ([]byte, error) { return mapStrings(v, m.text) })
	})
}

// lines writes a stream anew, each line as f makes it.
func (m *remake) lines(name string, f func(b []byte, line int) ([]byte, error)) error {
	in, err := os.Open(filepath.Join(m.from, name))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := durable.Create(m.to, &durable.Options{Sync: m.sync})
	if err != nil {
		return err
	}
	if err := eachLine(newLineReader(name, in), &stream{bufio.NewWriter(out), nil}, f); err != nil {
		out.Discard()
		return err
	}
	in.Close() // Windows renames over no open file
	return out.Commit(filepath.Join(m.to, name))
}

func eachLine(in *lineReader, out *stream, f func([]byte, int) ([]byte, error)) error {
	for {
		b, err := in.next()
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if b, err = f(b, in.Line()); err != nil {
			return err
		}
		if err := errors.Join(out.write(b), out.write([]byte("\n"))); err != nil {
			return err
		}
	}
}

// copy takes a stream as it is.
func (m *remake) copy(name string) error {
	if m.from == m.to {
		return nil
	}
	return m.lines(name, func(b []byte, _ int) ([]byte, error) { return b, nil })
}

// within returns the hits that touch n bytes at an offset; hits are sorted by their start.
func within(hits []tty.Hit, at, n int64) []tty.Hit {
	from, _ := slices.BinarySearchFunc(hits, at, func(h tty.Hit, at int64) int {
		if h.End <= at {
			return -1
		}
		return 1
	})
	to := from
	for to < len(hits) && hits[to].Start < at+n {
		to++
	}
	return hits[from:to]
}

// blockEnd returns how many of n bytes at an offset to mask at once, so that no hit is cut in two where that can be.
func blockEnd(hits []tty.Hit, at, n int64) int64 {
	for _, h := range within(hits, at+n-1, 1) {
		if h.Start > at && h.End > at+n {
			return h.Start - at
		}
	}
	return n
}

// masked copies size bytes of in to out, masked.
func masked(in io.ReaderAt, size int64, hits []tty.Hit, out io.Writer) error {
	buf := make([]byte, 256<<10)
	for at := int64(0); at < size; {
		b := buf[:min(size-at, int64(len(buf)))]
		b = b[:blockEnd(hits, at, int64(len(b)))]
		if _, err := in.ReadAt(b, at); err != nil {
			return err
		}
		tty.Mask(b, at, within(hits, at, int64(len(b))))
		if _, err := out.Write(b); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// What is edited here is JSON of others too: keys that are not known, their order and how numbers are written stay.

// member returns where the value of a key stands in an object: from start to before end; 0, 0 where there is none. The last of
// several counts, as for a reader.
func member(object []byte, key string) (start, end int64, err error) {
	var s jsonscan.Scanner
	s.Reset(object)
	for s.Begin('{'); s.More('}'); {
		name := string(s.Key())
		if v := s.Raw(); strings.EqualFold(name, key) {
			end = int64(s.Offset())
			start = end - int64(len(v))
		}
	}
	if err := s.Err(); err != nil {
		return 0, 0, fmt.Errorf("%w in %.40q", err, object)
	}
	return start, end, nil
}

// edit replaces the value of a key by what f makes of it. Where the key is absent nothing changes.
func edit(object []byte, key string, f func(value []byte) ([]byte, error)) ([]byte, error) {
	start, end, err := member(object, key)
	if err != nil || end == 0 {
		return object, err
	}
	value, err := f(object[start:end])
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{object[:start], value, object[end:]}, nil), nil
}

// set replaces the value of a key that is there.
func set(object []byte, key string, v any) ([]byte, error) {
	return edit(object, key, func([]byte) ([]byte, error) { return jsonscan.Marshal(v) })
}

// mapStrings replaces each string of a JSON value by what f makes of it; keys of objects are strings too. f keeps the length. It is
// given a member's value behind its key, "key: value", for a name may say that it is a secret. White space and all the rest stay.
func mapStrings(value []byte, f func(string) string) ([]byte, error) {
	var out []byte
	last := ""
	for len(value) > 0 {
		i := bytes.IndexByte(value, '"')
		if i < 0 {
			break
		}
		end := stringEnd(value[i:])
		if end < 0 {
			return nil, fmt.Errorf("a string without an end in %.40q", value)
		}
		name := ""
		if string(bytes.TrimSpace(value[:i])) == ":" {
			name = last + ": "
		}
		out = append(out, value[:i]...)
		literal := value[i : i+end]
		value = value[i+end:]
		var s string
		if err := json.Unmarshal(literal, &s); err != nil {
			return nil, err
		}
		last = s
		if t := f(name + s)[len(name):]; t != s {
			b, err := jsonscan.Marshal(t)
			if err != nil {
				return nil, err
			}
			literal = b
		}
		out = append(out, literal...)
	}
	return append(out, value...), nil
}

// stringEnd returns the length of the string literal that b begins with, -1 where it has no end.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
