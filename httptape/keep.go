package httptape

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// tapeMode is the permission of a tape: a file of a project as any other.
const tapeMode = 0o644

// keep puts what was recorded in the place of the tape.
func (t *Transport) keep() error {
	t.mu.Lock()
	failed, discarded := t.failed, t.discarded
	t.mu.Unlock()
	switch {
	case discarded:
		return nil
	case failed != nil:
		return fmt.Errorf("httptape: the recording failed, %s: %w", t.untouched(), failed)
	}
	records, err := t.refined()
	if err == nil {
		err = t.replace(records)
	}
	if err != nil {
		return fmt.Errorf("httptape: the recording cannot be kept, %s: %w", t.untouched(), err)
	}
	return nil
}

// untouched says what stands at the tape's path where no recording takes its place.
func (t *Transport) untouched() string {
	if _, err := os.Lstat(t.real); errors.Is(err, fs.ErrNotExist) {
		return "there is no " + t.path + " yet"
	}
	return t.path + " is as it was"
}

// refined returns what was recorded as it may be kept, in order of arrival. Each exchange is recorded once more by a scrubber
// that has seen the whole recording: a secret that was learnt late stood in clear until then.
func (t *Transport) refined() ([]*tape.Record, error) {
	records, err := t.work.records()
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r *tape.Record) bool { return t.replayed[arrivalOf(r)] })
	slices.SortFunc(records, func(a, b *tape.Record) int { return cmp.Compare(arrivalOf(a), arrivalOf(b)) })
	opts := &exchange.TapOptions{MaxBody: t.opts.MaxBody}
	for _, r := range records {
		err := exchange.Again(r, t.work.store, t.classifier, t.secrets, opts)
		if err = cmp.Or(err, lost(r)); err != nil {
			ex := tape.ExchangeOf(r.Kind)
			return nil, fmt.Errorf("%s %s: %w", ex.Method, t.secrets.String(ex.URL), err)
		}
	}
	return records, t.settle(records)
}

// lost says why a record does not hold all of its exchange; nil where it does.
func lost(r *tape.Record) error {
	for _, name := range []string{"request_lost", "response_lost"} {
		if why := tape.FieldValue(*tape.Extras(r.Kind), name); why != nil {
			return fmt.Errorf("%s: %s", name, why)
		}
	}
	return nil
}

func arrivalOf(r *tape.Record) uint64 { return tape.ExchangeOf(r.Kind).Arrival }

// records returns what the recorder has written.
func (w *workshop) records() ([]*tape.Record, error) {
	if err := w.rec.Flush(); err != nil {
		return nil, err
	}
	f, err := tape.NewReader(&w.tape, "recording")
	if err != nil {
		return nil, err
	}
	return collect(f.Records())
}

// settle takes out what differs from run to run and says nothing, and numbers the placeholders.
func (t *Transport) settle(records []*tape.Record) error {
	n := bare.NewNumbers(t.secrets.Counts())
	for _, r := range records {
		ex := tape.ExchangeOf(r.Kind)
		r.G, ex.Arrival = 0, 0 // records stand in the order of arrival
		for i := range ex.Stream {
			ex.Stream[i].G = 0
		}
		if err := n.Record(r, t.work.store); err != nil {
			return err
		}
	}
	return nil
}

// replace writes the tape: the blobs first, which change nothing yet, then the tape in one step, then blobs go that nothing
// names any more. Killed in between, the old tape is whole or the new one.
func (t *Transport) replace(records []*tape.Record) error {
	if err := os.MkdirAll(filepath.Dir(t.real), 0o755); err != nil {
		return err
	}
	store, err := cas.OpenDir(t.real+tape.StoreSuffix, nil)
	if err != nil {
		return err
	}
	records, err = t.merged(records, store)
	if err != nil {
		return err
	}
	for i, r := range records {
		r.Seq = uint64(i)
	}
	named, err := t.putBlobs(records, store)
	if err != nil {
		return err
	}
	if err := writeTape(t.real, t.secrets.Rules(), records); err != nil {
		return err
	}
	return sweep(t.real+tape.StoreSuffix, named)
}

// putBlobs brings the blobs of new records into the store beside the tape, and lists all that are named.
func (t *Transport) putBlobs(records []*tape.Record, store *cas.Dir) (map[cas.Digest]bool, error) {
	named := make(map[cas.Digest]bool)
	for _, r := range records {
		for _, p := range tape.Payloads(r.Kind) {
			if p == nil || p.Inline || named[p.Hash] {
				continue
			}
			named[p.Hash] = true
			if err := move(p.Hash, t.work.store, store); err != nil {
				return nil, err
			}
		}
	}
	return named, nil
}

// move copies a blob, unless it is there.
func move(d cas.Digest, from, to cas.Store) error {
	b, err := from.Get(d)
	if _, missing := errors.AsType[*cas.MissingError](err); missing { // of a record that stays
		return nil
	}
	if err == nil {
		_, err = to.Put(b)
	}
	return err
}

