package deck

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A session is the tape of one run while it is being written, with what everything that writes to it shares.
type session struct {
	dir   string
	roots Roots
	log   *slog.Logger

	store *cas.Dir
	file  *os.File
	rec   *tape.Recorder
	scrub *scrub.Scrubber
	mask  *scrub.Masker
	class exchange.Classifier
	tap   *exchange.Tap

	scrubID string // names what scrub looks for: a stat cache made for other secrets says nothing about these
}

// sessionOptions say what newSession opens.
type sessionOptions struct {
	dir       string // exists
	partDir   string // where answers go while they stream; "" of a replay, whose answers are on a tape already
	header    *tape.Header
	env       []string    // the program's: its secrets are hidden
	replay    bool        // the secrets are those listed, under the placeholders that the recording has for them
	secrets   []secretVar // of a replay
	args      []string    // the program's
	roots     Roots
	masking   *Masking
	configDir string
	sync      bool
	log       *slog.Logger
}

// newSession starts a tape in o.dir.
func newSession(o *sessionOptions) (*session, error) {
	key, err := scrub.LoadKey(filepath.Join(configDir(o.configDir), "scrub.key"))
	if err != nil {
		return nil, fmt.Errorf("scrub key: %w", err)
	}
	s := &session{dir: o.dir, roots: o.roots, log: o.log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.replay {
		s.scrub = scrub.New(key, nil)
		learnSecrets(s.scrub, o.secrets)
	} else {
		s.scrub = scrub.New(key, &scrub.Options{Env: o.env})
	}
	learnArgs(s.scrub, o.args)
	s.scrubID = scrubID(s.scrub, o.env, o.args)
	if s.mask, err = o.masking.masker(&o.roots); err != nil {
		return nil, err
	}
	s.class = llm.NewClassifier(s.mask)
	if err := s.openTape(o); err != nil {
		return nil, err
	}
	s.tap = exchange.NewTap(s.rec, s.class, s.scrub, &exchange.TapOptions{PartDir: o.partDir, Replay: o.replay})
	return s, nil
}

func (s *session) openTape(o *sessionOptions) error {
	path := filepath.Join(o.dir, tapeName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	s.file = f
	if s.store, err = cas.OpenDir(path+".cas", &cas.DirOptions{Sync: o.sync}); err != nil {
		return errors.Join(err, f.Close())
	}
	h := *o.header
	h.Producer = Version
	for i, a := range h.Argv {
		h.Argv[i], _ = tape.SafeString(s.scrub.String(a))
	}
	w, err := tape.NewWriter(f, &h)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.rec = tape.NewRecorder(w, o.recorderOptions(s.store, f))
	return s.rec.Flush()
}

// recorderOptions stamp with the clock of this machine; with sync every barrier is an fsync.
func (o *sessionOptions) recorderOptions(store cas.Store, f *os.File) *tape.RecorderOptions {
	ro := &tape.RecorderOptions{Store: store}
	if o.sync {
		ro.Sync = f.Sync
	}
	return ro
}

// close ends the tape.
func (s *session) close() error {
	return errors.Join(s.rec.Flush(), s.file.Close())
}

// record appends k. A tape that cannot be written ends no run: the recorder keeps the error, and close returns it.
func (s *session) record(k tape.Kind) {
	if err := s.rec.Record(k); err != nil {
		s.log.Error("record not written", "kind", k.Name(), "err", err)
	}
}

// scrubID names the secrets that a scrubber was given, without telling them.
func scrubID(s *scrub.Scrubber, env, args []string) string {
	var known strings.Builder
	for _, v := range s.Env(env) {
		if v.Secret {
			fmt.Fprintf(&known, "%s=%s\n", v.Name, v.Value)
		}
	}
	fmt.Fprintf(&known, "%q", scrubAll(s, args))
	return Version + " " + s.KeyedDigest([]byte(known.String()))
}

// configDir is where the keys lie.
func configDir(set string) string {
	if set != "" {
		return set
	}
	return filepath.Join(xdg.ConfigHome, "tapedeck")
}
