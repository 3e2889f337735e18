package httptape

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// Options say how a Transport works. Nil and zero work.
type Options struct {
	Mode Mode
	// Base sends what is recorded and what passes through; nil is http.DefaultTransport. It must end a request whose context
	// ends.
	Base http.RoundTripper
	// Speed is how fast a recorded answer comes: 0 at once, 1 as recorded, N that many times as fast. It waits with timers,
	// so a testing/synctest bubble passes over it.
	Speed float64
	// Passthrough picks the requests that are sent on without being recorded or answered, in every mode.
	Passthrough func(*http.Request) bool

	// Headers are the names of the request headers that must be equal for a recorded answer to serve a request. By default
	// none matters.
	Headers []string
	// Rewrite changes a request before it is matched and kept, not the one that is sent: what it takes out matters neither to
	// a match nor reaches the tape. It must do the same to equal requests. It may change all that it is given, and is called
	// by several goroutines at once.
	Rewrite func(*exchange.Request)
	// Masks says what is masked before requests are compared. Nil masks what package scrub knows. Home, WorkTree and Temp
	// are filled in where they are empty: with the user's home, the nearest directory above that holds .git or else go.mod,
	// and the temporary directory.
	Masks *masks.Options
	// Repeat lets the last recorded answer to a request serve again once all have been given.
	Repeat bool

	// Secrets are values that never reach the tape, by the name that stands in their place: beside those that package scrub
	// and SecretNames find. See Transport.Secret for values of environment variables.
	Secrets map[string]string
	// SecretNames are names of headers, query values, and members of JSON objects and forms whose values are secrets, beside
	// those that are known: in headers and queries what names.SaySecret says, in bodies what docs/reference/secrets.md lists.
	SecretNames []string
	// Env is the environment, NAME=VALUE, whose secrets are looked for; nil is the process's own.
	Env []string
	// DropHeaders are the names of headers, of requests and of answers, that do not reach the tape.
	DropHeaders []string

	// AllowUnasked makes recorded exchanges that nobody asked for no error of Close.
	AllowUnasked bool
	// AllowUnmatched makes requests that the tape does not answer no error of Close. Each is still an *UnmatchedError of
	// its RoundTrip.
	AllowUnmatched bool

	// MaxBody bounds, in bytes, a request's body, which is held in memory, and an answer with a Content-Encoding; 0 is
	// exchange.DefaultMaxBody. Other answers have no bound.
	MaxBody int64
	Log     *slog.Logger // nil is silent
}

// withDefaults returns a copy of o, which may be nil, with all defaults filled in.
func withDefaults(o *Options) Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Base == nil {
		out.Base = http.DefaultTransport
	}
	if out.MaxBody <= 0 {
		out.MaxBody = exchange.DefaultMaxBody
	}
	if out.Log == nil {
		out.Log = slog.New(slog.DiscardHandler)
	}
	return out
}

// A Mode says when a Transport records and when it answers.
type Mode uint8

// The modes. Their names and what they do are those of go-vcr, but for the zero Mode.
const (
	// ModeRecordOnce answers from the tape where there is one, and makes it where there is none. It is the zero Mode. Where
	// the variable CI is set it never records: see RecordVariable.
	ModeRecordOnce Mode = iota
	// ModeReplayOnly answers from the tape. One that is missing is a *MissingTapeError.
	ModeReplayOnly
	// ModeRecordOnly records, and replaces the tape that is there.
	ModeRecordOnly
	// ModeReplayWithNewEpisodes answers what the tape holds, sends on what it does not hold and adds it at the end. What
	// nobody asked for stays and is no error. Where the variable CI is set it never records.
	ModeReplayWithNewEpisodes
	// ModePassthrough sends everything on, and opens and keeps no tape.
	ModePassthrough
)

// String returns the mode in the words of its name: "record once".
func (m Mode) String() string {
	names := [...]string{"record once", "replay only", "record only", "replay with new episodes", "passthrough"}
	if int(m) < len(names) {
		return names[m]
	}
	return "mode " + strconv.Itoa(int(m))
}

