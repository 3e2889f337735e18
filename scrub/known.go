package scrub

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// A known is a secret whose exact value is known.
type known struct {
	rule, value, placeholder string
	dummy                    bool // made up for a replay that lacks the value

	adopted atomic.Pointer[string] // a recording's placeholder, which is written in place of it; nil for none
}

func (k *known) written() string {
	if p := k.adopted.Load(); p != nil {
		return *p
	}
	return k.placeholder
}

// A pattern is one form in which a known value may stand in a text: the value itself, hex, or the part of its base64
// that does not depend on what stands beside it. Over each of these forms lie escapes, which walk undoes.
type pattern struct {
	of   *known
	text []byte
	// head and tail are base64 digits that hold bits of the value and bits of a neighbour; they are hidden with it. A zero
	// mask means that there is none.
	head, tail placeholders.Edge
	base64     bool
	percent    bool // text has a %, which may stand for itself
	bridges    bool // it may stand in the texts of several events
	kind       byte // as a form names it; 0 for the value itself
	shift      int  // of base64
}

// patterns returns the forms of a value of MinExact bytes or more.
func patterns(k *known) []*pattern {
	ps := []*pattern{
		{of: k, text: []byte(k.value), percent: strings.Contains(k.value, "%"), bridges: true},
		{of: k, text: []byte(hex.EncodeToString([]byte(k.value))), kind: placeholders.KindHex},
		{of: k, text: []byte(strings.ToUpper(hex.EncodeToString([]byte(k.value)))), kind: placeholders.KindUpperHex},
	}
	for shift := range 3 {
		standard := base64Pattern(k, base64.RawStdEncoding, shift)
		ps = append(ps, standard)
		if forURLs := base64Pattern(k, base64.RawURLEncoding, shift); !bytes.Equal(standard.text, forURLs.text) {
			forURLs.kind = placeholders.KindBase64URL
			ps = append(ps, forURLs)
		}
	}
	for _, p := range ps {
		if p.head.Mask != 0 && (p.head.Fits('+') || p.head.Fits('/')) {
			headless := *p // is found where the head is escaped
			headless.head = placeholders.Edge{}
			ps = append(ps, &headless)
		}
	}
	return ps
}

// next is what follows the first byte.
func (p *pattern) next() []byte {
	if p.head.Mask == 0 {
		return p.text[1:]
	}
	return p.text
}

// mayFollow tells whether a byte can stand behind the first one: the next of the form, or what begins an escape or ends a line or a string.
func (p *pattern) mayFollow(c byte) bool {
	return c == p.next()[0] || strings.IndexByte("\\%+\n\r\"", c) >= 0
}

// base64Pattern returns the form of a value that begins shift bytes after the beginning of a group of three.
func base64Pattern(k *known, enc *base64.Encoding, shift int) *pattern {
	digits, head, tail := placeholders.Base64(k.value, enc, shift)
	return &pattern{of: k, text: []byte(digits), head: head, tail: tail, base64: true, kind: placeholders.KindBase64, shift: shift}
}

func (p *pattern) firsts() []byte {
	if p.head.Mask == 0 {
		return p.text[:1]
	}
	var out []byte
	for c := byte('+'); c <= 'z'; c++ {
		if p.head.Fits(c) {
			out = append(out, c)
		}
	}
	return out
}

// An index finds where a secret may begin. It is never changed: to add a value is to make a new one.
type index struct {
	chars.Filter
	shapes [][]starting    // by the row of the filter
	known  [256][]*pattern // by the first byte, escapes undone
	any    bool            // a value is known
	seen   *seen
}

// starting are the rules whose evidence may begin with three bytes, of which the row of the filter knows the first two.
type starting struct {
	third byte
	any   bool // third may be any byte
	rules []*rule
}

func newIndex(rules []*rule) *index {
	x := &index{Filter: chars.NewFilter(), seen: newSeen()}
	for _, r := range rules {
		for _, start := range r.starts {
			x.AllowText(start)
			x.addShape(start, r)
		}
	}
	return x
}

