package files

import (
	"bufio"
	"bytes"
	"crypto/sha1" // Git's name of a blob, not a protection
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// WritePatch writes changes as a patch that git apply takes forth and back: modes, symbolic links, empty files, names and
// contents of any bytes. Files in .git and secret files are left out, and so is what Git does not see: directories, and
// permissions but for the owner's x. A rename is a delete and an add; a change of type is both at one path.
//
// Errors are those of w and of the store. Contents are held of a few short files at a time. Of a file of over a megabyte nothing
// is: what lies between its first changed line and its last is replaced as a whole.
func WritePatch(w io.Writer, changes []Change, store cas.Store) error {
	b := &patchBatches{out: bufio.NewWriterSize(w, 1<<16), store: store}
	for len(changes) > 0 {
		n := patchBatch(changes)
		if err := b.write(changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return b.out.Flush()
}

// Bounds of what is written side by side: changes, and bytes of both sides together.
const (
	maxPatchBatch = 64
	maxPatchBytes = 1 << 20
)

// patchBatch returns how many of the first changes are written side by side: at least one.
func patchBatch(changes []Change) (n int) {
	size := int64(0)
	for n < min(len(changes), maxPatchBatch) {
		for _, e := range []*Entry{changes[n].Before, changes[n].After} {
			if e != nil {
				size += e.Size
			}
		}
		if n > 0 && size > maxPatchBytes {
			break
		}
		n++
	}
	return n
}

// A patchBatches writes changes some at a time. What it needs for that it uses again: there may be very many.
type patchBatches struct {
	out   *bufio.Writer
	store cas.Store
	texts [maxPatchBatch]bytes.Buffer
	errs  [maxPatchBatch]error
}

// keptText is the size of the longest text that a batch keeps room for, in bytes.
const keptText = 64 << 10

// write writes the sections of some changes, in their order.
func (b *patchBatches) write(changes []Change) error {
	if len(changes) == 1 {
		return (&patchWriter{w: b.out, store: b.store}).change(&changes[0])
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range numWorkers() {
		workers.Go(func() {
			p := &patchWriter{w: bufio.NewWriter(nil), store: b.store}
			for i := int(next.Add(1)) - 1; i < len(changes); i = int(next.Add(1)) - 1 {
				p.w.Reset(&b.texts[i])
				b.errs[i] = errors.Join(p.change(&changes[i]), p.w.Flush())
			}
		})
	}
	workers.Wait()
	for i := range changes {
		if b.errs[i] != nil {
			return b.errs[i]
		}
		text := &b.texts[i]
		if _, err := text.WriteTo(b.out); err != nil {
			return err
		}
		if text.Reset(); text.Cap() > keptText {
			*text = bytes.Buffer{}
		}
	}
	return nil
}

type patchWriter struct {
	w     *bufio.Writer // keeps its first error, which Flush returns
	store cas.Store
}

// change writes the sections of one path: none, one, or a delete and an add.
func (p *patchWriter) change(c *Change) error {
	if err := p.sections(c); err != nil {
		return fmt.Errorf("files: patch of %s: %w", c.Path, err)
	}
	return nil
}

func (p *patchWriter) sections(c *Change) error {
	before, after, ok := c.sides()
	if !ok || c.IsSecret() || c.InGit() {
		return nil
	}
	if before != nil && after != nil && before.Mode.IsLink() != after.Mode.IsLink() {
		if err := p.section(c.Path, before, nil); err != nil {
			return err
		}
		before = nil
	}
	return p.section(c.Path, before, after)
}

// section writes what stands under one "diff --git".
func (p *patchWriter) section(path string, before, after *Entry) error {
	if isLong(before) || isLong(after) {
		return p.longSection(path, before, after)
	}
	old, done, err := contentFor(before, p.store)
	if err != nil {
		return err
	}
	defer done()
	now, done2, err := contentFor(after, p.store)
	if err != nil {
		return err
	}
	defer done2()
	p.head(path, before, after)
	if before != nil && after != nil && bytes.Equal(old, now) {
		return nil
	}
	p.index(before, after, gitBlob(before, old), gitBlob(after, now))
	switch {
	case isBinary(old) || isBinary(now):
		p.binary(old, now)
	case len(old) > 0 || len(now) > 0:
		p.names(path, before, after)
		writeHunks(p.w, old, now)
	}
	return nil
}

// contentOf returns what Git takes for the content of e: of a link its target, of nothing nothing.
func contentOf(e *Entry, store cas.Store) ([]byte, error) {
	switch {
	case e == nil:
		return nil, nil
	case e.Mode.IsLink():
		return []byte(e.Target), nil
	}
	return store.Get(e.Digest)
}

// contentFor is contentOf for as long as done has not been called: a short content lies in a buffer that is used again.
func contentFor(e *Entry, store cas.Store) (b []byte, done func(), err error) {
	if e == nil || !e.Mode.IsRegular() {
		b, err = contentOf(e, store)
		return b, func() {}, err
	}
	return borrowBlob(store, e.Digest, e.Size)
}

// head writes the first lines of a section: its names, and what becomes of the mode.
func (p *patchWriter) head(path string, before, after *Entry) {
	fmt.Fprintf(p.w, "diff --git %s %s\n", quoteGit("a/"+path), quoteGit("b/"+path))
	switch {
	case before == nil:
		fmt.Fprintf(p.w, "new file mode %s\n", after.Mode.Git())
	case after == nil:
		fmt.Fprintf(p.w, "deleted file mode %s\n", before.Mode.Git())
	case before.Mode.Git() != after.Mode.Git():
		fmt.Fprintf(p.w, "old mode %s\nnew mode %s\n", before.Mode.Git(), after.Mode.Git())
	}
}

// index writes the line that names both contents, and their mode where it is one. The names are whole: git apply refuses
// a binary patch with short ones.
func (p *patchWriter) index(before, after *Entry, old, now string) {
	fmt.Fprintf(p.w, "index %s..%s", old, now)
	if before != nil && after != nil && before.Mode.Git() == after.Mode.Git() {
		fmt.Fprintf(p.w, " %s", before.Mode.Git())
	}
	p.w.WriteByte('\n')
}

// noBlob stands for the name of nothing.
var noBlob = strings.Repeat("0", 2*sha1.Size)

// gitBlob returns the name that Git gives a content, zeros for nothing.
func gitBlob(e *Entry, b []byte) string {
	if e == nil {
		return noBlob
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(b))
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}

// names writes the two lines before the hunks. A name with a space ends with a tab, so that its end is known.
func (p *patchWriter) names(path string, before, after *Entry) {
	p.name("--- ", "a/"+path, before)
	p.name("+++ ", "b/"+path, after)
}

func (p *patchWriter) name(mark, path string, e *Entry) {
	p.w.WriteString(mark)
	quoted := quoteGit(path)
	switch {
	case e == nil:
		p.w.WriteString("/dev/null")
	case quoted == path && strings.Contains(path, " "):
		p.w.WriteString(path + "\t")
	default:
		p.w.WriteString(quoted)
	}
	p.w.WriteByte('\n')
}

// binaryHead is how many bytes of a content say whether it is binary.
const binaryHead = 8000

// isBinary reports whether Git would take b for binary: a NUL among the first bytes.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), binaryHead)], 0) >= 0 }

// quoteGit returns a name as Git writes it: between quotation marks, with C's escapes, where a byte asks for it.
func quoteGit(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f || r == '"' || r == '\\' }) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		quoteByte(&b, s[i])
	}
	b.WriteByte('"')
	return b.String()
}

func quoteByte(b *strings.Builder, c byte) {
	const letters = "abtnvfr" // the escapes of bytes 7 to 13
	switch {
	case c == '"' || c == '\\':
		b.WriteByte('\\')
		b.WriteByte(c)
	case 7 <= c && c <= 13:
		b.WriteByte('\\')
		b.WriteByte(letters[c-7])
	case c < 0x20 || c >= 0x7f:
		fmt.Fprintf(b, `\%03o`, c)
	default:
		b.WriteByte(c)
	}
}
