package seal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"golang.org/x/mod/sumdb/tlog"
)

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// A leaf is what a stream gives, one by one and in order.
type leaf struct {
	hash tlog.Hash
	size int64  // bytes of the recording that it covers
	text []byte // of a blob's
}

// A reading reads the streams of a recording.
type reading struct {
	inv        *inventory
	trustBlobs bool
	found      func(*Problem) error // is told what does not hold; an error ends the reading
	holds      func(store string, d cas.Digest)
	progress   func(done, total int64)
	done, told int64
}

// tell counts bytes that were read.
func (r *reading) tell(n int64) {
	const often = 4 << 20 // bytes
	r.done += n
	if r.progress != nil && r.done-r.told >= often {
		r.told = r.done
		r.progress(min(r.done, r.inv.total), r.inv.total)
	}
}

// finish tells that everything was read.
func (r *reading) finish() {
	if r.progress != nil {
		r.progress(r.inv.total, r.inv.total)
	}
}

// stream gives the leaves of s.
func (r *reading) stream(ctx context.Context, s *source, emit func(leaf) error) error {
	counted := func(l leaf) error {
		r.tell(l.size)
		return emit(l)
	}
	switch s.kind {
	case Lines:
		return r.lines(ctx, s, counted)
	case Chunks:
		return r.chunks(ctx, s, counted)
	case Blobs:
		return r.blobs(ctx, s, counted)
	default:
		return r.files(ctx, s, counted)
	}
}

// blockSize is how much of a file of lines is read at once, in bytes.
const blockSize = 1 << 20

// A block is some whole lines. One byte stands before them: the prefix of a leaf's hash is written over the byte before each
// line, so that no line is copied.
type block struct {
	buf    []byte // one more than a block
	used   int    // bytes of lines behind the first
	leaves []leaf // what comes of them; set already for a line that is longer than a block
}

func (b *block) hash() {
	if len(b.leaves) > 0 {
		return
	}
	for at, end := 1, 1+b.used; at < end; {
		n := bytes.IndexByte(b.buf[at:end], '\n') + 1
		if n == 0 {
			n = end - at
		}
		b.buf[at-1] = 0
		b.leaves = append(b.leaves, leaf{hash: sha256.Sum256(b.buf[at-1 : at+n]), size: int64(n)})
		at += n
	}
}

// lines gives the lines of a file, however long they are.
func (r *reading) lines(ctx context.Context, s *source, emit func(leaf) error) error {
	f, err := r.inv.open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	free := make(chan *block, 64)
	cut := &cutter{r: f, free: free, size: int(min(blockSize, s.size+1))}
	return pipeline(ctx, s.size, cut.run, (*block).hash, func(b *block) error {
		for _, l := range b.leaves {
			if err := emit(l); err != nil {
				return err
			}
		}
		select {
		case free <- b:
		default:
		}
		return nil
	})
}

// A cutter cuts a file into blocks of whole lines.
type cutter struct {
	r    io.Reader
	free chan *block
	size int // of a block, in bytes
}

func (c *cutter) block() *block {
	select {
	case b := <-c.free:
		b.leaves, b.used = b.leaves[:0], 0
		return b
	default:
		return &block{buf: make([]byte, 1+c.size)}
	}
}

func (c *cutter) run(yield func(*block) error) error {
	for b := c.block(); ; {
		n, err := io.ReadFull(c.r, b.buf[1+b.used:])
		b.used += n
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			if b.used == 0 {
				return nil
			}
			return yield(b)
		}
		if err != nil {
			return err
		}
		data := b.buf[1:]
		end := bytes.LastIndexByte(data, '\n') + 1
		next := c.block()
		if end == 0 {
			rest, err := c.long(b)
			if err != nil {
				return err
			}
			next.used = copy(next.buf[1:], rest)
		} else {
			next.used = copy(next.buf[1:], data[end:])
			b.used = end
		}
		if err := yield(b); err != nil {
			return err
		}
		b = next
	}
}

