package team

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// The place of a text is the number of its run and its own number in it.
const placeBits = 20

const maxPlaces = 1 << placeBits // texts of a run

// A Hit is a run that has what was asked for.
type Hit struct {
	Run     Run    `json:"run"`
	What    string `json:"what"`    // command, conversation, file, output
	Excerpt string `json:"excerpt"` // the text around the first word
}

// ErrNoWords is returned for a search that asks for no word.
var ErrNoWords = errors.New("expected a word to look for: letters and digits")

// search finds runs one text of which has all words that are asked for, what was pushed last first.
func (d *runTable) search(ctx context.Context, ask string, q *Query) ([]Hit, error) {
	f := &finder{database: d.database, want: words(ask), q: q, hits: []Hit{}, below: 1 << 62}
	if len(f.want) == 0 {
		return nil, ErrNoWords
	}
	var chosen int
	from, args := q.chosen()
	if _, err := d.one(ctx, d.db, "SELECT COUNT(*) FROM (SELECT r.seq"+from+") n", append(args, fewRuns+1), &chosen); err != nil {
		return nil, err
	}
	if chosen <= fewRuns {
		return f.hits, f.few(ctx)
	}
	if d.recent > 0 {
		var newest int64
		if _, err := d.one(ctx, d.db, "SELECT COALESCE(MAX(seq), 0) FROM runs", nil, &newest); err != nil {
			return nil, err
		}
		if err := f.pages(ctx, max(0, newest-d.recent)<<placeBits, d.at); err != nil {
			return nil, err
		}
	}
	return f.hits, f.pages(ctx, 0, d.order)
}

// fewRuns are looked through one by one: words may be those of all texts.
const fewRuns = 50

// few looks through the few runs that a query chooses. + 0 has SQLite begin with the first text of each: it finds the last by walking over all runs.
func (f *finder) few(ctx context.Context) error {
	from, args := f.q.chosen()
	query := "SELECT " + columns + ", t.what, t.body FROM (SELECT n.seq, (SELECT MAX(" + f.at + " + 0) FROM texts t WHERE " + f.matchesAt + " AND " + f.at + " >= n.seq * 1048576 AND " +
		f.at + " < (n.seq + 1) * 1048576) AS place FROM (SELECT r.seq" + from + ") n) c JOIN runs r ON r.seq = c.seq JOIN texts t ON " + f.at + " = c.place ORDER BY r.seq DESC"
	return f.planned(ctx, query, append(append([]any{f.match()}, args...), fewRuns), func(scan func(...any) error) error {
		var h Hit
		r, err := scanRun(scan, &h.What, &h.Excerpt)
		if err == nil && len(f.hits) < f.q.limit() {
			err = f.add(r, h)
		}
		return err
	})
}

func (f *finder) match() string {
	return f.quote + strings.Join(f.want, f.quote+" "+f.quote) + f.quote
}

// A finder is one search under way.
type finder struct {
	*database
	want  []string
	q     *Query
	hits  []Hit
	below int64 // texts from here on have been looked at
	bytes int   // of the runs
}

// add adds a hit, of which Excerpt is the whole text yet.
func (f *finder) add(r *Run, h Hit) error {
	h.Run, h.Excerpt = *r, excerpt(h.Excerpt, f.want)
	f.hits, f.bytes = append(f.hits, h), f.bytes+r.row
	return f.q.holds(f.bytes)
}

// pages looks at the texts from a place on, in an order that is that of their places. A run may have many that fit: behind a page of them goes
// the next run.
func (f *finder) pages(ctx context.Context, from int64, order string) error {
	where, args := f.q.where()
	query := "SELECT " + columns + ", t.what, t.body, " + f.at + " FROM texts t JOIN runs r ON r.seq = (" + f.at + " >> 20) WHERE " + f.matches + " AND " + f.at + " < ? AND " + f.at + " >= ? AND " +
		where + " ORDER BY " + order + " DESC LIMIT ?"
	for len(f.hits) < f.q.limit() {
		rows, last := 0, f.below
		err := f.planned(ctx, query, append(append([]any{f.match(), f.below, from}, args...), f.q.limit()), func(scan func(...any) error) error {
			var h Hit
			var place int64
			r, err := scanRun(scan, &h.What, &h.Excerpt, &place)
			if err != nil {
				return err
			}
			rows++
			if run := place >> placeBits << placeBits; run != last && len(f.hits) < f.q.limit() {
				last = run
				return f.add(r, h)
			}
			return nil
		})
		if f.below = last; err != nil {
			return err
		}
		if rows < f.q.limit() {
			f.below = min(f.below, max(from, 1))
			return nil
		}
	}
	return nil
}

