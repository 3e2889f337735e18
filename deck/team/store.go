// Package team keeps recordings where many machines find them: what is known of each in a database, its bytes as a blob.
//
// A database is SQLite (sqlite:///PATH) or PostgreSQL (postgres://…), blobs lie in a directory (file:///PATH) or in a bucket
// (s3://BUCKET/PREFIX?endpoint=URL&region=NAME, with the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or of ~/.aws/credentials). Each goes
// with each. Who has their keys uses a Store; package remote gives it to others, by tokens.
//
// A run is pushed as package library packs it: one file, named by the BLAKE3-256 of its bytes. Its row says what a list shows; beside it stand its
// texts, as they were scrubbed: prompts, answers, arguments and results of tools, names of files, output, the command line.
//
// Order of a push: the blob is claimed and put, then row and texts are added and the claim goes, in one transaction. So a run is there whole or
// not at all, and one that was acknowledged is there. Who is killed leaves a claim and perhaps a blob, which Sweep takes away.
//
// The database has a row of each blob that it brought, and deletes no other: two databases may have one place of blobs, if they have no run in
// common. Who holds the claim of a blob is alone with it, be it a push or a sweep: it is deleted only by who has its claim, and has seen since that
// no run has it. A claim that nobody has renewed for ClaimAge is dead; its holder stops before, and who takes it over makes the old holder's
// transaction fail. Times of claims are the database's alone, for clocks of machines differ.
//
// A search asks for words: of a text that has all of them, in either case. A word is a run of letters and digits.
//
// Remove takes every byte of a run: its row, its texts, its words in the index, its verdicts, its blob where no other run has the same. SQLite
// overwrites what it deletes and empties its journal; PostgreSQL rewrites the tables (VACUUM FULL), but keeps its own log of writes as long as it is
// set to. What stays is a tombstone: the id, when and why, signed by the machine's key.
//
// Verdicts are what workers found (package queue, which has tables of its own beside these): one for each run, version of tapedeck and version of
// the program. One of other bytes than the run has now is not given.
//
// A token is for one project, and says which of the roles its holder has. The database has its digest alone. The audit has who pushed, purged, made and
// revoked, in the transaction that did; whoever gives a Store to others adds who read (Audit). Its lines are neither changed nor removed, and hold
// nothing of a run but its id.
//
// Tables are made and changed by migrations, in order; a database of a newer version is refused.
//
// Goals: no acknowledged run is lost, nothing is half there, what failed is done by doing it again. Not goals: replaying, keeping out who has the keys, secrets: what
// is pushed was scrubbed when it was recorded.
package team

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// A Store keeps runs. It may be used by several goroutines, and by several processes on several machines at once.
type Store struct {
	access
	workers

	db    *runTable
	blobs Blobs
	name  string
	runs  string // the URL of the database, which may hold a password
}

// Open opens a store by the URLs of its database and its blobs.
func Open(ctx context.Context, runs, blobs string) (*Store, error) {
	d, err := openDatabase(ctx, runs)
	if err != nil {
		return nil, err
	}
	b, err := OpenBlobs(ctx, blobs)
	if err != nil {
		d.db.Close()
		return nil, err
	}
	u, err := url.Parse(runs)
	if err != nil {
		return nil, err
	}
	return &Store{access{d}, workers{d}, &runTable{d}, b, shown(u), runs}, nil
}

// Name is the URL of the database without what may be a secret.
func (s *Store) Name() string { return s.name }

// Close ends what the store holds open.
func (s *Store) Close() error { return s.db.db.Close() }

// ErrRemoved is wrapped by the refusal of a run that was removed from the store.
var ErrRemoved = errors.New("was removed from the store")

// ErrNoRun is wrapped by what is said of a run that the store does not have.
var ErrNoRun = errors.New("no such run in the store")

// ErrUnfit is wrapped by the refusal of a file that holds no recording, or one that PushPacked does not take.
var ErrUnfit = errors.New("this is no packed recording that the store takes")

// PushOptions say how Push works. Nil and zero work.
type PushOptions struct {
	Project  string
	Again    bool                    // also what was removed once
	Tags     []string                // that the run is given, beside those that it has
	Progress func(done, total int64) // bytes of the packed recording that went into the store
}

