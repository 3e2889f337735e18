package cassette

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// MarshalJSON writes one character as the number of its rune, as the format's first producer does, else a string.
func (c Char) MarshalJSON() ([]byte, error) {
	r, n := utf8.DecodeRuneInString(string(c))
	switch {
	case c == "":
		return []byte("0"), nil
	case n == len(c) && r != utf8.RuneError:
		return strconv.AppendInt(nil, int64(r), 10), nil
	}
	return jsonscan.Marshal(string(c))
}

// UnmarshalJSON takes the number of a rune or a string. 0 is no text, what is no rune U+FFFD.
func (c *Char) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = Char(s)
		return nil
	}
	var r *int64
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	switch {
	case r == nil || *r == 0:
		*c = ""
	case *r < 0 || *r > utf8.MaxRune:
		*c = Char(utf8.RuneError)
	default:
		*c = Char(rune(*r))
	}
	return nil
}

// An exitJSON is an Exit as it may come: Signal and Err are whatever the producer's error and signal made of themselves.
type exitJSON struct {
	Code     int
	Signal   json.RawMessage
	Exited   bool
	Signaled bool
	Err      json.RawMessage
}

// UnmarshalJSON takes a signal that is a string, a number, which stays as its digits, or anything else, as its JSON.
func (e *Exit) UnmarshalJSON(b []byte) error {
	var j exitJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*e = Exit{Code: j.Code, Exited: j.Exited, Signaled: j.Signaled, Err: j.Err, Signal: string(j.Signal)}
	switch {
	case string(e.Err) == "null":
		e.Err = nil
	case len(e.Err) > 0 && e.Err[0] != '{' && e.Err[0] != '"':
		return fmt.Errorf("Err: expected an object or null, found %.40q", e.Err)
	}
	switch {
	case e.Signal == "null":
		e.Signal = ""
	case len(j.Signal) > 0 && j.Signal[0] == '"':
		return json.Unmarshal(j.Signal, &e.Signal)
	}
	return nil
}

// MarshalJSON writes an Err that is no object as null, which the format's first producer reads back.
func (e Exit) MarshalJSON() ([]byte, error) {
	err := e.Err
	if len(err) == 0 || err[0] != '{' {
		err = json.RawMessage("null")
	}
	return jsonscan.Marshal(struct {
		Code     int
		Signal   string
		Exited   bool
		Signaled bool
		Err      json.RawMessage
	}{e.Code, e.Signal, e.Exited, e.Signaled, err})
}
