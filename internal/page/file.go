package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// FileOptions say how a page is written as one file.
type FileOptions struct {
	Bundle   Bundle
	Payloads int64 // how many bytes of payloads it holds at most, before compression; 0 is DefaultPayloads, less than that none
	Progress func(done, total int64)
}

// DefaultPayloads is how many bytes of payloads a file holds where nobody says otherwise. maxRecords is how many of records, files and
// terminals it holds in any case: without them there is little that payloads could be looked at from.
const DefaultPayloads, maxRecords = 20 << 20, 32 << 20

// blockSize is how long a block is, in bytes before compression: a page unpacks it whole for one document of it.
const blockSize = 512 << 10

// maxAbsent bounds how many of the documents that a file does not hold are named; the others are counted.
const maxAbsent = 1000

// Written is what a file came to.
type Written struct {
	Documents int       `json:"documents"`
	Bytes     int64     `json:"bytes"`     // of the file
	TooLarge  int       `json:"too_large"` // documents that it does not hold since Payloads or another bound allows no more
	Missing   int       `json:"missing"`   // those that the recordings should have
	Absent    []Absent  `json:"absent"`    // those, and what else it does not hold; never nil
	Problems  []Problem `json:"problems"`  // what of the recordings is damaged; never nil
}

// WriteFile writes the page with the documents of a shelf. They stand in memory one block at a time.
func (s *Shelf) WriteFile(ctx context.Context, w io.Writer, o *FileOptions) (*Written, error) {
	if err := o.Bundle.check(); err != nil {
		return nil, err
	}
	docs, err := s.Documents(ctx)
	if err != nil {
		return nil, err
	}
	count := &counting{w: w}
	f := &fileWriter{shelf: s, ctx: ctx, w: count, table: make(map[string][]int), step: o.Progress, blocks: 1}
	f.payloads.most, f.records.most = o.Payloads, maxRecords
	if f.payloads.most == 0 {
		f.payloads.most = DefaultPayloads
	}
	f.sizes = docs.sizes
	f.total = int64(len(docs.First) + len(docs.Turns) + len(docs.Records) + len(docs.Rest) + len(docs.Payloads))
	f.write(o.Bundle.head(""))
	f.all(docs)
	f.write(o.Bundle.foot())
	out := &Written{Documents: f.documents, Bytes: count.n, TooLarge: f.tooLarge, Missing: f.missing, Absent: s.Library.Absent}
	out.Problems = append(s.problems(ctx), s.Library.Problem...)
	return out, f.err
}

// A room is how many bytes of some documents a file may have, and what it has of them.
type room struct{ most, has int64 }

// take reports whether so many bytes more may be had, and then they are.
func (r *room) take(n int64) bool {
	if n > r.most-r.has {
		return false
	}
	r.has += n
	return true
}

// A fileWriter packs documents into blocks. The first error ends it.
type fileWriter struct {
	shelf *Shelf
	ctx   context.Context
	w     io.Writer
	err   error
	step  func(done, total int64)

	table       map[string][]int // as the package comment says
	blocks      int              // that there are, block 0 too
	first       []byte           // block 0, which is written last: it says what is absent
	open        []byte           // the last block
	records     room
	payloads    room
	recent      []recent // payloads that the next one may repeat
	tooLarge    int      // how many documents are absent for that
	missing     int      // how many since they are not there
	unnamed     int      // how many are not named one by one
	documents   int
	sizes       map[string]int64 // of payloads, by path
	done, total int64
}

// A recent is a payload that was packed.
type recent struct {
	bytes  []byte
	pieces []int
}

func (f *fileWriter) write(text string) {
	if f.err == nil {
		_, f.err = io.WriteString(f.w, text)
	}
}

func (f *fileWriter) all(d *Documents) {
	for _, path := range d.First {
		f.document(path, func(b []byte) {
			f.put(path, []int{0, len(f.first), len(b)})
			f.first = append(f.first, b...)
		})
	}
	for _, path := range d.Turns {
		f.document(path, func(b []byte) { f.put(path, f.add(b)) })
	}
	for _, path := range slices.Concat(d.Records, d.Rest) {
		f.document(path, func(b []byte) { f.bounded(path, b, &f.records, f.add) })
	}
	for _, path := range d.Payloads {
		f.payload(path)
	}
	if d.Unchanged > 0 {
		f.absent("", d.UnchangedBytes, fmt.Sprintf("the contents of %d files that the run did not change", d.Unchanged))
	}
	f.flush()
	library := jsonscan.MustMarshal(&f.shelf.Library)
	f.put("library.json", []int{0, len(f.first), len(library)})
	f.block("0", append(f.first, library...))
	f.block("table", jsonscan.MustMarshal(f.table))
}

// put notes where a document stands. One that was decoded stands also at its digest alone: who has the record knows no other name of it.
func (f *fileWriter) put(path string, pieces []int) {
	f.documents++
	f.table[path] = pieces
	if name := path[strings.LastIndexByte(path, '/')+1:]; strings.Contains(path, "/payload/") && strings.Contains(name, ".") {
		digest, _, _ := strings.Cut(name, ".")
		f.table[strings.TrimSuffix(path, name)+digest] = pieces
	}
}