// addShape adds a rule whose evidence may begin with start, which the filter lets through.
func (x *index) addShape(start string, r *rule) {
	for len(x.shapes) < x.Rows() {
		x.shapes = append(x.shapes, nil)
	}
	s := starting{any: len(start) == 2}
	if !s.any {
		s.third = start[2]
	}
	at, _ := x.Row(start[0], start[1])
	row := &x.shapes[at]
	for k := range *row {
		if have := &(*row)[k]; have.third == s.third && have.any == s.any {
			have.rules = append(have.rules, r)
			return
		}
	}
	s.rules = []*rule{r}
	*row = append(*row, s)
}

// shapesAt returns what may begin with the pair of bytes a and b.
func (x *index) shapesAt(a, b byte) []starting {
	if row, ok := x.Row(a, b); ok && row < len(x.shapes) {
		return x.shapes[row]
	}
	return nil
}

// with returns an index that knows fresh too. It copies x once.
func (x *index) with(fresh []*known) *index {
	next := *x
	next.seen = newSeen()
	next.Filter = x.Clone()
	next.any = true
	for c := range next.known {
		next.known[c] = slices.Clip(next.known[c]) // what is appended is next's own
	}
	for _, k := range fresh {
		for _, p := range patterns(k) {
			for _, c := range p.firsts() {
				next.known[c] = append(next.known[c], p)
				next.allowForms(c, p)
			}
		}
	}
	next.AllowAny('\\', 'u')
	next.AllowAny('\\', '\\')
	next.AllowAny('\\', '%')                               // the letter of an escape that is percent-encoded itself
	for _, escape := range []string{"%5C", "%5c", "%25"} { // a backslash, or a percent sign, that is escaped itself
		next.AllowText(escape)
	}
	return &next
}

// allowForms lets through each three bytes that can begin p when its first byte is c.
func (x *index) allowForms(c byte, p *pattern) {
	second, forms := p.next()[0], beginnings()
	for _, s := range forms[second] {
		if len(s) == 2 {
			x.Allow(c, s[0], s[1])
			continue
		}
		for _, t := range forms[p.next()[1]] {
			x.Allow(c, s[0], t[0])
		}
	}
	if p.bridges {
		for _, after := range []byte("},] ") {
			x.Allow(c, '"', after)
		}
		x.Allow(c, second, '"')
	}
	if p.base64 {
		for _, end := range []byte("\n\r") {
			x.Allow(c, end, second)
			x.Allow(c, end, '\\')
			x.Allow(c, end, '%')
		}
		x.Allow(c, '\r', '\n')
		x.Allow(c, second, '\n')
		x.Allow(c, second, '\r')
		x.Allow(c, '\\', 'n')
		x.Allow(c, '\\', 'r')
	}
	for _, high := range hexForms(c >> 4) {
		for _, low := range hexForms(c & 15) {
			x.Allow('%', high, low)
		}
	}
	if i := strings.IndexByte(shortMeanings, c); i >= 0 {
		x.AllowAny('\\', shortEscapes[i])
	}
}

// beginnings are, by byte, the first two bytes, or the one, of what may stand for it: itself, an escape, an escape that is escaped itself.
var beginnings = sync.OnceValue(func() *[256][]string {
	var of [256][]string
	for c := range of {
		hex := hexForms(byte(c) >> 4)
		of[c] = []string{string([]byte{byte(c)}), "%" + string(hex[:1]), "%" + string(hex[1:]), "%5", "%2", `\u`, `\\`, `\%`}
	}
	for i, letter := range []byte(shortEscapes) {
		of[shortMeanings[i]] = append(of[shortMeanings[i]], string([]byte{'\\', letter}))
	}
	of[' '] = append(of[' '], "+")
	return &of
})

func hexForms(v byte) []byte { return []byte{"0123456789abcdef"[v], "0123456789ABCDEF"[v]} }

