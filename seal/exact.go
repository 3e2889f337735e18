package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"golang.org/x/mod/sumdb/tlog"
)

// An exact reads a text of which only one form is taken: it demands each byte, so that what it allocates is never more than a
// small multiple of what stands there, however the text is made. The first failure sticks; why says what it is.
type exact struct {
	b      []byte
	at     int
	failed string // what was expected
	code   Code   // of the failure, where it is not for why to find out
}

func (e *exact) fail(expected string) {
	if e.failed == "" {
		e.failed = expected
	}
}

// lit demands s.
func (e *exact) lit(s string) {
	if e.failed != "" || !e.has(s) {
		e.fail(strconv.Quote(s))
		return
	}
	e.at += len(s)
}

func (e *exact) has(s string) bool {
	return e.failed == "" && len(e.b)-e.at >= len(s) && string(e.b[e.at:e.at+len(s)]) == s
}

// list reads "[" elements "]", each by one call of element.
func (e *exact) list(element func()) {
	e.lit("[")
	for first := true; e.failed == "" && !e.has("]"); first = false {
		if !first {
			e.lit(",")
		}
		element()
	}
	e.lit("]")
}

// str reads a string.
func (e *exact) str() string {
	const expected = "a string"
	if !e.has(`"`) {
		e.fail(expected)
		return ""
	}
	end := e.at + 1
	for end < len(e.b) && e.b[end] != '"' {
		if e.b[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(e.b) {
		e.fail(expected)
		return ""
	}
	raw := e.b[e.at : end+1]
	s, ok := unescape(raw)
	if !ok {
		e.fail("a string in the form of RFC 8785")
		return ""
	}
	e.at = end + 1
	return s
}

// unescape returns the text of a canonical string, quotation marks included.
func unescape(raw []byte) (string, bool) {
	inner := raw[1 : len(raw)-1]
	if !utf8.Valid(inner) {
		return "", false
	}
	s := string(inner)
	if bytes.IndexByte(inner, '\\') >= 0 {
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
	}
	return s, string(canonjson.AppendString(nil, s)) == string(raw)
}

// num reads an integer from 0 to 2^53-1.
func (e *exact) num() int64 {
	end := e.at
	for end < len(e.b) && end-e.at < 17 && '0' <= e.b[end] && e.b[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(e.b[min(e.at, end):end]), 10, 64)
	if e.failed != "" || err != nil || n >= 1<<53 || strconv.FormatInt(n, 10) != string(e.b[e.at:end]) {
		e.fail("an integer from 0 to 9007199254740991")
		return 0
	}
	e.at = end
	return n
}

// hash reads 64 lowercase hex digits in quotation marks.
func (e *exact) hash() (h tlog.Hash) {
	const n = 2 + 2*tlog.HashSize
	if e.failed == "" && len(e.b)-e.at >= n && e.b[e.at] == '"' && e.b[e.at+n-1] == '"' {
		text := e.b[e.at+1 : e.at+n-1]
		if _, err := hex.Decode(h[:], text); err == nil && bytes.Equal(text, hex.AppendEncode(nil, h[:])) {
			e.at += n
			return h
		}
	}
	e.fail("64 lowercase hex digits")
	return tlog.Hash{}
}

func (e *exact) digest() cas.Digest { return cas.Digest(e.hash()) }

// maxPath is how many hashes a path may have: a tree has fewer than 2^63 leaves.
const maxPath = 63

func (e *exact) hashes() []tlog.Hash {
	all := []tlog.Hash{}
	e.list(func() {
		if len(all) == maxPath {
			e.fail("at most 63 hashes")
			return
		}
		all = append(all, e.hash())
	})
	return all
}

// format reads the number of the format, which must be 1.
func (e *exact) format() {
	n := e.num()
	if e.failed == "" && n != Version {
		e.code = CodeVersion
		e.fail(fmt.Sprintf("format %d; this version reads no other, and %d may be of a later one", Version, n))
	}
}

// key reads a public key that may seal.
func (e *exact) key() PublicKey {
	text := e.str()
	if e.failed != "" {
		return PublicKey{}
	}
	k, err := ParsePublicKey(text)
	if err != nil || k.Witness() {
		e.code = CodeMalformed
		e.fail("the text of a sealing key")
	}
	return k
}

// base64 reads bytes in base64 with padding.
func (e *exact) base64() []byte {
	text := e.str()
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if e.failed == "" && (err != nil || base64.StdEncoding.EncodeToString(b) != text) {
		e.code = CodeMalformed
		e.fail("base64 with padding")
	}
	return b
}

// end demands the end, and returns the problem where anything was not as demanded.
func (e *exact) end(path string) *Problem {
	if e.failed == "" && e.at != len(e.b) {
		e.fail("the end")
	}
	if e.failed == "" {
		return nil
	}
	if e.code != "" {
		return problem(e.code, path, "byte %d: expected %s", e.at, e.failed)
	}
	return e.why(path)
}

// why tells a text that is no JSON, one with a key twice, and one in another form from one that says something else.
func (e *exact) why(path string) *Problem {
	if err := jsonscan.Valid(e.b); err != nil {
		return problem(CodeNotJSON, path, "it is no JSON: %v", err)
	}
	if len(e.b) <= maxCompared {
		if key, at, found := jsonscan.Duplicate(e.b); found {
			return problem(CodeDuplicateKey, path, "byte %d: the key %.80q stands twice in one object", at, key)
		}
		if c, err := canonjson.Canonical(e.b); err == nil && !bytes.Equal(c, e.b) {
			return problem(CodeNotCanonical, path, "byte %d: it is not in the form of RFC 8785, which alone is taken", firstDifference(c, e.b))
		}
	}
	return problem(CodeMalformed, path, "byte %d: expected %s", e.at, e.failed)
}

// maxCompared is how large a text may be, in bytes, for its keys to be compared and its canonical form to be made just to say
// what is wrong with it.
const maxCompared = 4 << 20

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
