package deck

import (
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// maxUnseen is how many bytes of output wait to be looked at, where nothing waits to be typed.
const maxUnseen = 256 << 10

// eyes look at the screen of a replay: keys are typed once it shows what it showed when they were typed while recording. A
// program that draws by the clock prints more or less than it had, and is ready all the same.
//
// What is printed is only kept here; the screen is drawn when somebody asks. nil eyes see nothing.
type eyes struct {
	screens *fidelity.Screens
	moments []fidelity.Moment
	begun   time.Time

	mu     sync.Mutex
	unseen []glimpse
	bytes  int
	track  *tracker
}

// A glimpse is output, or a size, and when it came.
type glimpse struct {
	ms   int64
	p    []byte
	size terminal.Size
	keys bool
}

// newEyes returns eyes that know what was seen before each run of keys.
func newEyes(tty *TTY, screens *fidelity.Screens, seen *fidelity.Showing) *eyes {
	size := terminal.Size{Rows: tty.Rows, Cols: tty.Cols}.OrDefault()
	return &eyes{screens: screens, moments: seen.Moments, begun: time.Now(), track: newTracker(size.Rows, size.Cols)}
}

// Write implements io.Writer.
func (e *eyes) Write(p []byte) (int, error) {
	if e != nil {
		e.add(glimpse{p: append([]byte(nil), p...)})
	}
	return len(p), nil
}

// cause says that keys are typed now.
func (e *eyes) cause() {
	if e != nil {
		e.add(glimpse{keys: true})
	}
}

func (e *eyes) resize(size terminal.Size) {
	if e != nil {
		e.add(glimpse{size: size})
	}
}

func (e *eyes) add(g glimpse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g.ms = time.Since(e.begun).Milliseconds()
	e.unseen = append(e.unseen, g)
	if e.bytes += len(g.p); e.bytes > maxUnseen {
		e.look()
	}
}

// look draws what came; mu is held.
func (e *eyes) look() {
	for _, g := range e.unseen {
		switch {
		case g.keys:
			e.track.cause(g.ms)
		case g.size.Rows > 0:
			e.track.resize(g.ms, g.size.Rows, g.size.Cols)
		default:
			e.track.output(g.ms, g.p)
		}
	}
	e.unseen, e.bytes = e.unseen[:0], 0
}

// expected returns what says whether the screen shows what it showed before a run of keys; nil for nil eyes.
func (e *eyes) expected() func(run int) (yes, known bool) {
	if e == nil {
		return nil
	}
	return func(run int) (yes, known bool) {
		if run >= len(e.moments) || e.moments[run].End || e.moments[run].Drawing {
			return false, false
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.look()
		now, drawing := e.track.screen(time.Since(e.begun).Milliseconds())
		was := &e.moments[run].Screen
		for i := range min(len(was.Rows), len(now.Rows)) {
			now.Rows[i] = maskedAs(was.Rows[i], now.Rows[i])
		}
		now.Title = maskedAs(was.Title, now.Title)
		return !drawing && e.screens.Same(was, &now), true
	}
}

// maskedAs is now with a mask wherever was has one: what is recorded holds no secret, and the program shows it.
func maskedAs(was, now string) string {
	if !strings.ContainsRune(was, mask) || was == now {
		return now
	}
	a, b := []rune(was), []rune(now)
	for i := range min(len(a), len(b)) {
		if a[i] == mask {
			b[i] = mask
		}
	}
	return string(b)
}