// Packed packs a recording into a temporary file, which clean removes; it is not nil where err is nil.
func (o *PushOptions) Packed(ctx context.Context, rec *recording.Recording) (file string, p *library.Packing, clean func(), err error) {
	temp, err := recording.NewTemp(os.TempDir(), library.OpenPrefix)
	if err != nil {
		return "", p, nil, err
	}
	clean = func() { _ = temp.Remove() } // else the next command does
	file = filepath.Join(temp.Dir, "packed")
	if p, err = library.Pack(ctx, rec, file, nil); err != nil {
		clean()
		return "", p, nil, err
	}
	return file, p, clean, nil
}

// Push adds a recording to the store, or puts it in the place of what has its id. It says whether the very same was there already.
func (s *Store) Push(ctx context.Context, rec *recording.Recording, o *PushOptions) (run *Run, there bool, err error) {
	if o == nil {
		o = new(PushOptions)
	}
	if err := CheckTags(o.Tags...); err != nil {
		return nil, false, err
	}
	file, p, clean, err := o.Packed(ctx, rec)
	if err != nil {
		return nil, false, err
	}
	defer clean()
	run = runOf(rec, o.Project)
	run.Size, run.Table = p.Size, p.Table
	if run.Digest, err = cas.Parse(p.Digest); err != nil {
		return nil, false, err
	}
	there, err = s.enter(ctx, rec, run, file, o)
	return run, there, err
}

var goodID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// enter adds a run that a file holds the packed recording of.
func (s *Store) enter(ctx context.Context, rec *recording.Recording, run *Run, file string, o *PushOptions) (there bool, err error) {
	if !goodID.MatchString(run.ID) {
		return false, fmt.Errorf("%w: its id %.80q is not one of letters, digits, dots and -_, 128 at most", ErrUnfit, run.ID)
	}
	texts, more, err := textsOf(rec)
	if err != nil {
		return false, err
	}
	run.Unlisted = more
	return s.add(ctx, run, texts, file, o)
}

// add brings the blob of a run, then its row and texts.
func (s *Store) add(ctx context.Context, run *Run, texts []text, file string, o *PushOptions) (there bool, err error) {
	if !o.Again {
		if err := s.db.refuseRemoved(ctx, s.db.db, run.Project, run.ID); err != nil {
			return false, err
		}
	}
	c, err := s.db.claim(ctx, run.Digest)
	if err != nil {
		return false, err
	}
	defer c.release()
	old, err := s.db.exactly(ctx, run.Project, run.ID)
	if err != nil {
		return false, err
	}
	if old != nil && old.Hold != nil && old.Digest != run.Digest {
		return false, old.Hold.refuse(run.ID)
	}
	if size, err := s.blobs.Stat(ctx, run.Digest); old != nil && old.Digest == run.Digest && err == nil && size == run.Size && !o.Again {
		*run = *old
		if len(o.Tags) > 0 {
			if old, err = s.Tag(ctx, run.Project, run.ID, o.Tags, nil); err == nil {
				*run = *old
			}
		}
		return true, err
	}
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	put := s.blobs.Put
	if o.Again {
		put = s.blobs.Replace
	}
	if err := put(c.ctx, run.Digest, run.Size, func() io.Reader { return &counted{io.NewSectionReader(f, 0, run.Size), 0, run.Size, o.Progress} }); err != nil {
		return false, fmt.Errorf("the blob of %s: %w", run.ID, c.cause(err))
	}
	run.PushedAt = time.Now().UTC().Truncate(time.Millisecond)
	err = s.db.within(ctx, func(tx *sql.Tx) error {
		had, digest, err := s.db.lockRun(ctx, tx, run.Project, run.ID)
		if err == nil && had != 0 && digest != run.Digest.String() {
			err = s.db.refuseHeld(ctx, tx, run.ID, had)
		}
		var seq int64
		if err == nil {
			seq, err = s.db.put(ctx, tx, run) // which waits for who removes the run
		}
		if err == nil && !o.Again {
			err = s.db.refuseRemoved(ctx, tx, run.Project, run.ID)
		}
		if err == nil {
			err = s.db.index(ctx, tx, seq, texts)
		}
		if err == nil {
			err = s.db.tag(ctx, tx, run.Project, seq, o.Tags)
		}
		if err == nil {
			err = c.end(ctx, tx)
		}
		if err == nil {
			err = s.db.audit(ctx, tx, run.Project, "push", run.ID)
		}
		return err
	})
	if err == nil {
		if old, err := s.db.exactly(ctx, run.Project, run.ID); err == nil && old != nil { // with the tags that it had
			*run = *old
		}
	}
	return false, err
}

