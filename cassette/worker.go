package cassette

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// settled is how long a screen must be left alone to be worth a frame at once.
const settled = 50 * time.Millisecond

// A worker is the recorder's goroutine: it alone touches the files, the scrubber and the screen.
type worker struct {
	r     *Recorder
	start time.Time
	files *files
	mask  *tty.Live
	keys  *keys
	texts *texts

	late, lateKeys []tty.Hit // what must be masked where it was written
	sink           *sink
	screen         *screener

	dirty   bool      // something changed since the last frame
	changed time.Time // the last change
	began   time.Time // the first change since the last frame
	flushed time.Time
	hurry   bool
	failed  bool
}

// run works until the recorder closes.
func (w *worker) run() {
	defer close(w.r.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(w.patience())
		select {
		case <-w.r.wake:
			w.linger(timer)
		case <-timer.C:
		}
		b, closing := w.r.take()
		w.do(func() error { return w.batch(b) })
		if closing && len(b.items) == 0 {
			return
		}
		if closing {
			signal(w.r.wake)
		}
	}
}

// dawdle is how long the goroutine waits for more of a burst before it writes.
const dawdle = 2 * time.Millisecond

// linger gives a burst a moment to become one write.
func (w *worker) linger(timer *time.Timer) {
	timer.Reset(dawdle)
	select {
	case <-w.r.plenty:
	case <-timer.C:
	}
}

// do runs f unless an error came before, and keeps the first one. After it the queue is emptied unread, so that nobody waits.
func (w *worker) do(f func() error) {
	if w.failed {
		return
	}
	if err := f(); err != nil {
		w.failed = true
		w.r.fail(err)
	}
}

// patience is how long nothing needs to be done if nothing comes.
func (w *worker) patience() time.Duration {
	wait := time.Hour
	if w.sink.held() > 0 || w.keys.held() > 0 {
		wait = 200 * time.Millisecond
	}
	if w.behind() {
		wait = 0
	}
	if w.dirty && w.r.o.FrameEvery > 0 {
		wait = min(wait, time.Until(w.frameDue()))
	}
	return max(wait, 0)
}

// frameDue is when the next frame should be.
func (w *worker) frameDue() time.Time {
	rest, most := w.changed.Add(settled), w.began.Add(w.r.o.FrameEvery)
	if most.Before(rest) {
		return most
	}
	return rest
}

func (w *worker) behind() bool {
	_, masking := w.mask.Behind()
	return !w.hurry && (masking || w.screen.behind())
}

// batch writes what came, and does what is due.
func (w *worker) batch(b *batch) error {
	w.pace(b)
	data := b.data
	for i := range b.items {
		it := &b.items[i]
		if err := w.item(it, data[:it.n]); err != nil {
			return err
		}
		data = data[it.n:]
	}
	if err := w.passOn(); err != nil {
		return err
	}
	if err := w.catchUp(); err != nil {
		return err
	}
	if err := w.screen.settle(); err != nil {
		return err
	}
	w.frame()
	if w.r.waiting() > 0 && time.Since(w.flushed) < flushEvery {
		return nil
	}
	w.flushed = time.Now()
	return w.files.flush()
}

// flushEvery is how long what is written stays in buffers at most while more comes.
const flushEvery = 50 * time.Millisecond

// pace falls into a hurry when the queue is more than half full, and out of it when it is nearly empty.
// It does not while a frame has a place and is not written: a reader of what a kill leaves would end there.
func (w *worker) pace(b *batch) {
	n := len(b.data)
	switch {
	case n > maxQueued/2 && !w.hurry && !w.screen.waiting() && !slices.ContainsFunc(b.items, func(it item) bool { return it.frame }):
		w.setHurry(true)
	case n < maxQueued/16 && w.hurry:
		w.setHurry(false)
	}
}

func (w *worker) setHurry(on bool) {
	w.hurry = on
	w.mask.Hurry(on)
	w.screen.skip(on)
}

// releaseEvery is how many bytes the masker is given before what it gives back is written.
const releaseEvery = 256 << 10

func (w *worker) item(it *item, data []byte) error {
	switch {
	case it.n > 0:
		w.touch()
		w.sink.expect(it)
		w.mask.Write(data, time.Since(w.start))
		if w.sink.held() > releaseEvery {
			return w.take()
		}
		return nil
	case it.echo != 0:
		w.keys.mask.NoEcho(it.echo == echoOff)
		return nil
	case it.frame:
		w.screen.frameAt(w.sink.expected, it.Timed, it.g)
		return nil
	case it.input != nil:
		if it.input.Kind == KindResize {
			w.touch()
			w.mask.Resize(it.input.Size.Rows, it.input.Size.Cols)
			w.screen.resizeAt(w.sink.expected, *it.input.Size)
		}
		return w.keys.add(it.input, time.Since(w.start))
	}
	payload, err := mapStrings(it.payload, w.texts.mask)
	if err != nil {
		return err
	}
	return w.files.service.line(&ServiceEvent{Timed: it.Timed, Payload: payload, G: it.g})
}

func (w *worker) touch() {
	w.changed = time.Now()
	if !w.dirty {
		w.dirty, w.began = true, w.changed
	}
}

// passOn writes what need not be held any longer.
func (w *worker) passOn() error {
	if err := w.keys.write(w.keys.mask.Take(time.Since(w.start))); err != nil {
		return err
	}
	return w.take()
}