// planned is each in a transaction of its own, where the dialect asks for something before.
func (f *finder) planned(ctx context.Context, query string, args []any, row func(scan func(...any) error) error) error {
	if f.plan == "" {
		return f.each(ctx, f.db, query, args, row)
	}
	return f.within(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, f.plan); err != nil {
			return err
		}
		return f.each(ctx, tx, query, args, row)
	})
}

// index puts the texts of a run in the place of those that it had.
func (d *runTable) index(ctx context.Context, tx *sql.Tx, seq int64, texts []text) error {
	if err := d.forget(ctx, tx, seq); err != nil {
		return err
	}
	add := "INSERT INTO texts (rowid, what, body) VALUES (?, ?, ?)"
	if d.dialect == postgres {
		add = "INSERT INTO texts (place, what, body, words) VALUES (?, ?, ?, to_tsvector('simple', ?))"
	}
	s, err := tx.PrepareContext(ctx, d.sql(add))
	if err != nil {
		return err
	}
	defer s.Close()
	for n, t := range texts[:min(len(texts), maxPlaces)] {
		args := []any{seq<<placeBits | int64(n), t.what, t.body}
		if d.dialect == postgres {
			args = append(args, strings.Join(words(t.body), " "))
		}
		if _, err := s.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the texts of a run.
func (d *runTable) forget(ctx context.Context, tx *sql.Tx, seq int64) error {
	_, err := d.exec(ctx, tx, "DELETE FROM texts AS t WHERE "+d.at+" >= ? AND "+d.at+" < ?", seq<<placeBits, (seq+1)<<placeBits)
	return err
}

// The bounds of what is searched of a run: of one text, which is cut into pieces, and of all, in bytes.
const (
	maxPiece = 64 << 10
	maxTexts = 8 << 20
)

// A text is what can be found in a run.
type text struct{ what, body string }

// textsOf are the texts of a recording; more says that there are others, beyond maxTexts.
func textsOf(rec *recording.Recording) (out []text, more bool, err error) {
	left := maxTexts
	err = account.Texts(rec, func(what, body string) bool {
		for _, piece := range pieces(clean(body)) {
			if left -= len(piece); left < 0 {
				more = true
				return false
			}
			out = append(out, text{what, piece})
		}
		return true
	})
	return out, more, err
}

// pieces cuts a text where a word ends, if one does.
func pieces(s string) (out []string) {
	for len(s) > maxPiece {
		at := maxPiece
		for !utf8.RuneStart(s[at]) {
			at--
		}
		if i := strings.LastIndexFunc(s[:at], func(r rune) bool { return !isWord(r) }); i > 0 {
			at = i
		}
		out, s = append(out, s[:at]), s[at:]
	}
	if strings.ContainsFunc(s, isWord) {
		out = append(out, s)
	}
	return out
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// words are those of a text, in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !isWord(r) })
}

// The excerpt of a text that a hit has: so many bytes before its first word, and behind it.
const before, behind = 60, 140

// excerpt is where the first of some words stands in a text, on one line.
func excerpt(body string, want []string) string {
	from, within := 0, false
	for i, r := range body {
		if !within && isWord(r) && hasWord(body[i:], want) {
			from = i
			break
		}
		within = isWord(r)
	}
	begin, end := max(0, from-before), min(len(body), from+behind)
	for begin > 0 && !utf8.RuneStart(body[begin]) {
		begin--
	}
	for end < len(body) && !utf8.RuneStart(body[end]) {
		end++
	}
	out := strings.Join(strings.Fields(body[begin:end]), " ")
	if begin > 0 {
		out = "…" + out
	}
	if end < len(body) {
		out += "…"
	}
	return out
}

// hasWord reports whether a text begins with one of some words.
func hasWord(s string, want []string) bool {
	end := strings.IndexFunc(s, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(s)
	}
	for _, w := range want {
		if strings.ToLower(s[:end]) == w {
			return true
		}
	}
	return false
}