// Counted is a reader that tells how much was read of it; progress may be nil.
func Counted(r io.Reader, total int64, progress func(done, total int64)) io.Reader {
	return &counted{r, 0, total, progress}
}

// counted says how much was read of a file.
type counted struct {
	r           io.Reader
	done, total int64
	progress    func(done, total int64)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if c.done += int64(n); c.progress != nil {
		c.progress(c.done, c.total)
	}
	return n, err
}

// Runs lists runs, what was pushed last first; what began last, where the query asks for times.
func (s *Store) Runs(ctx context.Context, q *Query) ([]Run, error) { return s.db.runs(ctx, q) }

// Count is how many runs of all projects there are.
func (s *Store) Count(ctx context.Context) (n int, err error) {
	_, err = s.db.one(ctx, s.db.db, "SELECT COUNT(*) FROM runs", nil, &n)
	return n, err
}

// Bytes is how many the packed recordings of all runs have together.
func (s *Store) Bytes(ctx context.Context) (n int, err error) {
	_, err = s.db.one(ctx, s.db.db, "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM runs", nil, &n)
	return n, err
}

// Find returns the run of a project that an id, or the beginning of one, names. The error for none wraps ErrNoRun or ErrRemoved.
func (s *Store) Find(ctx context.Context, project, id string) (*Run, error) {
	run, err := s.db.find(ctx, project, id)
	return s.orNone(ctx, run, err, project, id)
}

// Run returns the run of a project that has an id. The error for none wraps ErrNoRun or ErrRemoved.
func (s *Store) Run(ctx context.Context, project, id string) (*Run, error) {
	run, err := s.db.exactly(ctx, project, id)
	return s.orNone(ctx, run, err, project, id)
}

func (s *Store) orNone(ctx context.Context, run *Run, err error, project, id string) (*Run, error) {
	if err == nil && run == nil {
		err = s.db.noRun(ctx, project, id)
	}
	return run, err
}

// Search finds runs one text of which has all words of a text, what was pushed last first.
func (s *Store) Search(ctx context.Context, text string, q *Query) ([]Hit, error) {
	return s.db.search(ctx, text, q)
}

// Pull writes the packed recording that an id, or the beginning of one, names to a file that is not there yet. The file is there whole, with the
// bytes that were pushed, or not at all.
func (s *Store) Pull(ctx context.Context, project, id, file string, progress func(done, total int64)) (run *Run, err error) {
	if run, err = s.Find(ctx, project, id); err != nil {
		return nil, err
	}
	body, err := s.blobs.Get(ctx, run.Digest, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("the blob of %s: %w", run.ID, err)
	}
	defer body.Close()
	if err := run.Receive(body, file, progress); err != nil {
		return nil, err
	}
	return run, nil
}

// Remove takes every byte of a run from the store and leaves a tombstone, which the signer signs. It can be done again: what an end in the middle
// left behind goes then. A tombstone beside an error says that the run is gone, and what is left of it is not. The error for one on hold wraps
// ErrHeld.
func (s *Store) Remove(ctx context.Context, project, id, why string, signer note.Signer) (*Tombstone, error) {
	run, err := s.db.exactly(ctx, project, id)
	if err != nil {
		return nil, err
	}
	var t *Tombstone
	if run != nil {
		t = &Tombstone{ID: run.ID, Project: project, Digest: run.Digest, Why: why}
		err = s.bury(ctx, t, "", signer)
	} else if t, err = s.db.tombstone(ctx, s.db.db, project, id); err == nil && t == nil {
		err = s.db.noRun(ctx, project, id)
	}
	if err != nil {
		return nil, err
	}
	if _, err = s.Sweep(ctx); err == nil {
		err = s.db.cleanse(ctx)
	}
	return t, err
}

