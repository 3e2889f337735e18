package store

import (
	"bytes"
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// path is where the file of a run stands. The id is checked: nothing else ever becomes a path.
func (s *Disk) path(id runtrace.ID) string {
	return filepath.Join(s.dir, runsDir, id.File())
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
func (s *Disk) open(id runtrace.ID, fresh bool) (faultfs.File, error) {
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
		s.o.Logger.Warn("a file of no known run was put aside", "path", path, "aside", aside)
		return s.fs.OpenFile(path, flags, 0o600)
	}
	return f, err
}

// write brings what is durable into the run's file, and hands it to those who follow. On an error the lines stay for the next
// time.
func (s *Disk) write(r *run) error {
	r.files.Lock()
	defer r.files.Unlock()
	return s.writeLocked(r)
}

func (s *Disk) writeLocked(r *run) error {
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
		s.files.drop(r)
	}
	return nil
}

// writeLines writes todo to the file, in one call.
func (s *Disk) writeLines(r *run) error {
	last := r.todo[len(r.todo)-1].after
	o, err := s.files.get(r, func() (faultfs.File, error) { return s.open(last.head.id, r.file.bytes == 0) })
	if err != nil {
		return err
	}
	defer s.files.put(o)
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
