package screen

import (
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// maxUnseen is how many bytes of output wait to be looked at, where nothing waits to be typed.
const maxUnseen = 256 << 10

// A Watcher looks at the screen of a replay: keys are typed once it shows what it showed when they were typed while recording. A
// program that draws by the clock prints more or less than it had, and is ready all the same.
//
// What is printed is only kept here; the screen is drawn when somebody asks. A nil one sees nothing.
type Watcher struct {
	screens *fidelity.Screens
	moments []fidelity.Moment
	begun   time.Time

	mu     sync.Mutex
	unseen []glimpse
	bytes  int
	track  *Tracker
}

// A glimpse is output, or a size, and when it came.
type glimpse struct {
	ms   int64
	p    []byte
	size terminal.Size
	keys bool
}

// NewWatcher returns one that knows what was seen before each run of keys.
func NewWatcher(tty *recording.TTY, screens *fidelity.Screens, seen *fidelity.Showing) *Watcher {
	size := terminal.Size{Rows: tty.Rows, Cols: tty.Cols}.OrDefault()
	return &Watcher{screens: screens, moments: seen.Moments, begun: time.Now(), track: NewTracker(size.Rows, size.Cols)}
}

// Write implements io.Writer.
func (w *Watcher) Write(p []byte) (int, error) {
	if w != nil {
		w.add(glimpse{p: append([]byte(nil), p...)})
	}
	return len(p), nil
}

// Cause says that keys are typed now.
func (w *Watcher) Cause() {
	if w != nil {
		w.add(glimpse{keys: true})
	}
}

// Resize says that the screen has another size.
func (w *Watcher) Resize(size terminal.Size) {
	if w != nil {
		w.add(glimpse{size: size})
	}
}

func (w *Watcher) add(g glimpse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g.ms = time.Since(w.begun).Milliseconds()
	w.unseen = append(w.unseen, g)
	if w.bytes += len(g.p); w.bytes > maxUnseen {
		w.look()
	}
}

// look draws what came; mu is held.
func (w *Watcher) look() {
	for _, g := range w.unseen {
		switch {
		case g.keys:
			w.track.Cause(g.ms)
		case g.size.Rows > 0:
			w.track.Resize(g.ms, g.size.Rows, g.size.Cols)
		default:
			w.track.Output(g.ms, g.p)
		}
	}
	w.unseen, w.bytes = w.unseen[:0], 0
}

// Expected returns what says whether the screen shows what it showed before a run of keys; nil for a nil one.
func (w *Watcher) Expected() func(run int) (yes, known bool) {
	if w == nil {
		return nil
	}
	return func(run int) (yes, known bool) {
		if run >= len(w.moments) || w.moments[run].End || w.moments[run].Drawing {
			return false, false
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.look()
		now, drawing := w.track.Screen(time.Since(w.begun).Milliseconds())
		was := &w.moments[run].Screen
		for i := range min(len(was.Rows), len(now.Rows)) {
			now.Rows[i] = maskedAs(was.Rows[i], now.Rows[i])
		}
		now.Title = maskedAs(was.Title, now.Title)
		return !drawing && w.screens.Same(was, &now), true
	}
}

// maskedAs is now with a mask wherever was has one: what is recorded holds no secret, and the program shows it.
func maskedAs(was, now string) string {
	if !strings.ContainsRune(was, Mask) || was == now {
		return now
	}
	a, b := []rune(was), []rune(now)
	for i := range min(len(a), len(b)) {
		if a[i] == Mask {
			b[i] = Mask
		}
	}
	return string(b)
}
