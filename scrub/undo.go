package scrub

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// undisguised returns the value that stands in text in a form; text itself where s is none. ok is false where text cannot be
// of that form, or does not have all of the value: that is not known without whoever made the text.
func undisguised(text, s string) (value string, ok bool) {
	f, isForm := parseForm(s)
	if !isForm {
		return text, true
	}
	if text, ok = f.unescaped(text); !ok {
		return "", false
	}
	for range f.json {
		if json.Unmarshal([]byte(`"`+text+`"`), &text) != nil {
			return "", false
		}
	}
	switch f.kind {
	case kindHex, kindUpperHex:
		b, err := hex.DecodeString(text)
		return string(b), err == nil
	case kindBase64, kindBase64URL:
		return f.unbase64(text)
	}
	return text, true
}

// unescaped undoes the percent-encoding.
func (f *form) unescaped(text string) (plain string, ok bool) {
	if !f.percent {
		return text, true
	}
	undo := url.PathUnescape
	if f.plus {
		undo = url.QueryUnescape
	}
	if f.twice {
		once, err := url.PathUnescape(text)
		if err != nil {
			return "", false
		}
		text = once
	}
	plain, err := undo(text)
	return plain, err == nil
}

// unbase64 returns the value that digits hold. It is not whole where the digit that it shared with what came before was left.
func (f *form) unbase64(digits string) (value string, ok bool) {
	enc := base64.RawStdEncoding
	if f.kind == kindBase64URL {
		enc = base64.RawURLEncoding
	}
	if f.shift > 0 && f.head == noBits {
		return "", false
	}
	digits = strings.Repeat("A", f.shift) + digits // the first group, as it is with nothing before the value
	b, err := enc.DecodeString(digits)             // which skips the ends of lines
	if err != nil || len(b) < f.shift {
		return "", false
	}
	return string(b[f.shift:]), true
}