// document makes a document. One that cannot be made is a problem of its recording, not of the file.
func (f *fileWriter) document(path string, put func(b []byte)) {
	if f.done++; f.step != nil {
		f.step(f.done, f.total)
	}
	if f.err = errors.Join(f.err, f.ctx.Err()); f.err != nil {
		return
	}
	b, err := f.shelf.Document(f.ctx, path)
	switch {
	case errors.Is(err, ErrNoDocument): // a blob that is gone; verify tells of it too
		f.missing++
		f.absent(path, f.sizes[path], "it is missing from the recording")
	case err != nil:
		f.shelf.Library.Problem = append(f.shelf.Library.Problem, Problem{path, err.Error()})
		f.absent(path, f.sizes[path], err.Error())
	default:
		put(b)
	}
}

// payload packs a payload: what it has in common with one of those before stands there already.
func (f *fileWriter) payload(path string) {
	if size := max(f.sizes[path], f.shelf.sizeOf(path)); size > f.payloads.most-f.payloads.has {
		f.done++
		f.leave(path, size, &f.payloads)
		return
	}
	f.document(path, func(b []byte) { f.bounded(path, b, &f.payloads, f.addLike) })
}

func (f *fileWriter) bounded(path string, b []byte, in *room, add func([]byte) []int) {
	if !in.take(int64(len(b))) {
		f.leave(path, int64(len(b)), in)
		return
	}
	f.put(path, add(b))
}

// leave leaves out what there is no room for.
func (f *fileWriter) leave(path string, size int64, in *room) {
	f.tooLarge++
	why := fmt.Sprintf("this file was to hold %d bytes of payloads at most: export it again with more --payloads", max(in.most, 0))
	if in == &f.records {
		why = fmt.Sprintf("a file holds %d bytes of records, files and terminals at most: tapedeck ui shows all", in.most)
	}
	f.absent(path, size, why)
}

func (f *fileWriter) absent(path string, size int64, why string) {
	list := &f.shelf.Library.Absent
	if n := len(*list); n < maxAbsent {
		*list = append(*list, Absent{path, size, why})
		return
	}
	last := &(*list)[maxAbsent-1]
	if f.unnamed++; last.Path != "" {
		f.unnamed++
		*last = Absent{Size: last.Size}
	}
	last.Size, last.Why = last.Size+size, fmt.Sprintf("and %d others", f.unnamed)
}

// add puts bytes into the last block and returns where they stand.
func (f *fileWriter) add(b []byte) []int {
	if len(f.open) > 0 && len(f.open)+len(b) > blockSize {
		f.flush()
	}
	at := []int{f.blocks, len(f.open), len(b)}
	f.open = append(f.open, b...)
	return at
}

func (f *fileWriter) flush() {
	if len(f.open) == 0 {
		return
	}
	f.block(fmt.Sprint(f.blocks), f.open)
	f.blocks++
	f.open = f.open[:0]
}

// Bounds of what of payloads is held for those that follow: how many, the longest one in bytes, the most pieces of one.
const maxRecent, maxLike, maxPieces = 6, 8 << 20, 300

// minShared is how many bytes two payloads have in common where that is worth a piece.
const minShared = 1024

// addLike is add for bytes that may begin and end like a payload before: each request of a conversation repeats the last.
func (f *fileWriter) addLike(b []byte) (pieces []int) {
	var like recent
	before, behind := 0, 0
	for _, r := range f.recent {
		head := commonPrefix(r.bytes, b)
		tail := min(commonSuffix(r.bytes, b), len(b)-head, len(r.bytes)-head)
		if head+tail > before+behind {
			like, before, behind = r, head, tail
		}
	}
	if before < minShared {
		before = 0
	}
	if behind < minShared {
		behind = 0
	}
	pieces = cutPieces(like.pieces, 0, before)
	if middle := b[before : len(b)-behind]; len(middle) > 0 {
		pieces = append(pieces, f.add(middle)...)
	}
	pieces = append(pieces, cutPieces(like.pieces, len(like.bytes)-behind, len(like.bytes))...)
	if len(pieces) > 3*maxPieces {
		pieces = f.add(b)
	}
	if len(b) >= 2*minShared && len(b) <= maxLike {
		if f.recent = append(f.recent, recent{b, pieces}); len(f.recent) > maxRecent {
			f.recent = f.recent[1:]
		}
	}
	return pieces
}

// cutPieces returns the pieces of a part of what pieces are.
func cutPieces(pieces []int, from, to int) (out []int) {
	at := 0
	for i := 0; i < len(pieces); i += 3 {
		n := pieces[i+2]
		if a, b := max(from, at), min(to, at+n); a < b {
			out = append(out, pieces[i], pieces[i+1]+a-at, b-a)
		}
		at += n
	}
	return out
}

// stride is how many bytes are compared at once.
const stride = 256

func commonPrefix(a, b []byte) (n int) {
	for n+stride <= min(len(a), len(b)) && bytes.Equal(a[n:n+stride], b[n:n+stride]) {
		n += stride
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b []byte) (n int) {
	for n+stride <= min(len(a), len(b)) && bytes.Equal(a[len(a)-n-stride:len(a)-n], b[len(b)-n-stride:len(b)-n]) {
		n += stride
	}
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// block writes a block: gzip, then base64, which no markup can end.
func (f *fileWriter) block(name string, b []byte) {
	f.write(`<script type="application/x-tapedeck" id="td-` + name + `">`)
	if f.err != nil {
		return
	}
	text := base64.NewEncoder(base64.StdEncoding, f.w)
	z := gzip.NewWriter(text)
	_, err := z.Write(b)
	f.err = errors.Join(err, z.Close(), text.Close())
	f.write("</script>\n")
}

// counting counts what passes.
type counting struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
