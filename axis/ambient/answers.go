package ambient

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// ErrAnswers is returned for answers that no Answers wrote.
var ErrAnswers = errors.New("ambient: these are no answers to a process")

// MaxAnswers bounds what is kept for one process, in bytes. What it asks beyond that is answered and not kept.
const MaxAnswers = 16 << 20

// Answers are what the kernel told one process that asked for what no two moments have alike: files of /proc, the room in a file
// system. The zero value keeps nothing.
type Answers struct {
	mu   sync.Mutex
	keep bool
	kept []answer
	size int
	left map[string][][]byte // recorded, by what was asked
	told map[int]int         // recorded: how much is left of what was told of processes, by PID
}

type answer struct {
	Asked string `json:"asked"`
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // in the place of Text where that is none
}

// NewAnswers keeps answers, if keep says so, and gives those again that Encode wrote; nil for none. The error is ErrAnswers.
func NewAnswers(keep bool, recorded []byte) (*Answers, error) {
	a := &Answers{keep: keep, left: make(map[string][][]byte), told: make(map[int]int)}
	if recorded == nil {
		return a, nil
	}
	var was []answer
	if json.Unmarshal(recorded, &was) != nil {
		return a, ErrAnswers
	}
	for _, w := range was {
		if w.Bytes == nil {
			w.Bytes = []byte(w.Text)
		}
		a.left[w.Asked] = append(a.left[w.Asked], w.Bytes)
		if pid, ok := ProcessOf(w.Asked); ok {
			a.told[pid]++
		}
	}
	return a, nil
}

// ProcessOf is the PID of the process that a file of /proc is of, which is asked for by its path from the root.
func ProcessOf(asked string) (pid int, ok bool) {
	path, _ := strings.CutPrefix(asked, "read /proc/")
	who, _, of := strings.Cut(path, "/")
	pid, err := strconv.Atoi(who)
	return pid, of && err == nil
}

// Listed are the PIDs of which a recorded process was told that looked through all, the first one and the program among them; none of another.
func (a *Answers) Listed(program int) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.listed(program) {
		return nil
	}
	return slices.Sorted(maps.Keys(a.told))
}

// listed reports whether the process looked through all. mu is held.
func (a *Answers) listed(program int) bool {
	_, first := a.told[1]
	_, own := a.told[program]
	return first && own
}

// Unlisted reports whether a process was told nothing of one that looked through all: that was not there.
func (a *Answers) Unlisted(pid, program int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, told := a.told[pid]
	return a.listed(program) && !told
}

// Left reports whether more was told of a process than was asked for by now.
func (a *Answers) Left(pid int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told[pid] > 0
}

// Recorded yields the recorded answers that are left.
func (a *Answers) Recorded() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for asked, left := range a.left {
			for _, b := range left {
				if !yield(asked, b) {
					return
				}
			}
		}
	}
}

// Next is the recorded answer that comes next to what is asked; nil where there is none any more.
func (a *Answers) Next(asked string) []byte { return a.next(asked, 0) }

// Held is Next, and the last one again where it is asked more often.
func (a *Answers) Held(asked string) []byte { return a.next(asked, 1) }

// next leaves so many.
func (a *Answers) next(asked string, leave int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.left[asked]
	if len(left) == 0 {
		return nil
	}
	if len(left) > leave {
		a.left[asked] = left[1:]
		if pid, ok := ProcessOf(asked); ok {
			a.told[pid]--
		}
	}
	return left[0]
}

// Gave keeps an answer.
func (a *Answers) Gave(asked string, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := len(asked) + len(b)
	if !a.keep || len(b) == 0 || a.size+size > MaxAnswers {
		return
	}
	a.size += size
	is := answer{Asked: asked, Text: string(b)}
	if !isText(b) {
		is.Text, is.Bytes = "", b
	}
	a.kept = append(a.kept, is)
}

// isText reports whether an answer is what people can read, of which secrets are taken out. A struct has zeros.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// Encode is what was kept, its texts passed through clean; nil for nothing.
func (a *Answers) Encode(clean func(string) string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.kept) == 0 {
		return nil
	}
	out := make([]answer, len(a.kept))
	for i, is := range a.kept {
		out[i] = answer{Asked: clean(is.Asked), Text: clean(is.Text), Bytes: is.Bytes}
	}
	b, _ := json.Marshal(out) // strings and bytes alone
	return b
}
