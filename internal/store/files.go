package store

import (
	"bufio"
	"bytes"
	"container/list"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// runFiles are the files of the runs.
type runFiles struct {
	*fileCache
	dir string
	fs  faultfs.FS
	log *slog.Logger
}

// path is where the file of a run stands. The id is checked: nothing else ever becomes a path.
func (s *runFiles) path(id runtrace.ID) string {
	return filepath.Join(s.dir, id.File())
}

// An openFile is a descriptor of a run's file in the cache.
type openFile struct {
	run  *run
	f    faultfs.File
	refs int
	at   *list.Element
}

// A fileCache bounds the descriptors of run files: those in use, and of the others the ones that were used last.
type fileCache struct {
	max int
	// slots bounds how many are in use beside those kept, and how many threads wait for the disk.
	slots chan struct{}

	mu    sync.Mutex
	order *list.List // of *openFile, the last used first
}

func newFileCache(descriptors int) *fileCache {
	return &fileCache{max: descriptors, slots: make(chan struct{}, 32), order: list.New()}
}

// get returns the run's file, opened if need be. It is given back with put. The run's files lock is held.
func (c *fileCache) get(r *run, open func() (faultfs.File, error)) (*openFile, error) {
	c.slots <- struct{}{}
	c.mu.Lock()
	o := r.cache
	if o != nil {
		o.refs++
		c.order.MoveToFront(o.at)
	}
	c.mu.Unlock()
	if o != nil {
		return o, nil
	}
	f, err := open()
	if err != nil {
		<-c.slots
		return nil, err
	}
	o = &openFile{run: r, f: f, refs: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.at = c.order.PushFront(o)
	r.cache = o
	c.shrink()
	return o, nil
}

// shrink closes what was used longest ago while there are too many. It is locked.
func (c *fileCache) shrink() {
	for e := c.order.Back(); e != nil && c.order.Len() > c.max; {
		o, before := e.Value.(*openFile), e.Prev()
		if o.refs == 0 {
			c.close(o)
		}
		e = before
	}
}

// close closes a file that nobody uses. It is locked. (What was written is not lost with a close that fails: the file is compared
// with what it should hold when it is read.)
func (c *fileCache) close(o *openFile) {
	c.order.Remove(o.at)
	o.run.cache = nil
	o.f.Close()
}

func (c *fileCache) put(o *openFile) {
	c.mu.Lock()
	o.refs--
	c.mu.Unlock()
	<-c.slots
}

// drop closes the run's file, if it is open. The run's files lock is held, so that nobody uses it.
func (c *fileCache) drop(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.cache != nil {
		c.close(r.cache)
	}
}

func (c *fileCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// open opens the file of a run for writing. One that is new must not be there: what stands in its place is put aside.
func (s *runFiles) open(id runtrace.ID, fresh bool) (faultfs.File, error) {
	path := s.path(id)
	flags := os.O_RDWR | os.O_CREATE
	if fresh {
		flags |= os.O_EXCL
	}
	f, err := s.fs.OpenFile(path, flags, 0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := s.fs.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		return s.fs.OpenFile(path, flags, 0o600)
	case fresh && errors.Is(err, fs.ErrExist):
		aside := path + ".aside"
		if err := s.fs.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("a file of no known run is in the place of a new run's, and cannot be put aside: %w", err)
		}
		s.log.Warn("a file of no known run was put aside", "path", path, "aside", aside)
		return s.fs.OpenFile(path, flags, 0o600)
	}
	return f, err
}

// write brings what is durable into the run's file, and hands it to those who follow. On an error the lines stay for the next
// time.
func (s *runFiles) write(r *run) error {
	r.files.Lock()
	defer r.files.Unlock()
	return s.writeLocked(r)
}

func (s *runFiles) writeLocked(r *run) error {
	r.dmu.Lock()
	if len(r.todo) == 0 {
		r.todo, r.ready = r.ready, r.todo[:0]
	} else {
		r.todo = append(r.todo, r.ready...)
		r.ready = r.ready[:0]
	}
	r.dmu.Unlock()
	if len(r.todo) == 0 {
		return nil
	}
	err := s.writeLines(r)
	r.behind.Store(err != nil)
	if err != nil {
		return err
	}
	r.publish()
	clear(r.todo)
	r.todo = r.todo[:0]
	if !r.file.open() {
		s.drop(r)
	}
	return nil
}

// writeLines writes todo to the file, in one call.
func (s *runFiles) writeLines(r *run) error {
	last := r.todo[len(r.todo)-1].after
	o, err := s.get(r, func() (faultfs.File, error) { return s.open(last.head.id, r.file.bytes == 0) })
	if err != nil {
		return err
	}
	defer s.put(o)
	lines := r.todo[0].data
	if len(r.todo) > 1 {
		lines = make([]byte, 0, last.bytes-r.file.bytes)
		for _, op := range r.todo {
			lines = append(lines, op.data...)
		}
	}
	_, err = o.f.WriteAt(lines, r.file.bytes)
	return err
}

// publish makes of todo what the file holds, and hands it on.
func (r *run) publish() {
	for _, o := range r.todo {
		if len(r.feed) > 0 {
			r.feed.lines(bytes.Clone(o.data), r.file, o.after) // the op's memory is used again
		}
		r.file = o.after
	}
	if !r.file.open() {
		r.feed = nil
	}
}

// lines publishes the lines between two states of a run.
func (f feed) lines(data []byte, before, after state) {
	at := before.records()
	for line := range eachLine(data) {
		status := runtrace.InProgress
		if !after.open() {
			status = after.status
		}
		f.publish(Event{Record: line, Cursor: at, Status: status})
		at++
	}
}

// readFile reads the part of a trace that o asks for. The whole file is looked at, as far as st says.
func (s *runFiles) readFile(st state, o TraceOptions) (*Trace, error) {
	path := s.path(st.head.id)
	f, err := s.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFile, err)
	}
	defer f.Close()
	t := &Trace{ID: st.head.id, Status: st.status, From: min(max(o.From, 0), st.records())}
	c := collector{from: t.From, max: o.MaxBytes}
	crc, n, lines, err := c.read(io.NewSectionReader(f, 0, st.bytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if crc != st.crc || n != st.bytes || lines != st.records() {
		return nil, fmt.Errorf("%w: %s", errFile, path)
	}
	t.Records = c.records()
	t.Next = t.From + len(t.Records)
	t.More = t.Next < lines
	return t, nil
}

// errFile says that a run's file is not what the log says.
var errFile = errors.New("the run's file is not what was written")

// compare looks at a whole file. It returns nil where it is what st says.
func (s *runFiles) compare(st state, first seglog.Pos, check span) *damage {
	whole := span{pos: first}
	f, err := s.fs.OpenFile(s.path(st.head.id), os.O_RDONLY, 0)
	if err != nil {
		return &damage{from: whole, why: err.Error()}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return &damage{from: whole, why: err.Error()}
	}
	crc, n, err := sum(io.NewSectionReader(f, 0, check.offset), 0)
	if err != nil || n != check.offset || crc != check.crc {
		return &damage{from: whole, why: "what was written before the last sync is not there as it was"}
	}
	crc, n, err = sum(io.NewSectionReader(f, check.offset, st.bytes-check.offset), crc)
	switch {
	case err != nil:
		return &damage{from: check, why: err.Error()}
	case n != st.bytes-check.offset:
		return &damage{from: check, why: fmt.Sprintf("%d bytes were missing", st.bytes-check.offset-n)}
	case crc != st.crc:
		return &damage{from: check, why: "its last lines were not what was written"}
	case info.Size() > st.bytes:
		return &damage{from: check, why: fmt.Sprintf("%d bytes stood behind what was written", info.Size()-st.bytes)}
	}
	return nil
}

// cut makes a file end where it is to be written again.
func (s *runFiles) cut(d *damage) error {
	st := &d.run.file
	d.left = st.bytes - d.from.offset
	path := s.path(st.head.id)
	if err := s.fs.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := s.fs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(d.from.offset), f.Close())
}

func (s *runFiles) writeEntry(e *entry) error {
	f, err := s.fs.OpenFile(s.path(e.id), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(e.data, e.offset)
	return errors.Join(err, f.Close())
}

// sum reads all of r into a checksum that has begun with crc.
func sum(r io.Reader, crc uint32) (uint32, int64, error) {
	h := &crcWriter{crc}
	n, err := io.Copy(h, r)
	return h.crc, n, err
}

// endFeed ends the subscriptions of a run.
func (r *run) endFeed() {
	r.files.Lock()
	defer r.files.Unlock()
	for sub := range r.feed {
		sub.finish()
	}
	r.feed = nil
}

// follow adds a subscription to what the run gets from now on. The run's files lock is held.
func (r *run) follow(sub *Subscription) {
	if !r.file.open() {
		sub.finish()
		return
	}
	if r.feed == nil {
		r.feed = feed{}
	}
	r.feed[sub] = struct{}{}
	sub.leave = func() {
		r.files.Lock()
		defer r.files.Unlock()
		delete(r.feed, sub)
	}
}

// A collector keeps the lines from one on, while they fit.
type collector struct {
	from, max int
	buf       []byte
	ends      []int
	full      bool
}

// read reads lines to the end and returns what they are.
func (c *collector) read(r io.Reader) (crc uint32, n int64, lines int, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	var long []byte // the begin of a line that is longer than b
	for {
		part, err := b.ReadSlice('\n')
		crc = crc32.Update(crc, castagnoli, part)
		n += int64(len(part))
		switch {
		case err == nil:
			if len(long) > 0 {
				part = append(long, part...)
				long = long[:0]
			}
			c.line(lines, part[:len(part)-1])
			lines++
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
		case err == io.EOF:
			return crc, n, lines, nil
		default:
			return crc, n, lines, err
		}
		if len(long) > runtrace.MaxLine {
			return crc, n, lines, nil // no line of ours
		}
	}
}

func (c *collector) line(at int, line []byte) {
	if at < c.from || c.full {
		return
	}
	if c.max > 0 && len(c.ends) > 0 && len(c.buf)+len(line) > c.max {
		c.full = true
		return
	}
	c.buf = append(c.buf, line...)
	c.ends = append(c.ends, len(c.buf))
}

func (c *collector) records() [][]byte {
	all := make([][]byte, len(c.ends))
	begin := 0
	for i, end := range c.ends {
		all[i] = c.buf[begin:end:end]
		begin = end
	}
	return all
}

// eachLine cuts whole lines, without their newlines.
func eachLine(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			line, rest, _ := bytes.Cut(b, []byte("\n"))
			if !yield(line[:len(line):len(line)]) {
				return
			}
			b = rest
		}
	}
}
