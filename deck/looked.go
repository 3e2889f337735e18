package deck

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// looked gives again what the kernel says of files: device, inode, when they were made and changed, which nobody can set, how long a directory
// is. Each state of a file is on the tape once, among the answers to the process that was told of it first: which one that is says nothing.
type looked struct {
	mu      sync.Mutex
	noted   map[string]seenFile // what was said last, by path
	given   map[string]givenFile
	devices map[uint64]uint64 // recorded, by those of now: what nobody asked for lies on one of them too
}

// A seenFile is a state of a file: what was said of it, and how many calls had changed it.
type seenFile struct {
	Calls int64
	jail.FileStat
}

// A givenFile is what was said last of a file on a replay: the place of the recorded state, and when the file had been read.
type givenFile struct {
	at   int
	read int64
}

// maxLooked bounds the files that are known.
const maxLooked = 100_000

// Looked implements jail.Source.
func (i *processInputs) Looked(path string, now jail.FileStat) jail.FileStat {
	if i.of.Changing() && i.of.Recent(now.Written) {
		now.Written = i.Wrote(path, now.Length(), now.Written, now.Changed)
	}
	l := &i.of.looked
	key := i.of.s.roots.TapePath(path)
	is := seenFile{i.of.stamps.changes(path), now}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i.of.again != nil {
		root, _ := i.of.stamps.root(path)
		is.FileStat = l.again(key, i.of.again.told().files[key], is, root != nil)
	}
	if last, known := l.noted[key]; last != is && (known || len(l.noted) < maxLooked) {
		if l.noted == nil {
			l.noted = make(map[string]seenFile)
		}
		l.noted[key] = is
		b, _ := binary.Append(nil, binary.LittleEndian, is) // of a fixed size
		i.answers.Gave("file "+key, b)
	}
	return is.FileStat
}

// again is the recorded state that a file is in; that of now where there is none with its owner, mode and size, for then it is another file. Where
// written says that its times are looked after, a file was written when it says now. mu is held.
func (l *looked) again(key string, recorded []seenFile, now seenFile, written bool) jail.FileStat {
	best, most := -1, 0
	last, known := l.given[key]
	for n, was := range recorded {
		if !was.Lasts(&now.FileStat) {
			continue
		}
		alike := 1
		if was.Written == now.Written {
			alike += 4
		}
		if was.Calls == now.Calls {
			alike += 2
		}
		if known && (n == last.at || n == last.at+1 && now.Read != last.read) { // it was read meanwhile
			alike++
		}
		if alike > most || alike == most && known && n == last.at+1 && now.Read != last.read {
			best, most = n, alike
		}
	}
	if best < 0 {
		now.Device = cmp.Or(l.devices[now.Device], now.Device)
		return now.FileStat
	}
	if l.given == nil {
		l.given, l.devices = make(map[string]givenFile), make(map[uint64]uint64)
	}
	is := recorded[best].FileStat
	l.given[key], l.devices[now.Device] = givenFile{best, now.Read}, is.Device
	if written && now.Regular() {
		is.Written = now.Written
	}
	return is
}

// seenFiles are the states of files that a recording holds, by path, in the order in which they were.
type seenFiles map[string][]seenFile

func (s seenFiles) add(path string, b []byte) {
	var f seenFile
	if n, err := binary.Decode(b, binary.LittleEndian, &f); err == nil && n == len(b) {
		s[path] = append(s[path], f)
	}
}

func (s seenFiles) sort() {
	for _, list := range s {
		slices.SortStableFunc(list, func(a, b seenFile) int { return cmp.Or(cmp.Compare(a.Changed, b.Changed), cmp.Compare(a.Read, b.Read)) })
	}
}
