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

// A claim is that of a blob, which nobody else puts or deletes meanwhile.
type claim struct {
	db     *database
	digest cas.Digest
	owner  string
	ctx    context.Context // done where the claim may be lost
	stop   context.CancelCauseFunc
}

// claim waits until nobody else has the blob.
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

// tryClaim returns nil where somebody else has the blob.
func (d *database) tryClaim(ctx context.Context, digest cas.Digest) (*claim, error) {
	c := &claim{db: d, digest: digest, owner: rand.Text()}
	n, err := d.exec(ctx, d.db, "INSERT INTO blobs (digest, owner, at) VALUES (?, ?, "+d.now+") ON CONFLICT (digest) DO UPDATE"+
		" SET owner = excluded.owner, at = excluded.at WHERE blobs.owner = '' OR blobs.at < "+d.now+" - ?", digest.String(), c.owner, int(ClaimAge.Seconds()))
	if err != nil || n == 0 {
		return nil, err
	}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	go c.renew()
	return c, nil
}

// renew says now and then that somebody is still at work, and ends the work where that cannot be said in time.
func (c *claim) renew() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		switch err := c.hold(c.ctx); {
		case err == nil:
			last = time.Now()
		case errors.Is(err, errLost), time.Since(last) > ClaimAge/2:
			c.stop(errLost)
		}
	}
}

// hold renews the claim; errLost says that somebody else has it.
func (c *claim) hold(ctx context.Context) error {
	return c.set(ctx, c.db.db, "UPDATE blobs SET at = "+c.db.now+" WHERE digest = ? AND owner = ?")
}

// end gives the claim up within a transaction; errLost undoes that.
func (c *claim) end(ctx context.Context, on querier) error {
	return c.set(ctx, on, "UPDATE blobs SET owner = '' WHERE digest = ? AND owner = ?")
}

// set changes the row of the claim.
func (c *claim) set(ctx context.Context, on querier, statement string) error {
	n, err := c.db.exec(ctx, on, statement, c.digest.String(), c.owner)
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// release gives the claim up, if it is still held. A claim that cannot be given up dies of age.
func (c *claim) release() {
	c.stop(nil)
	ctx, stop := context.WithTimeout(context.Background(), renewEvery)
	defer stop()
	_ = c.end(ctx, c.db.db)
}

// cause is why something failed that the claim's end may have ended.
func (c *claim) cause(err error) error {
	if err != nil && errors.Is(context.Cause(c.ctx), errLost) {
		return errLost
	}
	return err
}
