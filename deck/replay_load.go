package deck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// openSession begins the replay's own tape, with the secrets, masks and settings that the recorded run had.
func (r *replayer) openSession() error {
	m := r.rec.Manifest
	env := r.o.Env
	if env == nil {
		env = os.Environ()
	}
	r.played = playOf(m, env)
	r.played.env = r.moved.env(r.played.env)
	if len(r.o.Argv) > 0 {
		r.played.argv = r.o.Argv
	}
	g, err := newReplayRedactor(r.o.ConfigDir, m.Cwd, r.played, &r.roots, m.Masking)
	if err != nil {
		return err
	}
	if r.recorded, err = r.rec.Tree(); err != nil {
		return err
	}
	late := r.played.late(m.Secrets)
	r.noteKey(len(late))
	g.learnFiles(r.recorded, r.store, m.Roots.Tree)
	for dir, t := range r.found {
		g.learnFiles(t, r.store, dir)
	}
	g.learnSettings(m.Roots.Tree, r.recorded)
	g.scrub.Seek(late)
	g.begun = g.scrub.Mark()
	if err := r.loadConversations(g); err != nil {
		return err
	}
	r.s, err = newSession(&sessionOptions{
		redactor: g, dir: r.dir, script: m.Program.Path, args: r.played.argv[1:], roots: r.roots, replay: true, live: r.fork.live(), log: r.o.Log,
		recorded: r.conversations,
	})
	return err
}

// noteKey notes what another key than the recording's cannot tell: files, and so many secrets that are sought.
func (r *replayer) noteKey(late int) {
	n := recording.CountKeyed(r.recorded)
	for _, t := range r.found {
		n += recording.CountKeyed(t)
	}
	for _, said := range []string{r.rec.OtherKeyIn(r.o.ConfigDir, n), r.rec.UntoldSecrets(r.o.ConfigDir, late)} {
		if said != "" {
			r.notes = append(r.notes, said)
		}
	}
}

// loadTree reads the work tree as recorded. The replay's snapshot adds to the recording's blobs only what is new.
func (r *replayer) loadTree() (err error) {
	m := r.rec.Manifest
	lib := library.Of(m.Roots.LibraryRoot(m.Cwd))
	r.trees = &trees{
		s: r.s, root: r.roots.Tree, store: &layeredStore{r.s.store, r.store},
		cache: filepath.Join(lib.Dir, library.StatCacheName), exclude: append(r.hidden(lib), r.dir),
	}
	if r.o.TreeNow {
		return r.treeNow()
	}
	r.trees.before = r.recorded
	if r.trees.before == nil && m.Roots.Tree != "" {
		return fmt.Errorf("%s: %s is missing: the work tree cannot be restored", r.rec.Dir, recording.TreeName)
	}
	return nil
}

// hidden lists what the program may not see: recordings, and what is written to meanwhile. Of a work tree that lies elsewhere than where it was recorded it is in both places:
// one is read, the other is what the program sees.
func (r *replayer) hidden(lib *library.Library) []string {
	out := slices.Concat(lib.Hidden(r.rec.Dir), r.o.Own, OutputFiles(r.o.Stdout, r.o.Stderr))
	root, at := r.rec.Manifest.Roots.Tree, recording.Resolved(r.o.TreeAt)
	if at == "" || at == root {
		return out
	}
	for _, path := range append(library.Of(at).Hidden(recording.Resolved(r.rec.Dir)), out...) {
		out = append(out, path)
		if recording.Within(path, at) {
			out = append(out, root+strings.TrimPrefix(path, at))
		}
		if recording.Within(path, root) {
			out = append(out, at+strings.TrimPrefix(path, root))
		}
	}
	return out
}

// treeNow takes the work tree as it is for the one that the run found.
func (r *replayer) treeNow() (err error) {
	root := r.rec.Manifest.Roots.Tree
	tree := r.onDisk(root)
	if root == "" || !recording.IsDir(tree) {
		return fmt.Errorf("there is no work tree at %q now: replay over the recorded one", tree)
	}
	r.notes = append(r.notes, "replayed over the work tree as it is now, not as recorded")
	r.trees.at = time.Now()
	if r.trees.before, err = r.trees.snap(tree, files.SnapOptions{Store: r.trees.store, KeepCache: true}); err != nil {
		return fmt.Errorf("work tree as it is now: %w", err)
	}
	r.trees.before.Root = root
	return nil
}

// onDisk is where a recorded directory lies on this machine's disk.
func (r *replayer) onDisk(dir string) string {
	if r.o.TreeAt != "" && dir == r.rec.Manifest.Roots.Tree {
		return r.o.TreeAt
	}
	return dir
}

