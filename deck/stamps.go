package deck

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// stamps gives files that a run writes the times that the recorded run's had: tar, ls -l and make see them. They are looked at
// when a program begins and when one ends, for who wrote a file and who then asks for its times are mostly two. What a program itself
// writes and asks for has times of its own, and a time that a program sets stays as it sets it.
type stamps struct {
	root  func(path string) (*os.Root, string) // the directory of the run that holds path, and the rest; nil for none
	began time.Time

	mu    sync.Mutex
	fresh []string         // paths of calls that change files, since the last look, and the directories that hold them
	known map[string]bool  // of fresh
	older []string         // of those before, the latest: they may be open still
	noted map[string]int64 // when a file was written, by path
}

// Bounds of what one look looks at, in paths.
const (
	maxFresh = 20_000
	maxOlder = 64
)

// touched is told of a path before it is changed. The directory that holds it may change with it.
func (s *stamps) touched(path string) {
	if !strings.HasPrefix(path, "/") { // the source of a link that has no name: a descriptor
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(path[:max(strings.LastIndexByte(path, '/'), 1)])
	s.add(path)
}

func (s *stamps) add(path string) {
	if !s.known[path] && len(s.fresh) < maxFresh {
		s.known[path] = true
		s.fresh = append(s.fresh, path)
	}
}

// look is told that a process begins or ends, which what says. Times that differ from those at the last look are kept as answers to the
// process, and where it was recorded given again.
func (s *stamps) look(in *processInputs, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := slices.Concat(slices.DeleteFunc(s.older, func(path string) bool { return s.known[path] }), s.fresh)
	clear(s.known)
	s.fresh = nil
	var files []string
	for _, path := range paths {
		if root, rest := s.root(path); root != nil && s.stamp(in, what+" "+in.of.s.roots.TapePath(path), path, root, rest) {
			files = append(files, path)
		}
	}
	s.older = files[max(0, len(files)-maxOlder):]
}

// stamp looks at one path. Times are kept as "written accessed", in ns since 1970, and a third word says that the program set them. A file that was only read since is left alone: a
// program that reads it may watch whether it changes. It reports whether that is a file which may be written to still.
func (s *stamps) stamp(in *processInputs, asked, path string, root *os.Root, rest string) bool {
	st, err := root.Lstat(rest)
	if err != nil {
		return false
	}
	at, read := st.ModTime().UnixNano(), recording.Accessed(st).UnixNano()
	var wasAt, wasRead int64
	var how string
	n, _ := fmt.Sscan(string(in.answers.Held(asked)), &wasAt, &wasRead, &how)
	set := !s.since(at)
	if n == 2 && wasAt != at && !set && files.SetTimes(root, rest, wasRead, wasAt) == nil {
		at, read = wasAt, wasRead
	}
	if s.noted[path] != at {
		s.noted[path] = at
		note := fmt.Append(nil, at, " ", read)
		if set && !st.IsDir() {
			note = append(note, " set"...)
		}
		in.answers.Gave(asked, note)
	}
	return st.Mode().IsRegular()
}

// since reports whether a file may have been written at a time, in ns since 1970, by this run: other times were set, or found. The kernel's lie
// up to a tick back.
func (s *stamps) since(at int64) bool {
	return at >= s.began.Add(-10*time.Millisecond).UnixNano() && at <= time.Now().UnixNano()
}
