package scrub

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

const (
	// maxWanted is how many secrets are looked for, for each shape of them costs a look at every text.
	maxWanted = 64
	// longestEscape is how many bytes stand for one at most: \u0041 with its backslash percent-encoded.
	longestEscape = 8
)

// A seeker finds values by their keyed digests. It is never changed.
type seeker struct {
	key               Key
	all               []wanted
	shortest, longest int  // bytes of one
	blanks            bool // one may have a blank in it
}

// newSeeker returns one that finds all; nil where that is nothing.
func newSeeker(key Key, all []wanted) *seeker {
	if len(all) == 0 {
		return nil
	}
	k := &seeker{key: key, all: all, shortest: all[0].n}
	for i := range all {
		k.shortest, k.longest, k.blanks = min(k.shortest, all[i].n), max(k.longest, all[i].n), k.blanks || all[i].allowed.Has(' ')
	}
	return k
}

// A wanted is a secret by its placeholder and what is known of its characters.
type wanted struct {
	placeholder, digits string

	n       int             // bytes
	prefix  string          // with which it begins
	needed  []chars.ByteSet // of each of which it has one
	allowed chars.ByteSet   // its characters
}

// wantedOf reads the shape of a secret. ok is false where it says too little, or where a rule finds the secret wherever it stands.
func wantedOf(secret Secret) (w wanted, ok bool) {
	if !placeholders.Is(secret.Placeholder) || len(secret.Shape) > longestShape {
		return w, false
	}
	prefix, rest, _ := strings.Cut(secret.Shape, ":")
	length, classes, _ := strings.Cut(rest, ":")
	w = wanted{placeholder: secret.Placeholder, digits: Digits(secret.Placeholder), prefix: prefix}
	switch w.n, _ = strconv.Atoi(length); prefix {
	case "pem", "jwt":
		return w, false
	case "uuid":
		w.prefix, w.n = "", chars.UUIDLen
		w.need("-")
		w.allow(numerals + hexLetters + strings.ToUpper(hexLetters))
	default:
		w.allow(prefix)
		for _, class := range []byte(classes) {
			if class == nonASCII {
				w.need(beyondASCII)
				continue
			}
			for _, one := range charsOf(class) {
				w.need(one)
			}
		}
	}
	return w, w.n >= names.MinKnown && w.n <= maxLeak
}

// beyondASCII are the bytes of what is not ASCII.
var beyondASCII = func() string {
	var b []byte
	for c := utf8.RuneSelf; c < 0x100; c++ {
		b = append(b, byte(c))
	}
	return string(b)
}()

func (w *wanted) allow(bytes string) {
	for i := range len(bytes) {
		w.allowed.Add(bytes[i])
	}
}

// need says that one of some bytes stands in it.
func (w *wanted) need(bytes string) {
	w.allow(bytes)
	var set chars.ByteSet
	for i := range len(bytes) {
		set.Add(bytes[i])
	}
	w.needed = append(w.needed, set)
}

// maxLayers is how often escapes are undone, one within another.
const maxLayers = 3

// in returns what stands in b, in any disguise.
func (k *seeker) in(b []byte) []Given {
	l := seeking{seeker: k, mac: hmac.New(sha256.New, k.key[:])}
	l.look(b, maxLayers)
	return l.found
}

// A seeking is one look at a text.
type seeking struct {
	*seeker
	mac   hash.Hash
	found []Given
}

// look looks at b, and at what it is without escapes, which may lie in so many layers one over another.
func (l *seeking) look(b []byte, layers int) {
	if len(b) < l.shortest {
		return
	}
	l.plain(b)
	l.base64(b)
	l.hex(b)
	if layers == 0 {
		return
	}
	for i := range escapes {
		if e := &escapes[i]; !e.blank || l.blanks {
			l.without(e, b, func(undone []byte) { l.look(undone, layers-1) })
		}
	}
}

// plain looks at b as it stands.
func (l *seeking) plain(b []byte) {
	for i := range l.all {
		w, run := &l.all[i], 0
		for at, c := range b {
			if !w.allowed.Has(c) {
				run = 0
				continue
			}
			if run++; run < w.n {
				continue
			}
			start, end := at+1-w.n, at+1
			if (wordEdge(b, start) || wordEdge(b, end)) && w.fits(b[start:end]) {
				l.try(w, b[start:end])
			}
		}
	}
}

// try takes a value that has the keyed digest of what is wanted.
func (l *seeking) try(w *wanted, value []byte) {
	l.mac.Reset()
	_, _ = l.mac.Write(value) // never fails (hash)
	if hex.EncodeToString(l.mac.Sum(nil))[:placeholders.HexLen] == w.digits {
		l.found = append(l.found, Given{w.placeholder, string(value)})
	}
}

// fits reports whether a value of the length and the allowed characters may be w.
func (w *wanted) fits(value []byte) bool {
	for i := range w.needed {
		if !slices.ContainsFunc(value, w.needed[i].Has) {
			return false
		}
	}
	return strings.HasPrefix(string(value), w.prefix)
}

