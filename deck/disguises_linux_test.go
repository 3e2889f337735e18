package deck_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A disguise is a form in which a secret may stand in a text.
type disguise struct {
	name  string
	of    func(v string) string
	plain bool // what it gives is of letters, digits, - and _ alone if v is
}

// disguises are all those in which a known value must be found. JSON quotes where something needs it.
var disguises = []disguise{
	{"plain", func(v string) string { return v }, true},
	{"JSON", func(v string) string { return quoted(v, 1) }, true},
	{"JSON in JSON", func(v string) string { return quoted(v, 2) }, true},
	{"JSON \\u00xx", func(v string) string { return eachByte(v, `\u%04x`) }, false},
	{"percent where needed", url.QueryEscape, false},
	{"percent everywhere", func(v string) string { return eachByte(v, "%%%02X") }, false},
	{"percent, lower case", func(v string) string { return eachByte(v, "%%%02x") }, false},
	{"hex", func(v string) string { return hex.EncodeToString([]byte(v)) }, true},
	{"HEX", func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) }, true},
	{"base64 at 0", func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v + ":rest")) }, false},
	{"base64 at 1", func(v string) string { return base64.StdEncoding.EncodeToString([]byte("u" + v + ":rest")) }, false},
	{"base64 at 2", func(v string) string { return base64.StdEncoding.EncodeToString([]byte("me" + v + ":rest")) }, false},
	{"base64url at 0", func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v + ":rest")) }, true},
	{"base64url at 1", func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte("~" + v + "?rest")) }, true},
	{"base64url at 2", func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte("~~" + v + "?rest")) }, true},
}

// inLines are disguises of several lines, as MIME has them.
var inLines = []disguise{
	{"base64 in lines of 76", func(v string) string { return lines(strings.Repeat("p", 40)+v+" and more", 76, "\r\n") }, false},
	{"base64 in short lines", func(v string) string { return lines("a"+v, 9, "\n") }, false},
}

func lines(v string, width int, end string) string {
	var b strings.Builder
	for piece := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString([]byte(v))), width) {
		b.WriteString(string(piece) + end)
	}
	return b.String()
}

func eachByte(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, format, v[i])
	}
	return b.String()
}

// quoted writes v as JSON within JSON, without the outer quotation marks.
func quoted(v string, times int) string {
	for range times {
		b, _ := json.Marshal(v)
		v = string(b[1 : len(b)-1])
	}
	return v
}

// all is a text with v in every disguise.
func all(v string) string {
	var b strings.Builder
	for _, d := range slices.Concat(disguises, inLines) {
		fmt.Fprintf(&b, "%s: <%s>\n", d.name, d.of(v))
	}
	return b.String()
}

// quotedAll is all as a JSON document.
func quotedAll(v string) string {
	m := make(map[string]string)
	for _, d := range slices.Concat(disguises, inLines) {
		m[d.name] = d.of(v)
	}
	b, _ := json.Marshal(m)
	return string(b)
}

var codings = []string{"gzip", "deflate", "br", "zstd", "x-raw-deflate"}

// packedAs is text under a content coding.
func packedAs(coding, text string) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "x-raw-deflate": // what some servers call deflate
		w, _ = flate.NewWriter(&b, 6)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	}
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

// unpackedFrom undoes packedAs.
func unpackedFrom(coding string, b []byte) string {
	var r io.Reader
	switch coding {
	case "gzip":
		r, _ = gzip.NewReader(bytes.NewReader(b))
	case "deflate":
		if r, _ = zlib.NewReader(bytes.NewReader(b)); b[0] != 0x78 {
			r = flate.NewReader(bytes.NewReader(b))
		}
	case "br":
		r = brotli.NewReader(bytes.NewReader(b))
	case "zstd":
		r, _ = zstd.NewReader(bytes.NewReader(b))
	default:
		return string(b)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
