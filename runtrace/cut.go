package runtrace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Truncate cuts a string that is longer than MaxString: at most that many bytes of it, whole characters, and Marker. What it has
// cut it does not cut again.
func Truncate(s string) string {
	if len(s) <= MaxString || len(s) <= MaxString+len(Marker) && strings.HasSuffix(s, Marker) {
		return s
	}
	n := MaxString
	for n > MaxString-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + Marker
}

// appendRaw appends JSON on one line and with the strings in it cut. (Keys stay: two that are cut could
// become one.)
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if len(raw) <= MaxString {
		return jsonscan.AppendLine(dst, bytes.TrimSpace(raw))
	}
	return appendCut(dst, bytes.TrimSpace(raw))
}

// appendCut is appendRaw for JSON that is long enough to hold a string that is too long.
func appendCut(dst, raw []byte) []byte {
	for {
		begin := bytes.IndexByte(raw, '"')
		if begin < 0 {
			return jsonscan.AppendLine(dst, raw)
		}
		end := begin + jsonscan.TextLen(raw[begin:])
		dst = jsonscan.AppendLine(dst, raw[:begin])
		dst = appendString(dst, raw[begin:end], isKey(raw[end:]))
		raw = raw[end:]
	}
}

// appendString appends a string with its quotes, cut unless it is a key.
func appendString(dst, quoted []byte, key bool) []byte {
	if key || len(quoted)-2 <= MaxString {
		return append(dst, quoted...)
	}
	var s jsonscan.Scanner
	s.Reset(quoted)
	text := s.TextBytes()
	if len(text) <= MaxString {
		return append(dst, quoted...)
	}
	return jsonscan.AppendText(dst, Truncate(string(text)))
}

// isKey reports whether what stands before b is a key.
func isKey(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == ':'
}

// Fit gives up what a turn is too long for: where its line would be longer than MaxLine, OverLine takes the place of output, of
// parameters, of prompt, in that order, as far as there is need. It is for turns that must not be lost; AppendLine alone
// refuses them.
func (t *Turn) Fit() {
	over, _ := json.Marshal(OverLine)
	prompt := OverLine
	for _, give := range []func(){
		func() { t.Output = over },
		func() { t.Parameters = over },
		func() { t.Prompt = &prompt },
	} {
		if _, err := t.AppendLine(nil); err == nil {
			return
		}
		give()
	}
}

// A TooLargeError says that a line is longer than MaxLine with all cuts made.
type TooLargeError struct {
	Record string // its tag
	Size   int    // bytes, with the newline
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a %s record holds at most %d bytes, this one has %d after strings over %d were cut: send less",
		e.Record, MaxLine, e.Size, MaxString)
}

// An InvalidError says that a raw part of a record is no JSON.
type InvalidError struct {
	Key   string // the part's
	Cause error
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s is not JSON: %v", e.Key, e.Cause) }
func (e *InvalidError) Unwrap() error { return e.Cause }
