package files

import (
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
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

// content reads, scrubs and stores a file, of which before is the stamp. was is what a snapshot has there; nil for nothing.
func (j *Journal) content(file reading, before *sight, path string, was *Entry) (fileContent, error) {
	if before.size > j.o.MaxFileSize {
		return fileContent{}, &errSkipped{TooLarge}
	}
	quiet := before.ctime < time.Now().Add(-settleTime).UnixNano() && !file.held()
	b, err := readUpTo(file, before.size, j.o.MaxFileSize)
	if err != nil {
		return fileContent{}, unreadable(err)
	}
	after, err := file.now()
	if err != nil {
		return fileContent{}, unreadable(err)
	}
	out := fileContent{sure: quiet && after.stamp == before.stamp}
	if was != nil && was.Secret != "" && j.o.Scrubber != nil && j.o.Scrubber.KeyedDigest(b) == was.Secret {
		// It may be that this run does not know the secret that makes it one.
		out.kept = keptOf(was)
		out.kept.mode = before.mode
		return out, nil
	}
	stored, secret, err := hideContent(j.o.Scrubber, path, b)
	if err != nil {
		return fileContent{}, err
	}
	out.kept = &kept{size: int64(len(stored)), text: secret, mode: before.mode}
	if len(stored) <= tape.InlineLimit && utf8.Valid(stored) {
		out.text = stored
	}
	out.kept.digest, err = j.put(stored)
	return out, err
}

func (j *Journal) put(b []byte) (cas.Digest, error) {
	if j.o.Store == nil {
		return cas.Sum(b), nil
	}
	return j.o.Store.Put(b)
}
