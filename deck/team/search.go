package team

import (
	"context"
	"database/sql"
	"errors"
	"strings"
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
func (d *database) search(ctx context.Context, ask string, q *Query) ([]Hit, error) {
	want := words(ask)
	if len(want) == 0 {
		return nil, ErrNoWords
	}
	where, args := q.where()
	query := "SELECT r.facts, t.what, t.body, " + d.at + " FROM texts t JOIN runs r ON r.seq = (" + d.at + " >> 20) WHERE " + d.matches + " AND " + d.at + " < ? AND " + where +
		" ORDER BY " + d.at + " DESC LIMIT ?"
	match, hits, below := d.quote+strings.Join(want, d.quote+d.rejoin+d.quote)+d.quote, []Hit{}, int64(1)<<62
	for rows := 1; rows > 0 && len(hits) < q.limit(); { // a run may have many such texts: behind a page of them goes the next run
		rows = 0
		last, full := below, q.limit()
		err := d.each(ctx, d.db, query, append(append([]any{match, below}, args...), full), func(scan func(...any) error) error {
			var h Hit
			var place int64
			r, err := scanRun(scan, &h.What, &h.Excerpt, &place)
			if err != nil {
				return err
			}
			rows++
			if run := place >> placeBits << placeBits; run != last && len(hits) < q.limit() {
				h.Run, h.Excerpt, last = *r, excerpt(h.Excerpt, want), run
				hits = append(hits, h)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if below = last; rows < full {
			break
		}
	}
	return hits, nil
}

// index puts the texts of a run in the place of those that it had.
func (d *database) index(ctx context.Context, tx *sql.Tx, seq int64, texts []text) error {
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
func (d *database) forget(ctx context.Context, tx *sql.Tx, seq int64) error {
	_, err := d.exec(ctx, tx, "DELETE FROM texts AS t WHERE "+d.at+" >= ? AND "+d.at+" < ?", seq<<placeBits, (seq+1)<<placeBits)
	return err
}
