package files

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" // Git's name of a blob, not a protection
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// WritePatch writes changes as a patch that git apply takes forth and back: modes, symbolic links, empty files, names and
// contents of any bytes. Files in .git and secret files are left out, and so is what Git does not see: directories, and
// permissions but for the owner's x. A rename is a delete and an add; a change of type is both at one path.
//
// Errors are those of w and of the store. Contents are held of a few short files at a time, or of one long one. Of a text of over
// a megabyte what lies between its first changed line and its last is replaced as a whole.
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
func (p *patchWriter) change(c *Change) (err error) {
	before, after, ok := c.sides()
	if !ok || c.IsSecret() || c.InGit() {
		return nil
	}
	if before != nil && after != nil && before.Mode.IsLink() != after.Mode.IsLink() {
		err = p.section(c.Path, before, nil)
		before = nil
	}
	if err == nil {
		err = p.section(c.Path, before, after)
	}
	if err != nil {
		return fmt.Errorf("files: patch of %s: %w", c.Path, err)
	}
	return nil
}

// section writes what stands under one "diff --git".
func (p *patchWriter) section(path string, before, after *Entry) error {
	old, done, err := contentOf(before, p.store)
	if err != nil {
		return err
	}
	defer done()
	now, done2, err := contentOf(after, p.store)
	if err != nil {
		return err
	}
	defer done2()
	p.head(path, before, after)
	if before != nil && after != nil && bytes.Equal(old, now) {
		return nil
	}
	// The names are whole: git apply refuses a binary patch with short ones.
	fmt.Fprintf(p.w, "index %s..%s", gitBlob(before, old), gitBlob(after, now))
	if before != nil && after != nil && before.Mode.Git() == after.Mode.Git() {
		fmt.Fprintf(p.w, " %s", before.Mode.Git())
	}
	p.w.WriteByte('\n')
	switch {
	case isBinary(old) || isBinary(now):
		p.binary(old, now)
	case len(old) > 0 || len(now) > 0:
		p.name("--- ", "a/"+path, before)
		p.name("+++ ", "b/"+path, after)
		writeHunks(p.w, old, now)
	}
	return nil
}

