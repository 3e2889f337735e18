package deck

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// Bounds of what is known of the files that a replay reads.
const (
	maxReads    = 20_000
	maxReadFile = 1 << 20
	maxReadText = 16 << 20 // in all
)

// reads are the files that the programs of a replay opened for reading. What of them was written since the recording holds what is new
// in the program: a value that differs and stands there is no chance.
type reads struct {
	since time.Time // when the recording began

	mu     sync.Mutex
	paths  map[string]bool
	looked bool
	texts  [][]byte
}

// Reads implements jail.Inputs.
func (p *processes) Reads(path string) {
	if p.clock == nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") {
		return
	}
	r := &p.reads
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.paths) < maxReads {
		if r.paths == nil {
			r.paths = make(map[string]bool)
		}
		r.paths[path] = true
	}
}

// hold reports whether a file that is newer than the recording holds a value.
func (r *reads) hold(value string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.looked {
		r.looked = true
		r.look()
	}
	for _, text := range r.texts {
		if standsIn(text, value) {
			return true
		}
	}
	return false
}

// standsIn reports whether a text holds a value by itself, and not as a piece of a longer word or number.
func standsIn(text []byte, value string) bool {
	for value != "" {
		i := bytes.Index(text, []byte(value))
		if i < 0 {
			return false
		}
		end := i + len(value)
		if (i == 0 || !ofWord(text[i-1])) && (end == len(text) || !ofWord(text[end])) {
			return true
		}
		text = text[i+1:]
	}
	return false
}

func ofWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || strings.IndexByte("._+/", c) >= 0
}

// look reads those files. What cannot be read holds nothing.
func (r *reads) look() {
	left := int64(maxReadText)
	for path := range r.paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > min(left, maxReadFile) || !info.ModTime().After(r.since) {
			continue
		}
		f, err := regular.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxReadFile))
		f.Close()
		if err == nil {
			left -= int64(len(text))
			r.texts = append(r.texts, text)
		}
	}
}
