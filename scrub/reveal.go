package scrub

import (
	"bytes"
	"io"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// Digits returns the hex digits of a placeholder: two placeholders with the same ones stand for the same value.
func Digits(placeholder string) string { return placeholders.Digits(placeholder) }

// Renumber replaces each placeholder of b by td_#<n>, where n counts the different secrets by their first appearance in b,
// from 1. So neither the project's key, nor the secret, nor the rule that found it first matters to a digest of what it
// returns, while which places held the same secret still does. It returns b itself where nothing is to be replaced, and
// never writes to b.
func Renumber(b []byte) []byte { return placeholders.Renumber(b, nil) }

// Fill returns b with each placeholder replaced by what valueOf says it stands for, in the form in which it stood.
// valueOf is given the digits of the placeholder, which are of the value alone; where it reports false the placeholder
// stays. Fill returns b itself where nothing is to be replaced, and never writes to b.
//
// In base64 a value of another length than the recorded one shifts what comes after it in the same group: the text around
// it then decodes to something else.
func Fill(b []byte, valueOf func(digits string) (value string, ok bool)) []byte {
	return placeholders.Replace(b, func(placeholder string) (string, bool) {
		value, ok := valueOf(Digits(placeholder))
		if !ok {
			return "", false
		}
		_, form := placeholders.Split(placeholder)
		return placeholders.Disguise(value, form), true
	})
}

// A revealing holds back what may be the beginning of a placeholder.
type revealing struct {
	fill func(b []byte) []byte
	r    io.Reader
	held []byte // read and not looked through
	out  []byte // to be given
	err  error
}

func (v *revealing) Read(p []byte) (int, error) {
	for len(v.out) == 0 && v.err == nil {
		v.readMore()
	}
	n := copy(p, v.out)
	if v.out = v.out[n:]; n == 0 && len(p) > 0 {
		return 0, v.err
	}
	return n, nil
}

func (v *revealing) readMore() {
	buf := make([]byte, 32<<10)
	n, err := v.r.Read(buf)
	v.held, v.err = append(v.held, buf[:n]...), err
	cut := len(v.held)
	if err == nil {
		cut = placeholders.Cut(v.held)
	}
	v.out = v.fill(bytes.Clone(v.held[:cut]))
	v.held = append(v.held[:0], v.held[cut:]...)
}