// loadBook reads what answers the program over HTTP and WebSockets.
func (r *replayer) loadBook() error {
	f, err := r.rec.OpenTape()
	if err != nil {
		return err
	}
	defer f.Close()
	r.changed, r.removed, r.again = make(map[string]bool), make(map[string]bool), newRecordedProcesses(r.store)
	records := func(yield func(*tape.Record, error) bool) {
		for rec, err := range f.Records() {
			if err == nil {
				r.again.add(rec.Kind)
				r.survey(rec.Kind)
				r.fork.asks(rec.Kind)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
	if r.book, err = exchange.NewBook(records, r.s.class, r.store); err != nil {
		return err
	}
	config, err := recording.ReadConfig(r.config()) // as it is now
	r.side = config.Side
	r.book.TellSideTraffic(r.side)
	if errFork := r.fork.divide(r); errFork != nil {
		return errFork
	}
	r.book.KeepOrder()
	if r.o.Proxy && r.rec.Manifest.Proxy && r.asked == 0 {
		r.gaps = append(r.gaps, NothingCame)
	}
	return err
}

// survey remembers what the recorded run changed, and counts what it asked for.
func (r *replayer) survey(k tape.Kind) {
	if tape.ExchangeOf(k) != nil {
		r.asked++
	}
	if f := tape.ChangedFile(k); f != nil {
		r.changed[f.Path] = true
	}
	if f, ok := k.(*tape.FileDelete); ok {
		r.removed[f.Path] = true
	}
}

// loadScreens says how the terminals compare. The replay's own is there by its end.
func (r *replayer) loadScreens() (err error) {
	m := r.rec.Manifest
	if r.rowMask, err = m.Masking.ScreenMasker(&r.roots); err != nil {
		return err
	}
	r.shown = [2]*screen.Side{screen.SideOf(r.rec), {Dir: r.dir, Finished: true}}
	if r.o.Screens && r.o.Mode == fidelity.Outcome {
		return errors.New("--tty compares screens, and --mode outcome nothing that was printed: leave out one of them")
	}
	r.screens, err = screen.Screens(m.TTY, r.rowMask, r.o.Screens, r.shown)
	return err
}

// watcher are those of a replay whose screens are compared; nil for none.
func (r *replayer) watcher() (*screen.Watcher, error) {
	if !r.o.Screens {
		return nil, nil
	}
	seen, err := r.shown[fidelity.Recorded].Show()
	if err != nil {
		return nil, err
	}
	return screen.NewWatcher(r.rec.Manifest.TTY, r.screens, seen), nil
}

// checkBlobs lists the blobs that the recording names and does not hold: what compares by digest alone would be green
// without them.
func (r *replayer) checkBlobs() error {
	missing, err := r.rec.MissingBlobs(r.store)
	r.gaps = append(r.gaps, missing...)
	return err
}

// loadConversations reads the conversations with MCP servers.
func (r *replayer) loadConversations(g *redactor) (err error) {
	if !r.rec.Manifest.FollowsMCP() {
		return nil
	}
	g.followMCP()
	var reveal func([]byte) []byte
	if r.played.reveals() {
		reveal = g.scrub.Reveal
	}
	if r.conversations, err = newRecordedConversations(g, r.rec.Records(), r.store, reveal, r.o.Patience); err != nil {
		return err
	}
	if r.o.Proxy && r.conversations.stdio > 0 {
		return fmt.Errorf("%s: %w", r.rec.Dir, errConversationsInJail)
	}
	return nil
}

// giveAgain returns what gives time and randomness to the processes of a replay; nil where they are not on the recording.
func (r *replayer) giveAgain(c *changing) (*processes, error) {
	m := r.rec.Manifest
	if !m.Axes[axisClock].On || r.o.Proxy {
		return nil, nil
	}
	seed, err := r.rec.Seed(r.s.key)
	if err != nil && !errors.Is(err, recording.ErrNoSeed) {
		return nil, err
	}
	r.again.sort()
	r.processes = replayProcesses(r.s, c, seed, r.again, m.StartedAt, r.o.Out != "")
	r.s.answered = r.processes.answered
	r.processes.began, r.processes.over, r.processes.ending = r.book.ProcessBegan, r.book.ProcessEnded, r.book.ProcessEnding
	return r.processes, nil
}

// reveal returns what puts the values of this replay in the place of the recording's placeholders; nil where there is no
// secret.
func (r *replayer) reveal() func([]byte) []byte {
	if !r.played.reveals() {
		return nil
	}
	return r.s.scrub.Reveal
}