// RecordVariable is the environment variable that decides for all tapes of a process that are not ModePassthrough:
//
//	TAPEDECK_RECORD=1   record anew, as ModeRecordOnly does, also where CI is set
//	TAPEDECK_RECORD=0   never record: ModeRecordOnce and ModeReplayWithNewEpisodes are ModeReplayOnly
//	unset               the latter where the variable CI is set to anything but 0 or false
//
// ModeRecordOnly, which somebody wrote down, records whatever CI says.
const RecordVariable = "TAPEDECK_RECORD"

// decided returns what a mode is in this environment.
func decided(m Mode) (Mode, error) {
	if m > ModePassthrough {
		return m, fmt.Errorf("no such mode: %d; the modes are %d to %d", m, ModeRecordOnce, ModePassthrough)
	}
	set := os.Getenv(RecordVariable)
	record, err := strconv.ParseBool(set)
	switch {
	case m == ModePassthrough:
		return m, nil
	case set != "" && err != nil:
		return m, fmt.Errorf("%s is %q: set it to 1 to record, to 0 never to", RecordVariable, set)
	case record:
		return ModeRecordOnly, nil
	case m == ModeRecordOnly && set == "":
		return m, nil
	case set != "" || inCI():
		return ModeReplayOnly, nil
	}
	return m, nil
}

func inCI() bool {
	switch strings.ToLower(os.Getenv("CI")) {
	case "", "0", "false":
		return false
	}
	return true
}

// newSecrets makes a scrubber for this Transport alone. Rules are those of the tape that answers, 0 for the newest: see scrub.Options.
func newSecrets(o *Options, rules int) *scrub.Scrubber {
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	s := bare.NewScrubber(&scrub.Options{Env: env, Rules: rules, SecretNames: o.SecretNames})
	for name, value := range o.Secrets {
		s.AddSecret(name, value)
	}
	return s
}

// withoutNames returns h without the headers of names, which are canonical.
func withoutNames(h http.Header, names []string) http.Header {
	if !slices.ContainsFunc(names, func(name string) bool { return len(h[name]) > 0 }) {
		return h
	}
	h = h.Clone()
	for _, name := range names {
		h.Del(name)
	}
	return h
}

// classifier is package llm's, with the headers that matter as a part of what a request is.
type classifier struct {
	*llm.Classifier
	masker  *masks.Masker
	headers []string // in canonical form
}

func newClassifier(o *Options) (*classifier, error) {
	masker, err := bare.NewMasker(o.Masks)
	if err != nil {
		return nil, err
	}
	c := &classifier{masker: masker}
	c.Classifier = llm.NewClassifier(c.masker)
	for _, name := range o.Headers {
		c.headers = append(c.headers, http.CanonicalHeaderKey(name))
	}
	return c, nil
}

// Classify implements exchange.Classifier.
func (c *classifier) Classify(r *exchange.Request) (*exchange.Identity, error) {
	id, err := c.Classifier.Classify(r)
	if err != nil || len(c.headers) == 0 {
		return id, err
	}
	id.Surface = c.surface(id.Surface, r.Header)
	id.Key.Request = cas.Sum(id.Surface)
	return id, nil
}

// surface is what must be equal where headers matter: {"body":…,"headers":{…}}.
func (c *classifier) surface(body []byte, h http.Header) []byte {
	s := struct {
		Body    any                 `json:"body"`
		Headers map[string][]string `json:"headers"`
	}{string(body), make(map[string][]string)}
	if json.Valid(body) {
		s.Body = json.RawMessage(body)
	}
	for _, name := range c.headers {
		for _, value := range h[name] {
			s.Headers[name] = append(s.Headers[name], c.comparable(value))
		}
	}
	b, err := json.Marshal(s)
	if err != nil { // json.Valid has seen the body: nothing here has no JSON form
		panic(err)
	}
	return b
}

// comparable returns a text without what differs from run to run.
func (c *classifier) comparable(text string) string {
	return string(c.masker.Mask(scrub.Renumber([]byte(text))))
}