// wordEdge reports whether a word may begin or end at i.
func wordEdge(b []byte, i int) bool {
	return i == 0 || i == len(b) || !chars.IsAlnum(b[i-1]) || !chars.IsAlnum(b[i])
}

// An alphabet says which bytes make a run: 0 for one that ends it, skipped for one that only stands in it, else the digit.
type alphabet [256]byte

const skipped = 1

var hexAlphabet, base64Alphabet = func() (h, b alphabet) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for c := range h {
		if chars.IsHex(byte(c)) {
			h[c] = byte(c)
		}
		if v := placeholders.DigitValue(byte(c)); v < 64 {
			b[c] = digits[v]
		}
	}
	b['\n'], b['\r'] = skipped, skipped
	return h, b
}()

// runs calls do with the digits of each run of b that has so many.
func (a *alphabet) runs(b []byte, least int, do func(digits []byte)) {
	for start := 0; start < len(b); {
		end, n := start, 0
		for end < len(b) && a[b[end]] != 0 {
			if a[b[end]] != skipped {
				n++
			}
			end++
		}
		if n >= least {
			digits := make([]byte, 0, n)
			for _, c := range b[start:end] {
				if a[c] != skipped {
					digits = append(digits, a[c])
				}
			}
			do(digits)
		}
		start = end + 1
	}
}

// base64 looks into what may be base64, in lines or not, wherever its groups begin.
func (l *seeking) base64(b []byte) {
	base64Alphabet.runs(b, base64.RawStdEncoding.EncodedLen(l.shortest), func(digits []byte) {
		plain := make([]byte, base64.RawStdEncoding.DecodedLen(len(digits)))
		for shift := range 4 {
			group := digits[shift:]
			if len(group)%4 == 1 {
				group = group[:len(group)-1]
			}
			if n, err := base64.RawStdEncoding.Decode(plain, group); err == nil {
				l.plain(plain[:n])
			}
		}
	})
}

// hex looks into what may be hex, wherever its pairs begin.
func (l *seeking) hex(b []byte) {
	hexAlphabet.runs(b, hex.EncodedLen(l.shortest), func(digits []byte) {
		plain := make([]byte, hex.DecodedLen(len(digits)))
		for shift := range 2 {
			group := digits[shift:]
			if n, err := hex.Decode(plain, group[:len(group)/2*2]); err == nil {
				l.plain(plain[:n])
			}
		}
	})
}

// An escape is a way in which a text may hold bytes that it cannot have as they are.
type escape struct {
	first byte
	blank bool // it stands for a blank and nothing else
	// undo appends what stands for the beginning of rest, n bytes; none where n is 0.
	undo func(out, rest []byte) (_ []byte, n int)
}

var escapes = []escape{
	{first: '\\', undo: func(out, rest []byte) ([]byte, int) {
		switch {
		case len(rest) > 5 && rest[1] == 'u' && chars.IsHex(rest[2]) && chars.IsHex(rest[3]) && chars.IsHex(rest[4]) && chars.IsHex(rest[5]):
			return utf8.AppendRune(out, rune(chars.Unhex(rest[2]))<<12|rune(chars.Unhex(rest[3]))<<8|rune(chars.Unhex(rest[4]))<<4|rune(chars.Unhex(rest[5]))), 6
		case len(rest) > 1 && unescape(rest[1]) != 0:
			return append(out, unescape(rest[1])), 2
		}
		return out, 0
	}},
	{first: '%', undo: func(out, rest []byte) ([]byte, int) {
		if len(rest) > 2 && chars.IsHex(rest[1]) && chars.IsHex(rest[2]) {
			return append(out, chars.Unhex(rest[1])<<4|chars.Unhex(rest[2])), 3
		}
		return out, 0
	}},
	{first: '+', blank: true, undo: func(out, _ []byte) ([]byte, int) { return append(out, ' '), 1 }},
}

// without calls do with what b is without one layer of an escape, around each place where one stands: what is wanted, in base64
// or hex too, and has none in it or beside it stands in b itself.
func (l *seeking) without(e *escape, b []byte, do func(undone []byte)) {
	reach := 2*l.longest + 1
	var out []byte // reused: do keeps nothing
	open := false  // an escape is in out
	taken := 0     // of b, into out or not at all
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], e.first)
		if i < 0 {
			break
		}
		i += at
		if open && i-taken > 2*reach {
			do(append(out, b[taken:taken+reach]...))
			out, open, taken = out[:0], false, taken+reach
		}
		from, kept := taken, len(out)
		if !open {
			from = max(taken, i-reach)
		}
		undone, n := e.undo(append(out, b[from:i]...), b[i:])
		if at = i + max(n, 1); n == 0 {
			out = undone[:kept]
			continue
		}
		out, open, taken = undone, true, at
	}
	if open {
		do(append(out, b[taken:min(len(b), taken+reach)]...))
	}
}