// contentOf returns what Git takes for the content of e, of a link its target, until done is called: a short content lies in a buffer
// that is used again.
func contentOf(e *Entry, store cas.Store) (b []byte, done func(), err error) {
	switch {
	case e == nil:
		return nil, func() {}, nil
	case e.Mode.IsLink():
		return []byte(e.Target), func() {}, nil
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

// name writes one of the two lines before the hunks. A name with a space ends with a tab, so that its end is known.
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

// contextLines is how many unchanged lines stand around a change.
const contextLines = 3

// longText is the length in bytes of the longest text whose changes are told line by line. Tests lower it.
var longText = 1 << 20

// writeHunks writes the hunks that turn old into now. The search for common lines is bounded: where two texts share
// little, a run of lines is replaced as a whole.
func writeHunks(w *bufio.Writer, old, now []byte) {
	if len(old) == 0 || len(now) == 0 { // most of what a run changes is new, or gone
		fmt.Fprintf(w, "@@ -%s +%s @@\n", hunkRange(0, countLines(old)), hunkRange(0, countLines(now)))
		writeWhole(w, '-', old)
		writeWhole(w, '+', now)
		return
	}
	a, b := splitLines(string(old)), splitLines(string(now))
	diffs := []lcs.Diff{wholeDiff(a, b)}
	if max(len(old), len(now)) <= longText {
		diffs = lcs.DiffLines(a, b)
	}
	for len(diffs) > 0 {
		n := 1
		for n < len(diffs) && diffs[n].Start-diffs[n-1].End <= 2*contextLines {
			n++
		}
		writeHunk(w, a, b, diffs[:n])
		diffs = diffs[n:]
	}
}

// wholeDiff is one difference, from the first line that differs to the last.
func wholeDiff(a, b []string) lcs.Diff {
	start, end := 0, 0
	for n := min(len(a), len(b)); start < n && a[start] == b[start]; {
		start++
	}
	for n := min(len(a), len(b)) - start; end < n && a[len(a)-1-end] == b[len(b)-1-end]; {
		end++
	}
	return lcs.Diff{Start: start, End: len(a) - end, ReplStart: start, ReplEnd: len(b) - end}
}

// writeHunk writes one hunk: neighbouring differences and the lines around and between them.
func writeHunk(w *bufio.Writer, a, b []string, diffs []lcs.Diff) {
	first, last := diffs[0], diffs[len(diffs)-1]
	lead := min(contextLines, first.Start)
	tail := min(contextLines, len(a)-last.End)
	aFrom, aTo := first.Start-lead, last.End+tail
	bFrom, bTo := first.ReplStart-lead, last.ReplEnd+tail
	fmt.Fprintf(w, "@@ -%s +%s @@\n", hunkRange(aFrom, aTo), hunkRange(bFrom, bTo))
	at := aFrom
	for _, d := range diffs {
		writeLines(w, ' ', a[at:d.Start])
		writeLines(w, '-', a[d.Start:d.End])
		writeLines(w, '+', b[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	writeLines(w, ' ', a[at:aTo])
}

// hunkRange returns "line,count" of the lines from (from 0) to to; an empty range names the line before it.
func hunkRange(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprintf("%d", from+1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

func writeLines(w *bufio.Writer, mark byte, lines []string) {
	for _, l := range lines {
		w.WriteByte(mark)
		w.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			w.WriteString(noNewline)
		}
	}
}

// noNewline follows a last line that has no newline.
const noNewline = "\n\\ No newline at end of file\n"

// writeWhole is writeLines of all that b has.
func writeWhole(w *bufio.Writer, mark byte, b []byte) {
	for line := range bytes.Lines(b) {
		w.WriteByte(mark)
		w.Write(line)
	}
	if len(b) > 0 && b[len(b)-1] != '\n' {
		w.WriteString(noNewline)
	}
}

// countLines returns how many lines b has; the last may have no newline.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// splitLines returns the lines of s, each with its newline but perhaps the last.
func splitLines(s string) []string {
	return slices.AppendSeq(make([]string, 0, strings.Count(s, "\n")+1), strings.Lines(s))
}

// binary writes both contents whole, the new one first, so that the patch can be taken back.
func (p *patchWriter) binary(old, now []byte) {
	p.w.WriteString("GIT binary patch\n")
	_ = p.literal(bytes.NewReader(now), int64(len(now)))
	_ = p.literal(bytes.NewReader(old), int64(len(old))) // a reader of bytes has no errors
}

// literal writes a content of size bytes. The error is that of r: p.w keeps its own.
func (p *patchWriter) literal(r io.Reader, size int64) error {
	fmt.Fprintf(p.w, "literal %d\n", size)
	l := &base85Lines{w: p.w}
	z := zlib.NewWriter(l)
	if _, err := io.Copy(z, r); err != nil {
		return err
	}
	z.Close()
	l.flush()
	p.w.WriteByte('\n')
	return nil
}

// base85Lines writes bytes as Git does in a binary patch: up to 52 a line, a letter for their number (A to Z, a to z)
// and five digits of base 85 for each four, the last filled up with zeros.
type base85Lines struct {
	w   *bufio.Writer
	buf [52]byte
	n   int
}

const base85Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// Write implements io.Writer. It never fails: the buffered writer below keeps its error.
func (l *base85Lines) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n := copy(l.buf[l.n:], b[done:])
		done += n
		if l.n += n; l.n == len(l.buf) {
			l.flush()
		}
	}
	return len(b), nil
}

// flush ends the line, where one has begun.
func (l *base85Lines) flush() {
	if l.n == 0 {
		return
	}
	if l.n <= 26 {
		l.w.WriteByte(byte('A' + l.n - 1))
	} else {
		l.w.WriteByte(byte('a' + l.n - 27))
	}
	clear(l.buf[l.n:])
	for i := 0; i < l.n; i += 4 {
		l.word(uint32(l.buf[i])<<24 | uint32(l.buf[i+1])<<16 | uint32(l.buf[i+2])<<8 | uint32(l.buf[i+3]))
	}
	l.w.WriteByte('\n')
	l.n = 0
}

func (l *base85Lines) word(v uint32) {
	var digits [5]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = base85Digits[v%85]
		v /= 85
	}
	l.w.Write(digits[:])
}