// writeTape puts the records in the place of the tape, unless they are what stands there: that another version wrote the same is
// no news to who keeps the tape.
func writeTape(path string, rules int, records []*tape.Record) error {
	h := header(rules)
	if old, err := os.ReadFile(path); err == nil {
		same := *h
		same.Producer = producerOf(old)
		b, err := encoded(&same, records)
		if err != nil || bytes.Equal(b, old) {
			return err
		}
	}
	b, err := encoded(h, records)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, b, &durable.Options{Mode: tapeMode})
}

// encoded returns the bytes of a tape.
func encoded(h *tape.Header, records []*tape.Record) ([]byte, error) {
	var buf bytes.Buffer
	w, err := tape.NewWriter(&buf, h)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if err := w.Append(r); err != nil {
			return nil, err
		}
	}
	err = w.Flush()
	return buf.Bytes(), err
}

// producerOf returns which version of this package says that it wrote a tape; the one that runs where none does.
func producerOf(b []byte) string {
	if f, err := tape.NewReader(bytes.NewReader(b), "tape"); err == nil && strings.HasPrefix(f.Header().Producer, producerName) {
		return f.Header().Producer
	}
	return producer
}

// sweep removes what the tape does not name: the blobs of the one before, and what a killed recording left.
func sweep(dir string, named map[cas.Digest]bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		d, err := cas.Parse(e.Name())
		if (err == nil && !named[d]) || strings.HasPrefix(e.Name(), durable.TempPrefix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if len(named) == 0 {
		_ = os.Remove(dir) // stays where something else lies in it
	}
	return nil
}

// merged returns the records of the tape that is to be: in ModeReplayWithNewEpisodes the old ones and then the new, else the
// new ones. Of a new one that says what an old one says, the old one stands, so that a recording that found nothing new
// changes nothing, whoever made it.
func (t *Transport) merged(records []*tape.Record, store *cas.Dir) ([]*tape.Record, error) {
	old, _, err := readTape(t.real)
	var broken *tape.LoadError
	var unknown *scrub.UnknownRulesError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return records, nil
	case t.mode == ModeRecordOnly && (errors.As(err, &broken) || errors.As(err, &unknown)): // it is replaced
		return records, nil
	case err != nil:
		return nil, err
	case t.mode == ModeReplayWithNewEpisodes:
		return append(old, records...), nil
	}
	queues := make(map[exchange.Key][]*tape.Record)
	for _, r := range old {
		if tape.ExchangeOf(r.Kind) != nil {
			key := exchange.KeyOf(r.Kind, t.classifier)
			queues[key] = append(queues[key], r)
		}
	}
	for i, r := range records {
		key := exchange.KeyOf(r.Kind, t.classifier)
		if q := queues[key]; len(q) > 0 {
			queues[key] = q[1:]
			if t.same(q[0], r) && whole(q[0], store) {
				records[i] = q[0]
			}
		}
	}
	return records, nil
}

// whole reports whether the blobs of a record are there.
func whole(r *tape.Record, store *cas.Dir) bool {
	for _, p := range tape.Payloads(r.Kind) {
		if p == nil || p.Inline {
			continue
		}
		if size, err := store.Size(p.Hash); err != nil || size != p.Len {
			return false
		}
	}
	return true
}

// same reports whether two records of one key say the same: the same answer byte for byte, but for the names of secrets, and
// headers that differ in Date and in what is masked alone. Times, and where the answer was cut into chunks, do not count.
func (t *Transport) same(a, b *tape.Record) bool {
	x, y := tape.ExchangeOf(a.Kind), tape.ExchangeOf(b.Kind)
	return x.Status == y.Status && x.Error == y.Error && sameAnswer(x.Response, y.Response) &&
		slices.Equal(t.headerText(x.RequestHeaders), t.headerText(y.RequestHeaders)) &&
		slices.Equal(t.headerText(x.ResponseHeaders), t.headerText(y.ResponseHeaders)) &&
		sameFields(*tape.Extras(a.Kind), *tape.Extras(b.Kind))
}

func sameAnswer(a, b *tape.Payload) bool {
	if a == nil || b == nil || !a.Inline || !b.Inline {
		return a.Same(b)
	}
	return bytes.Equal(scrub.Renumber([]byte(a.Text)), scrub.Renumber([]byte(b.Text)))
}

// headerText is a header as it compares.
func (t *Transport) headerText(fields []tape.HeaderField) []tape.HeaderField {
	var out []tape.HeaderField
	for _, f := range fields {
		if http.CanonicalHeaderKey(f.Name) != "Date" {
			out = append(out, tape.HeaderField{Name: f.Name, Value: t.classifier.comparable(f.Value)})
		}
	}
	return out
}

// sameFields reports whether two records have the same further keys, in whatever order.
func sameFields(a, b []tape.Field) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(f tape.Field) bool {
		other := tape.FieldValue(b, f.Name)
		return other == nil || !bytes.Equal(scrub.Renumber(f.Value), scrub.Renumber(other))
	})
}