func (w *worker) take() error {
	err := w.release(w.mask.Take(time.Since(w.start)))
	w.found()
	return err
}

// found keeps what the maskers found in bytes that they had passed on.
func (w *worker) found() {
	w.late = append(w.late, w.mask.Late()...)
	w.lateKeys = append(w.lateKeys, w.keys.mask.Late()...)
}

// release writes what the masker has done with.
func (w *worker) release(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if err := w.sink.write(p); err != nil {
		return err
	}
	return w.screen.released(p)
}

// frame takes a place for a frame when one is due. The screen fills it when it has come there.
func (w *worker) frame() {
	if !w.dirty || w.hurry || w.screen.behind() || w.r.o.FrameEvery < 0 || time.Now().Before(w.frameDue()) {
		return
	}
	w.dirty = !w.r.reserveFrame()
}

// catchUpStep is how many bytes are read again between two looks at the queue.
const catchUpStep = 256 << 10

// catchUp reads on what was skipped in a hurry.
func (w *worker) catchUp() error {
	if !w.behind() {
		return nil
	}
	if err := w.files.flush(); err != nil {
		return err
	}
	hits, err := w.mask.CatchUp(w.files.raw.f, catchUpStep)
	if err != nil {
		return err
	}
	w.late = append(w.late, hits...)
	return w.screen.catchUp(w.files.raw.f, catchUpStep)
}

// A sink writes the output and its index. Chunks are announced by expect when they come, and written when their bytes are
// released.
type sink struct {
	files    *files
	whole    hash.Hash
	part     hash.Hash // of the first of the pending, where that came in pieces
	pending  []Chunk
	first    int   // the index of the first pending one
	done     int64 // bytes of the first pending one that were written
	written  int64
	expected int64
}

func newSink(f *files) *sink { return &sink{files: f, whole: sha256.New(), part: sha256.New()} }

// expect announces a chunk.
func (s *sink) expect(it *item) {
	if s.first > 0 && s.first*2 >= len(s.pending) {
		s.pending = s.pending[:copy(s.pending, s.pending[s.first:])]
		s.first = 0
	}
	s.pending = append(s.pending, Chunk{Timed: it.Timed, Offset: s.expected, Length: int64(it.n), G: it.g})
	s.expected += int64(it.n)
}

// held is how many bytes were announced and not written.
func (s *sink) held() int64 { return s.expected - s.written }

// write writes the next bytes of output, and the lines of the chunks that are whole by them.
func (s *sink) write(p []byte) error {
	if err := s.files.raw.write(p); err != nil {
		return err
	}
	s.whole.Write(p)
	s.written += int64(len(p))
	for len(p) > 0 {
		c := &s.pending[s.first]
		n := min(int64(len(p)), c.Length-s.done)
		digest, whole := s.digest(c, p[:n])
		p = p[n:]
		if !whole {
			continue
		}
		s.first++
		c.SHA256 = hex.EncodeToString(digest[:])
		if err := s.files.chunks.line(c); err != nil {
			return err
		}
	}
	return nil
}

// digest takes the next bytes of the chunk c, and returns its digest where these are the last.
func (s *sink) digest(c *Chunk, p []byte) (sum [sha256.Size]byte, whole bool) {
	if s.done == 0 && int64(len(p)) == c.Length {
		return sha256.Sum256(p), true
	}
	s.part.Write(p)
	s.done += int64(len(p))
	if s.done < c.Length {
		return sum, false
	}
	s.part.Sum(sum[:0])
	s.part.Reset()
	s.done = 0
	return sum, true
}

// keys writes the input on. What is typed is held until it is known to be no secret, and what comes behind it with it: lines stay
// in the order of seq.
type keys struct {
	out     *stream
	mask    *tty.Input
	pending []*Input
	done    int // bytes of the first pending one that are masked already
}

func newKeys(out *stream, o *tty.Options) *keys {
	return &keys{out: out, mask: tty.NewInput(o)}
}

// held is how many inputs wait.
func (k *keys) held() int { return len(k.pending) }

// add takes one more.
func (k *keys) add(in *Input, at time.Duration) error {
	k.pending = append(k.pending, in)
	if len(in.Bytes) > 0 {
		k.mask.Write(in.Bytes, at)
	}
	return nil
}

// write writes the inputs whose bytes p completes.
func (k *keys) write(p []byte) error {
	for len(k.pending) > 0 {
		in := k.pending[0]
		n := min(len(in.Bytes)-k.done, len(p))
		if !bytes.Equal(in.Bytes[k.done:k.done+n], p[:n]) {
			in.Key = "" // it may name what was typed
			copy(in.Bytes[k.done:], p[:n])
		}
		k.done += n
		p = p[n:]
		if k.done < len(in.Bytes) {
			return nil
		}
		k.pending, k.done = k.pending[1:], 0
		if err := k.out.line(in); err != nil {
			return err
		}
	}
	return nil
}

// texts masks what is neither output nor input: arguments, events, the final record.
type texts struct {
	o      *tty.Options
	report tty.Report
}

func newTexts(o *tty.Options) *texts { return &texts{o: o} }

func (t *texts) mask(s string) string {
	if s == "" {
		return s
	}
	masked, hits := tty.Text(s, t.o)
	t.report.Count(hits)
	return masked
}

func sortHits(hits []tty.Hit) {
	slices.SortFunc(hits, func(a, b tty.Hit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
}
