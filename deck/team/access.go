package team

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// Access is what people and CI do with the runs of a store: a Store gives it to who has the keys of its database, package remote to who has a token
// of its server.
type Access interface {
	Name() string
	Close() error
	Push(ctx context.Context, rec *recording.Recording, o *PushOptions) (run *Run, there bool, err error)
	Pull(ctx context.Context, project, id, file string, progress func(done, total int64)) (*Run, error)
	// Blob gives n bytes of the packed recording of a run from an offset on, all that follow where n is less than 0. Nobody has hashed them.
	Blob(ctx context.Context, run *Run, from, n int64) (io.ReadCloser, error)
	Find(ctx context.Context, project, id string) (*Run, error)
	Runs(ctx context.Context, q *Query) ([]Run, error)
	Search(ctx context.Context, text string, q *Query) ([]Hit, error)
	Verdicts(ctx context.Context, project string, ids []string) (map[string][]Verdict, error)
	Verdict(ctx context.Context, project, id, tapedeck, program string) (*Verdict, error)
	Remove(ctx context.Context, project, id, why string, signer note.Signer) (*Tombstone, error)
	Expired(ctx context.Context, project string, r *Rule) ([]Expired, error)
	Prune(ctx context.Context, project string, r *Rule, signer note.Signer) ([]*Tombstone, error)
	Tag(ctx context.Context, project, id string, add, remove []string) (*Run, error)
	Hold(ctx context.Context, project, id, by, why string) (*Run, error)
	Release(ctx context.Context, project, id string) (*Run, error)
	Sweep(ctx context.Context) ([]cas.Digest, error)
}

// Roles of a token. None has another one within it.
const (
	RolePush   = "push"   // push, tag
	RoleRead   = "read"   // list, search, show, pull
	RoleReplay = "replay" // put, list, cancel and retry jobs
	RoleAdmin  = "admin"  // purge, gc, hold, and push anew what was purged
)

// Roles are all that there are.
var Roles = []string{RolePush, RoleRead, RoleReplay, RoleAdmin}

// accessTables are those of tokens and of the audit, given what makes a number for each new row, and triggers that have the audit only grow.
func accessTables(number, grows string) string {
	return `
CREATE TABLE tokens (
	name    TEXT PRIMARY KEY, -- nobody else's, also once it is revoked: the audit has it
	id      TEXT NOT NULL UNIQUE, -- the beginning of the token, which is no secret
	digest  TEXT NOT NULL,    -- the SHA-256 of the whole, which is 128 random bits or more
	project TEXT NOT NULL,
	roles   TEXT NOT NULL,    -- with commas between them
	made    BIGINT NOT NULL,  -- ms since 1970, as all times here by the database's clock
	expires BIGINT NOT NULL,  -- 0 for never
	revoked BIGINT NOT NULL   -- 0 for not
);
CREATE TABLE audit (
	seq     ` + number + `,
	at      BIGINT NOT NULL,
	project TEXT NOT NULL,
	token   TEXT NOT NULL, -- the name of who did it; '' for who has the keys of the database
	what    TEXT NOT NULL,
	about   TEXT NOT NULL  -- the id of a run, the name of a token, or ''
);
` + grows
}

const (
	sqliteGrows = `
CREATE TRIGGER audit_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit only grows'); END;
CREATE TRIGGER audit_removed BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit only grows'); END;
`
	postgresGrows = `
CREATE FUNCTION tapedeck_audit_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the audit only grows'; END $$;
CREATE TRIGGER audit_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION tapedeck_audit_grows();
`
)

// A Token lets who shows it do with the runs of one project what its roles say.
type Token struct {
	Name    string     `json:"name"`
	Project string     `json:"project"`
	Roles   []string   `json:"roles"`
	MadeAt  time.Time  `json:"made_at"`
	Expires *time.Time `json:"expires_at"`
	Revoked *time.Time `json:"revoked_at"`
}

// May reports whether the token has a role.
func (t *Token) May(role string) bool { return slices.Contains(t.Roles, role) }

