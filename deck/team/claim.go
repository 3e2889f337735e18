package team

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// ClaimAge is how long a claim lives that nobody renews.
const ClaimAge = time.Minute

const (
	renewEvery = ClaimAge / 4
	claimAgain = 50 * time.Millisecond // between two tries
)

// errLost is returned by a transaction whose claim somebody else has taken over.
var errLost = errors.New("this took so long without a sign that somebody else went on in its place: run the command again")

// A claim is that of a digest. While it is held nobody else puts or deletes its blob.
type claim struct {
	db     *database
	digest cas.Digest
	owner  string
	stop   context.CancelFunc
}

// claim waits until nobody else has the digest.
func (d *database) claim(ctx context.Context, digest cas.Digest) (*claim, error) {
	for {
		c, err := d.tryClaim(ctx, digest)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(claimAgain):
		}
	}
}

// tryClaim returns nil where somebody else has the digest.
func (d *database) tryClaim(ctx context.Context, digest cas.Digest) (*claim, error) {
	c := &claim{db: d, digest: digest, owner: rand.Text()}
	n, err := d.exec(ctx, d.db, "INSERT INTO claims (digest, owner, at) VALUES (?, ?, "+d.now+") ON CONFLICT (digest) DO UPDATE"+
		" SET owner = excluded.owner, at = excluded.at WHERE claims.at < "+d.now+" - ?", digest.String(), c.owner, int(ClaimAge.Seconds()))
	if err != nil || n == 0 {
		return nil, err
	}
	ctx, c.stop = context.WithCancel(ctx)
	go c.renew(ctx)
	return c, nil
}

// renew says now and then that somebody is still at work.
func (c *claim) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = c.hold(ctx) // the next may succeed
		}
	}
}

// hold renews the claim; errLost says that somebody else has it.
func (c *claim) hold(ctx context.Context) error {
	n, err := c.db.exec(ctx, c.db.db, "UPDATE claims SET at = "+c.db.now+" WHERE digest = ? AND owner = ?", c.digest.String(), c.owner)
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// end gives the claim up within a transaction; errLost undoes that.
func (c *claim) end(ctx context.Context, on querier) error {
	n, err := c.db.exec(ctx, on, "DELETE FROM claims WHERE digest = ? AND owner = ?", c.digest.String(), c.owner)
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// release gives the claim up, if it is still held. A claim that cannot be given up dies of age.
func (c *claim) release() {
	c.stop()
	ctx, stop := context.WithTimeout(context.Background(), renewEvery)
	defer stop()
	_ = c.end(ctx, c.db.db)
}
