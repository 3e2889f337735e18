package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"golang.org/x/mod/sumdb/tlog"
)

// written is the one text of v, that of RFC 8785. What is written here always has one.
func written(v any) []byte {
	b, _ := jsonscan.Marshal(v)
	b, _ = canonjson.Canonical(b)
	return b
}

// exactly reads into v a text that must be what written makes of v again; format is the one of v.
func exactly(b []byte, v any, format *int64, path string) *Problem {
	err := json.Unmarshal(b, v)
	same := err == nil && bytes.Equal(written(v), b)
	if same && *format == Version {
		return nil
	}
	if err := jsonscan.Valid(b); err != nil {
		return problem(CodeNotJSON, path, "it is no JSON: %v", err)
	}
	if len(b) <= maxCompared {
		if key, at, found := jsonscan.Duplicate(b); found {
			return problem(CodeDuplicateKey, path, "byte %d: the key %.80q stands twice in one object", at, key)
		}
		if c, err := canonjson.Canonical(b); err == nil && !bytes.Equal(c, b) {
			return problem(CodeNotCanonical, path, "byte %d: it is not in the form of RFC 8785, which alone is taken", firstDifference(c, b))
		}
	}
	switch {
	case same || *format > Version:
		return problem(CodeVersion, path, "it is of format %d, which may be of a later version; this one reads %d alone", *format, Version)
	case err != nil:
		return problem(CodeMalformed, path, "it has not the form of format %d: %v", Version, err)
	}
	return problem(CodeMalformed, path, "byte %d: it has not the form of format %d", firstDifference(written(v), b), Version)
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

// isCount reports whether numbers are from 0 to 2^53-1.
func isCount(all ...int64) bool {
	return !slices.ContainsFunc(all, func(n int64) bool { return n < 0 || n >= 1<<53 })
}

// A bytesText is bytes in a text: "text" where they are UTF-8, else "base64", with padding.
type bytesText struct {
	Base64 *string `json:"base64,omitempty"`
	Text   *string `json:"text,omitempty"`
}

func textOf(b []byte) bytesText {
	text := string(b)
	if utf8.Valid(b) {
		return bytesText{Text: &text}
	}
	text = base64.StdEncoding.EncodeToString(b)
	return bytesText{Base64: &text}
}

// bytes are those of a text.
func (t *bytesText) bytes(path string) ([]byte, *Problem) {
	switch {
	case (t.Text == nil) == (t.Base64 == nil):
		return nil, problem(CodeMalformed, path, "expected \"text\" or \"base64\"")
	case t.Text != nil:
		return []byte(*t.Text), nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(*t.Base64)
	switch {
	case err != nil || base64.StdEncoding.EncodeToString(b) != *t.Base64:
		return nil, problem(CodeMalformed, path, "expected base64 with padding")
	case utf8.Valid(b):
		return nil, problem(CodeNotCanonical, path, "expected \"text\" for what is UTF-8")
	}
	return b, nil
}

// hexes are hashes as they are written: 64 lowercase hex digits each.
func hexes(all []tlog.Hash) []cas.Digest {
	out := make([]cas.Digest, len(all))
	for i, h := range all {
		out[i] = cas.Digest(h)
	}
	return out
}

// hashes are those of a path that was written.
func hashes(all []cas.Digest) tlog.RecordProof {
	out := make(tlog.RecordProof, len(all))
	for i, h := range all {
		out[i] = tlog.Hash(h)
	}
	return out
}

// maxPath is how many hashes a path may have: a tree has fewer than 2^63 leaves.
const maxPath = 63
