package httptape

import (
	"log/slog"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
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