// bury puts a tombstone in the place of a run, if that has its digest still, and the tag; "" for any. What is not in the database still lies there.
func (s *Store) bury(ctx context.Context, t *Tombstone, tag string, signer note.Signer) error {
	t.At = time.Now().UTC().Truncate(time.Second)
	if err := t.sign(signer); err != nil {
		return err
	}
	return s.db.within(ctx, func(tx *sql.Tx) error {
		if err := s.db.bury(ctx, tx, t, tag); err != nil {
			return err
		}
		return s.db.audit(ctx, tx, t.Project, "purge", t.ID)
	})
}

// Sweep deletes blobs that this database brought and no run has any more, returns which, and empties SQLite's journal. What somebody is
// about to push stays.
func (s *Store) Sweep(ctx context.Context) (gone []cas.Digest, err error) {
	unused, err := s.db.unused(ctx)
	for i := 0; i < len(unused) && err == nil; i++ {
		var c *claim
		if c, err = s.db.tryClaim(ctx, unused[i]); c == nil {
			continue
		}
		var dropped bool
		if dropped, err = s.drop(ctx, c); dropped {
			gone = append(gone, unused[i])
		}
		c.release()
	}
	return gone, errors.Join(err, s.db.emptyJournal(ctx))
}

// drop deletes a blob that is claimed, if no run has it.
func (s *Store) drop(ctx context.Context, c *claim) (dropped bool, err error) {
	var one int
	if used, err := s.db.one(ctx, s.db.db, "SELECT 1 FROM runs WHERE digest = ? LIMIT 1", []any{c.digest.String()}, &one); err != nil || used {
		return false, err
	}
	if err := c.hold(ctx); err != nil {
		return false, err
	}
	if err := s.blobs.Delete(c.ctx, c.digest); err != nil {
		return false, c.cause(err)
	}
	return true, c.set(ctx, s.db.db, "DELETE FROM blobs WHERE digest = ? AND owner = ?")
}

// PushPacked is Push of a packed recording, of whose bytes nothing is believed. A verdict of a replay before it was pushed is who pushes' word.
func (s *Store) PushPacked(ctx context.Context, file string, limits packed.Limits, verdict *library.Verdict, o *PushOptions) (run *Run, there bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	hash := cas.NewHasher()
	size, err := io.Copy(hash, f)
	if err != nil {
		return nil, false, err
	}
	temp, err := recording.NewTemp(os.TempDir(), library.OpenPrefix)
	if err != nil {
		return nil, false, err
	}
	defer temp.Remove()
	rec, err := library.Of(temp.Dir).Unpack(ctx, file, &library.UnpackOptions{Output: filepath.Join(temp.Dir, library.UnpackedName), Limits: limits})
	if err != nil {
		return nil, false, unfit(err)
	}
	run = runOf(rec, o.Project)
	run.Digest, run.Size, run.Verdict = hash.Sum(), size, verdict
	if run.Table, err = packed.TableOf(f, size); err != nil { // which Unpack has checked
		return nil, false, err
	}
	there, err = s.enter(ctx, rec, run, file, o)
	return run, there, err
}

// unfit is an error of unpacking: the file's, unless it is the machine's.
func unfit(err error) error {
	if _, ours := errors.AsType[*os.PathError](err); ours || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if over, ok := errors.AsType[*packed.LimitError](err); ok {
		return fmt.Errorf("%w: %v", ErrUnfit, over) //nolint:errorlint // one kind is enough for who is told of it
	}
	return ErrUnfit // the text of the rest names files of this machine
}

// Bound has the store hold no more connections to its database than n: who waits for one waits for a statement, or a transaction.
func (s *Store) Bound(n int) { s.db.db.SetMaxOpenConns(n) }

// Blob implements Access.
func (s *Store) Blob(ctx context.Context, run *Run, from, n int64) (io.ReadCloser, error) {
	return s.blobs.Get(ctx, run.Digest, from, n)
}

// Pool opens connections of its own to the store's database, for a package that has tables of its own there: one of the two. SQLite has one
// writer, so its pool has one connection.
func (s *Store) Pool(ctx context.Context) (*sql.DB, *pgxpool.Pool, error) {
	if s.db.dialect == postgres {
		pool, err := pgxpool.New(ctx, s.runs)
		return nil, pool, err
	}
	u, err := url.Parse(s.runs)
	if err != nil {
		return nil, nil, err
	}
	db, err := openSQLite(pathOf(u))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, nil, err
}