// ErrNoToken is returned for what is no token, or one that was revoked or is over its time: nobody is told which.
var ErrNoToken = errors.New("the store's server does not know this token")

var tokenName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// tokenPrefix begins each token, so that scanners of secrets find it.
const tokenPrefix = "tapedeck_"

// access has the tokens of a store, and the audit of what was done.
type access struct{ db *database }

// Grant makes a token with the Name, Project and Roles of t that lives for so long, 0 for ever. The secret is kept nowhere.
func (s *access) Grant(ctx context.Context, t *Token, life time.Duration) (secret string, err error) {
	if !tokenName.MatchString(t.Name) {
		return "", fmt.Errorf("%q: want a name of 64 letters, digits and .-_@ at most", t.Name)
	}
	if len(t.Roles) == 0 || life < 0 {
		return "", errors.New("a token wants a role, and a life that is not over")
	}
	for _, role := range t.Roles {
		if !slices.Contains(Roles, role) {
			return "", fmt.Errorf("role %q: want some of %s", role, strings.Join(Roles, ", "))
		}
	}
	id := strings.ToLower(rand.Text()[:10])
	secret = tokenPrefix + id + "_" + rand.Text() + rand.Text()
	return secret, s.db.within(ctx, func(tx *sql.Tx) error {
		n, err := s.db.exec(ctx, tx, "INSERT INTO tokens (name, id, digest, project, roles, made, expires, revoked) SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), "+
			s.db.nowMS+", CASE CAST(? AS BIGINT) WHEN 0 THEN 0 ELSE "+s.db.nowMS+" + CAST(? AS BIGINT) END, 0 WHERE 1 = 1 ON CONFLICT (name) DO NOTHING",
			t.Name, id, digestOf(secret), t.Project, strings.Join(t.Roles, ","), life.Milliseconds(), life.Milliseconds())
		if err == nil && n == 0 {
			err = fmt.Errorf("there is, or was, a token called %s: the audit would not tell them apart", t.Name)
		}
		if err != nil {
			return err
		}
		return s.db.audit(ctx, tx, t.Project, "grant", t.Name)
	})
}

func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Revoke ends a token. What it has under way ends by itself.
func (s *access) Revoke(ctx context.Context, name string) error {
	return s.db.within(ctx, func(tx *sql.Tx) error {
		var project string
		there, err := s.db.one(ctx, tx, "UPDATE tokens SET revoked = "+s.db.nowMS+" WHERE name = ? AND revoked = 0 RETURNING project", []any{name}, &project)
		if err == nil && !there {
			err = fmt.Errorf("no token that is not revoked is called %s", name)
		}
		if err != nil {
			return err
		}
		return s.db.audit(ctx, tx, project, "revoke", name)
	})
}

// Tokens are all that were ever made, the first first.
func (s *access) Tokens(ctx context.Context) ([]Token, error) {
	out := []Token{}
	err := s.db.each(ctx, s.db.db, "SELECT name, project, roles, made, expires, revoked FROM tokens ORDER BY made, name", nil, func(scan func(...any) error) error {
		t, err := scanToken(scan)
		if err == nil {
			out = append(out, *t)
		}
		return err
	})
	return out, err
}

func scanToken(scan func(...any) error, more ...any) (*Token, error) {
	var roles string
	var made, expires, revoked int64
	t := new(Token)
	err := scan(append([]any{&t.Name, &t.Project, &roles, &made, &expires, &revoked}, more...)...)
	t.Roles, t.MadeAt, t.Expires, t.Revoked = strings.Split(roles, ","), time.UnixMilli(made).UTC(), orNever(expires), orNever(revoked)
	return t, err
}

func orNever(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	at := time.UnixMilli(ms).UTC()
	return &at
}

