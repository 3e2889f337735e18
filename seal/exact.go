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

// An exact goes through a text of which there is one form only (RFC 8785, so each walk states its keys in their order), and either
// reads or writes it. Reading it demands each byte, so that what it allocates is never more than a small multiple of what stands
// there, however the text is made. The first failure sticks; why says what it is.
type exact struct {
	b       []byte
	writing bool
	at      int
	failed  string // what was expected
	code    Code   // of the failure, where it is not for why to find out
}

// written is what a walk writes.
func written(walk func(*exact)) []byte {
	e := &exact{writing: true}
	walk(e)
	return e.b
}

func (e *exact) fail(expected string) {
	if e.failed == "" {
		e.failed = expected
	}
}

// lit is s.
func (e *exact) lit(s string) {
	switch {
	case e.writing:
		e.b = append(e.b, s...)
	case e.has(s):
		e.at += len(s)
	default:
		e.fail(strconv.Quote(s))
	}
}

// has reports whether s comes next in what is read.
func (e *exact) has(s string) bool {
	return e.failed == "" && len(e.b)-e.at >= len(s) && string(e.b[e.at:e.at+len(s)]) == s
}

// list is "[" elements "]", each by one call of element.
func list[T any](e *exact, all *[]T, element func(*T)) {
	e.lit("[")
	for i := 0; e.writing && i < len(*all) || !e.writing && e.failed == "" && !e.has("]"); i++ {
		if i > 0 {
			e.lit(",")
		}
		if !e.writing {
			*all = append(*all, *new(T))
		}
		element(&(*all)[i])
	}
	e.lit("]")
}

// str is a string.
func (e *exact) str(p *string) {
	if e.writing {
		e.b = canonjson.AppendString(e.b, *p)
		return
	}
	const expected = "a string"
	if !e.has(`"`) {
		e.fail(expected)
		return
	}
	end := e.at + jsonscan.TextLen(e.b[e.at:])
	if end == e.at+1 || e.b[end-1] != '"' {
		e.fail(expected)
		return
	}
	s, ok := unescape(e.b[e.at:end])
	if !ok {
		e.fail("a string in the form of RFC 8785")
		return
	}
	*p, e.at = s, end
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

// num is an integer from 0 to 2^53-1.
func (e *exact) num(p *int64) {
	if e.writing {
		e.b = appendInt(e.b, *p)
		return
	}
	end := e.at
	for end < len(e.b) && end-e.at < 17 && '0' <= e.b[end] && e.b[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(e.b[min(e.at, end):end]), 10, 64)
	if e.failed != "" || err != nil || n >= 1<<53 || strconv.FormatInt(n, 10) != string(e.b[e.at:end]) {
		e.fail("an integer from 0 to 9007199254740991")
		return
	}
	*p, e.at = n, end
}

// hash is 64 lowercase hex digits in quotation marks.
func (e *exact) hash(p *tlog.Hash) {
	if e.writing {
		e.b = append(hex.AppendEncode(append(e.b, '"'), p[:]), '"')
		return
	}
	const n = 2 + 2*tlog.HashSize
	if e.failed == "" && len(e.b)-e.at >= n && e.b[e.at] == '"' && e.b[e.at+n-1] == '"' {
		var h tlog.Hash
		text := e.b[e.at+1 : e.at+n-1]
		if _, err := hex.Decode(h[:], text); err == nil && bytes.Equal(text, hex.AppendEncode(nil, h[:])) {
			*p = h
			e.at += n
			return
		}
	}
	e.fail("64 lowercase hex digits")
}

func (e *exact) digest(p *cas.Digest) { e.hash((*tlog.Hash)(p)) }

// maxPath is how many hashes a path may have: a tree has fewer than 2^63 leaves.
const maxPath = 63

func (e *exact) hashes(p *tlog.RecordProof) {
	if !e.writing {
		*p = tlog.RecordProof{}
	}
	list(e, (*[]tlog.Hash)(p), func(h *tlog.Hash) {
		if len(*p) > maxPath && !e.writing {
			e.fail("at most 63 hashes")
		}
		e.hash(h)
	})
}

// format is the number of the format, which must be 1.
func (e *exact) format() {
	n := int64(Version)
	if e.num(&n); e.failed == "" && n != Version {
		e.code = CodeVersion
		e.fail(fmt.Sprintf("format %d; this version reads no other, and %d may be of a later one", Version, n))
	}
}

// key is a public key that may seal.
func (e *exact) key(p *PublicKey) {
	text := ""
	if e.writing {
		text = p.String()
	}
	if e.str(&text); e.failed != "" || e.writing {
		return
	}
	k, err := ParsePublicKey(text)
	if err != nil || k.Witness() {
		e.code = CodeMalformed
		e.fail("the text of a sealing key")
		return
	}
	*p = k
}

// data is the member that holds bytes, "text" where they are UTF-8, else "base64", and another one whose key stands between the
// two.
func (e *exact) data(p *[]byte, between func()) {
	if e.writing && utf8.Valid(*p) || !e.writing && !e.has(`"base64":`) {
		between()
		e.lit(`,"text":`)
		text := string(*p)
		if e.str(&text); !e.writing {
			*p = []byte(text)
		}
		return
	}
	e.lit(`"base64":`)
	e.base64(p)
	e.lit(",")
	between()
}

// base64 is bytes in base64 with padding, which are no UTF-8.
func (e *exact) base64(p *[]byte) {
	text := ""
	if e.writing {
		text = base64.StdEncoding.EncodeToString(*p)
	}
	if e.str(&text); e.failed != "" || e.writing {
		return
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || base64.StdEncoding.EncodeToString(b) != text:
		e.code = CodeMalformed
		e.fail("base64 with padding")
	case utf8.Valid(b):
		e.code = CodeNotCanonical
		e.fail("\"text\" for what is UTF-8")
	}
	*p = b
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