// shortEscapes are the letters of escapes that are one, and shortMeanings what each stands for.
const shortEscapes, shortMeanings = `nrtbf/"\`, "\n\r\t\b\f/\"\\"

// unescape returns what the letter of a short escape stands for, and 0 for another byte.
func unescape(c byte) byte {
	if i := strings.IndexByte(shortEscapes, c); i >= 0 {
		return shortMeanings[i]
	}
	return 0
}

// Every request of a conversation holds the whole conversation so far. So Bytes remembers pieces of text in which nothing
// was found, by a hash of them, and passes them by when they come again.
const (
	pieceLen   = 4 << 10  // bytes
	maxPieces  = 16 << 10 // less than 1 MiB of memory, for 64 MiB of text
	leastSaved = pieceLen / 2
)

// A seen remembers the pieces of text in which one index found nothing. All is forgotten where there
// are more than maxPieces. The hash has a seed that is made for the process: nobody can make a text that is taken for another.
type seen struct {
	seed maphash.Seed

	mu  sync.Mutex // guards now
	now map[uint64]uint16
}

func newSeen() *seen {
	return &seen{seed: maphash.MakeSeed(), now: make(map[uint64]uint16)}
}

// key is of everything that the scan of a piece depends on: its bytes, those behind it that a matcher looks back to, where
// the ones end and the others begin, and whether it is of a stream of events. What else it depends on (the rules, the known
// values) is the index's own, and each index has a seen of its own.
func (s *seen) key(behind, piece []byte, streams bool) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	flags := byte(len(behind)) << 1 // at most lookBehind
	if streams {
		flags |= 1
	}
	_ = h.WriteByte(flags) // never fails (hash/maphash), nor do the others
	_, _ = h.Write(behind)
	_, _ = h.Write(piece)
	return h.Sum64()
}

// get returns how many bytes of a piece were decided, 0 where it is not known.
func (s *seen) get(key uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.now[key])
}

func (s *seen) add(key uint64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.now) >= maxPieces {
		clear(s.now)
	}
	s.now[key] = uint16(n)
}

// A Key makes a project's placeholders. Who has it can test guesses of a secret, so it is as private as a password.
type Key [32]byte

// ErrKeyFile is wrapped by the errors of LoadKey for a file that is there and cannot be taken: others may read it, or it
// is not 64 hex digits.
var ErrKeyFile = errors.New("scrub: key file refused")

// LoadKey reads the key at path, and makes one where there is none: the directory with mode 0700, the file with 0600.
// The file appears whole or not at all, and of two processes that make it at once both get the same key. The file holds
// 64 hex digits and a newline. One that the group or others may touch is refused (not on Windows, which has no such
// modes): the errors of refused files wrap ErrKeyFile.
func LoadKey(path string) (Key, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := createKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return Key{}, fmt.Errorf("scrub: make key: %w", err)
	}
	return ReadKey(path)
}

// ReadKey reads the key at path and makes none: the error of one that is not there wraps fs.ErrNotExist.
func ReadKey(path string) (key Key, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return key, fmt.Errorf("scrub: read key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return key, fmt.Errorf("%w: %s has mode %04o: others may touch it; run chmod 600 on it", ErrKeyFile, path,
			info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return key, fmt.Errorf("scrub: read key: %w", err)
	}
	s := strings.TrimSpace(string(b))
	if n, err := hex.Decode(key[:], []byte(s[:min(len(s), 2*len(key))])); err != nil || n < len(key) || len(s) > 2*n {
		return Key{}, fmt.Errorf("%w: %s does not hold 64 hex digits: put it back from a copy, or move it away and a new one is made "+
			"(recordings of the old one then replay without the files that held secrets)", ErrKeyFile, path)
	}
	return key, nil
}

// createKey writes the key beside its place and links it there, which fails with fs.ErrExist where another was faster.
func createKey(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	var key Key
	_, _ = rand.Read(key[:]) // never fails
	_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// keyIDOf is what a key's id is the keyed digest of: no file's bytes and no secret.
const keyIDOf = "\x00tapedeck: the id of a project's key"

// ID names the key, and says nothing else of it: hexLen hex digits.
func (k *Key) ID() string { return k.digits([]byte(keyIDOf)) }

func (k *Key) mac(b []byte) string {
	h := hmac.New(sha256.New, k[:])
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}

// digits are those of the placeholder of value.
func (k *Key) digits(value []byte) string { return k.mac(value)[:placeholders.HexLen] }

// placeholder returns what stands for value in everything that is written.
func (k *Key) placeholder(rule string, value []byte) string {
	return placeholders.Prefix + rule + "_" + k.digits(value)
}
