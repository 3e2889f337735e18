package files

import (
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A fileContent is what was read of a file.
type fileContent struct {
	kept *kept
	text []byte // the stored bytes where they may stand in a record; nil else
	sure bool   // the file did not change meanwhile, and what changes it now changes its stamp
}

// settleTime is how long a file must have been left alone for a later change to give it another stamp: file systems stamp
// with a clock that ticks, every 10 ms or oftener where a file can be leased.
const settleTime = 50 * time.Millisecond

// content reads and scrubs a file, of which before is the stamp, and puts it into store. seen is as in taker. was is what a snapshot has there; nil for nothing.
func (j *Journal) content(store cas.Store, file reading, before *sight, path string, was *Entry, seen func(cas.Digest, []byte)) (out fileContent, err error) {
	if before.size > j.o.MaxFileSize {
		return out, &errSkipped{TooLarge}
	}
	quiet := before.ctime < time.Now().Add(-settleTime).UnixNano() && !file.held()
	t := taker{store: store, scrubber: j.o.Scrubber, limit: j.o.MaxFileSize, seen: seen}
	got, err := t.take(file, before.size, path, was)
	if err != nil {
		return out, err
	}
	after, err := file.now()
	if err != nil {
		return out, unreadable(err)
	}
	out.kept = &kept{digest: got.digest, size: got.size, text: got.secret, mode: before.mode, mtime: before.mtime}
	out.text = got.text
	out.sure = quiet && after.stamp == before.stamp
	return out, nil
}