// long reads to the end of a line that fills a block and goes on, makes it the leaf of b, and returns what stands behind it.
func (c *cutter) long(b *block) (rest []byte, err error) {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(b.buf[1:])
	size := int64(b.used)
	for {
		n, err := c.r.Read(b.buf[1:])
		data := b.buf[1 : 1+n]
		end := bytes.IndexByte(data, '\n') + 1
		if end > 0 {
			data, rest = data[:end], data[end:]
		}
		h.Write(data)
		size += int64(len(data))
		if end > 0 || err == io.EOF {
			b.leaves = append(b.leaves, leaf{hash: tlog.Hash(h.Sum(nil)), size: size})
			return rest, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// chunks gives the chunks of a file as its index cuts it.
func (r *reading) chunks(ctx context.Context, s *source, emit func(leaf) error) error {
	f, err := r.inv.open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	ok, err := cuts(ctx, r.inv.at(indexOf(s.path)), func(n int64) error {
		h.Reset()
		h.Write([]byte{0})
		got, err := io.CopyN(h, f, n)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if got != n {
			return errChanging
		}
		return errors.Join(ctx.Err(), emit(leaf{hash: tlog.Hash(h.Sum(nil)), size: n}))
	})
	if err == nil && !ok {
		err = errChanging
	}
	return err
}

// errChanging says that somebody writes to the recording.
var errChanging = errors.New("a file changed while it was read: nobody may write to a recording that is sealed or verified")

// indexOf is the file that cuts a stream of chunks.
func indexOf(raw string) string { return raw[:len(raw)-len(rawSuffix)] + jsonlSuffix }

// perFile is what opening a file costs, in bytes that are hashed meanwhile.
const perFile = 16 << 10

// A hashing is the reading of one file or blob.
type hashing struct {
	rel    string
	blob   blob
	file   File
	digest cas.Digest
	size   int64
	err    error
}

// blobs gives the leaves of a store, and holds the bytes of each blob against its name.
func (r *reading) blobs(ctx context.Context, s *source, emit func(leaf) error) error {
	produce := func(yield func(*hashing) error) error {
		for _, b := range s.blobs {
			if err := yield(&hashing{rel: s.path + "/" + b.digest.String(), blob: b}); err != nil {
				return err
			}
		}
		return nil
	}
	work := func(h *hashing) {
		h.digest, h.size = h.blob.digest, h.blob.size
		if !r.trustBlobs {
			h.digest, h.size, h.err = r.sum(h.rel, h.blob.size)
		}
	}
	return pipeline(ctx, s.size+perFile*int64(len(s.blobs)), produce, work, func(h *hashing) error {
		if err := r.report(h); err != nil {
			return err
		}
		if h.err == nil && h.digest != h.blob.digest {
			p := problem(CodeBlob, h.rel, "its bytes hash to %s: they are not those of its name", h.digest)
			if err := r.found(p); err != nil {
				return err
			}
		} else if h.err == nil && r.holds != nil {
			r.holds(s.path, h.digest)
		}
		text := h.blob.leaf()
		return emit(leaf{hash: recordHash(text), size: h.size, text: text})
	})
}

// files gives the leaves of the stream of files, whose digests it sets.
func (r *reading) files(ctx context.Context, s *source, emit func(leaf) error) error {
	at := 0
	produce := func(yield func(*hashing) error) error {
		for _, f := range s.files {
			if err := yield(&hashing{rel: f.Path, file: f}); err != nil {
				return err
			}
		}
		return nil
	}
	work := func(h *hashing) { h.digest, h.size, h.err = r.sum(h.rel, h.file.Size) }
	return pipeline(ctx, s.size+perFile*int64(len(s.files)), produce, work, func(h *hashing) error {
		if err := r.report(h); err != nil {
			return err
		}
		s.files[at] = File{Path: h.rel, Size: h.size, BLAKE3: h.digest}
		at++
		return emit(leaf{hash: recordHash(s.files[at-1].leaf()), size: h.size})
	})
}

// report tells of a file that could not be read.
func (r *reading) report(h *hashing) error {
	if h.err == nil {
		return nil
	}
	var p *Problem
	if !errors.As(h.err, &p) {
		p = problem(CodeUnreadable, h.rel, "%v", h.err)
	}
	return r.found(p)
}

// sum returns the BLAKE3 and the length of a file, in bytes, which was size when the directory was read.
func (r *reading) sum(rel string, size int64) (cas.Digest, int64, error) {
	if rel == manifest && r.inv.manifest != nil {
		return cas.Sum(r.inv.manifest), int64(len(r.inv.manifest)), nil
	}
	f, err := r.inv.open(rel)
	if err != nil {
		return cas.Digest{}, 0, err
	}
	defer f.Close()
	h := cas.NewHasher()
	n, err := io.CopyBuffer(onlyWriter{h}, onlyReader{f}, make([]byte, min(size+1, 64<<10)))
	if err != nil {
		return cas.Digest{}, 0, fmt.Errorf("read %s: %w", rel, err)
	}
	return h.Sum(), n, nil
}

// onlyReader and onlyWriter keep io.CopyBuffer to the buffer that it was given.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// smallWork is what is hashed faster than goroutines are started, in bytes.
const smallWork = 256 << 10

// pipeline gives what produce yields to work, on as many goroutines as there are processors, and what came of it to consume,
// in the order of produce. produce runs on a goroutine of its own, consume on the caller's; all have ended when it returns.
// Three jobs a processor are under way at most, so memory is bounded. Where the work is small (bytes) all is done by the caller.
func pipeline[J any](ctx context.Context, bytes int64, produce func(yield func(J) error) error, work func(J), consume func(J) error) error {
	if bytes < smallWork {
		return produce(func(j J) error {
			work(j)
			return errors.Join(ctx.Err(), consume(j))
		})
	}
	type item struct {
		job  J
		done chan struct{}
	}
	n := runtime.GOMAXPROCS(0)
	todo, order := make(chan *item, n), make(chan *item, 2*n)
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	var produced error // read when order is closed
	all.Go(func() {
		defer close(order)
		defer close(todo)
		produced = produce(func(j J) error {
			it := &item{job: j, done: make(chan struct{})}
			for _, queue := range []chan *item{order, todo} {
				select {
				case queue <- it:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range n {
		all.Go(func() {
			for it := range todo {
				work(it.job)
				close(it.done)
			}
		})
	}
	err := func() error {
		for it := range order {
			select {
			case <-it.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := consume(it.job); err != nil {
				return err
			}
		}
		return produced
	}()
	stop()
	all.Wait()
	return err
}