// Identify says whose token a secret is; ErrNoToken for nobody's, now. It compares in constant time what is secret.
func (s *access) Identify(ctx context.Context, secret string) (*Token, error) {
	rest, _ := strings.CutPrefix(secret, tokenPrefix)
	id, _, _ := strings.Cut(rest, "_")
	t, want, now := new(Token), strings.Repeat("-", 64), int64(0) // which is no digest
	err := s.db.each(ctx, s.db.db, "SELECT name, project, roles, made, expires, revoked, digest, "+s.db.nowMS+" FROM tokens WHERE id = ?", []any{id}, func(scan func(...any) error) (err error) {
		t, err = scanToken(scan, &want, &now)
		return err
	})
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(digestOf(secret)), []byte(want)) != 1 || t.Revoked != nil || t.Expires != nil && t.Expires.UnixMilli() <= now {
		return nil, ErrNoToken
	}
	return t, nil
}

// An Act is a line of the audit.
type Act struct {
	At      time.Time `json:"at"` // by the database's clock
	Project string    `json:"project"`
	Token   string    `json:"token"` // the name of who did it; "" for who has the keys of the database
	What    string    `json:"what"`  // push, pull, show, read, list, search, verdicts, tag, hold, release, purge, put-jobs, cancel, retry, jobs, result, grant, revoke
	About   string    `json:"about"` // the id of a run, the name of a token, the number of a job, or ""
}

type actorKey struct{}

// As has what is done under a context stand in the audit under the name of a token.
func As(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// audit adds a line to the audit.
func (d *database) audit(ctx context.Context, on querier, project, what, about string) error {
	name, _ := ctx.Value(actorKey{}).(string)
	_, err := d.exec(ctx, on, "INSERT INTO audit (at, project, token, what, about) VALUES ("+d.nowMS+", ?, ?, ?, ?)", project, name, what, clean(about))
	return err
}

// Audit adds a line to the audit: of what the store does not write down by itself, which is all but push, tag, hold, release, purge, grant and revoke.
func (s *access) Audit(ctx context.Context, project, what, about string) error {
	return s.db.audit(ctx, s.db.db, project, what, about)
}

// Acts are the lines of the audit of a project, of all where it is nil, the last so many, in the order in which they were written.
func (s *access) Acts(ctx context.Context, project *string, limit int) ([]Act, error) {
	query, args := "SELECT at, project, token, what, about FROM audit", []any{}
	if project != nil {
		query, args = query+" WHERE project = ?", append(args, *project)
	}
	out := []Act{}
	err := s.db.each(ctx, s.db.db, query+" ORDER BY seq DESC LIMIT ?", append(args, limit), func(scan func(...any) error) error {
		var a Act
		var at int64
		err := scan(&at, &a.Project, &a.Token, &a.What, &a.About)
		a.At = time.UnixMilli(at).UTC()
		out = append(out, a)
		return err
	})
	slices.Reverse(out)
	return out, err
}

// maxReason is how long the reason of a hold or a tombstone is at most, in bytes.
const maxReason = 1 << 10

// ErrReason is wrapped by the refusal of a reason.
var ErrReason = errors.New("no reason that the store takes")

// CheckReason refuses what cannot be the reason of a hold or a tombstone.
func CheckReason(why string) error {
	if len(why) > maxReason {
		return fmt.Errorf("%w: want %d bytes at most", ErrReason, maxReason)
	}
	return nil
}

// Receive writes the packed recording of a run to a file that is not there yet. The file is there whole, with the bytes that were pushed, or not
// at all.
func (r *Run) Receive(body io.Reader, file string, progress func(done, total int64)) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	hash := cas.NewHasher()
	_, err = io.Copy(io.MultiWriter(f, hash), &counted{io.LimitReader(body, r.Size+1), 0, r.Size, progress})
	if err = errors.Join(err, f.Close()); err == nil && hash.Sum() != r.Digest {
		err = &cas.CorruptError{Digest: r.Digest, Got: hash.Sum()}
	}
	if err != nil {
		os.Remove(file)
		return fmt.Errorf("the blob of %s: %w", r.ID, err)
	}
	return nil
}
