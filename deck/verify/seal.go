package verify

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// StateSealed is the state of a finished recording that carries a seal.
const StateSealed = "sealed"

// seal holds the recording against its seal, where it has one or says so. It reads every byte, and so the blobs that it finds whole
// are not read again.
func (c *verifier) seal(rec *recording.Recording) error {
	path := filepath.Join(rec.Dir, seal.FileName)
	half := sealing.HalfSealed(rec)
	if half {
		c.note("unsealed: it was being sealed when that was interrupted; `tapedeck seal` seals it")
	}
	keys := c.o.Keys
	if len(keys) == 0 {
		var err error
		if keys, err = sealing.TrustedKeys(c.o.ConfigDir); err != nil {
			c.note(fmt.Sprintf("this machine's sealing key: %v", err))
		}
	}
	res, err := seal.Verify(c.ctx, rec.Dir, &seal.VerifyOptions{
		Keys: keys, Witnesses: c.o.Witnesses, ID: rec.Manifest.ID, Blob: c.whole, Progress: func(done, _ int64) { c.step(int(done - c.bytes)) },
	})
	switch {
	case errors.Is(err, seal.ErrNoSeal) && !rec.Manifest.Sealed:
		c.unsealed(path)
		return nil
	case errors.Is(err, seal.ErrNoSeal):
		c.problemOf(seal.CodeMissing, path, 0, "the recording says that it is sealed, and its seal is missing: put it back, from a packed copy "+
			"for example; without it nothing proves that the recording is what it was")
		return nil
	case err != nil:
		return err
	}
	if half {
		res.Problems = sealing.ButManifest(res.Problems)
		c.unsealed(path)
	} else {
		c.v.signed(res)
		if c.finished {
			c.v.State = StateSealed
		}
	}
	for i := range res.Problems {
		c.sealProblem(rec, &res.Problems[i])
	}
	return nil
}

// unsealed tells of witnesses and keys that were asked for of a recording that has no seal, or says so.
func (c *verifier) unsealed(path string) {
	if len(c.o.Keys)+len(c.o.Witnesses) > 0 {
		c.problemOf(seal.CodeMissing, path, 0, "it is not sealed, and a key was asked for: `tapedeck seal` seals it")
	}
}

func (v *Verification) signed(res *seal.Result) {
	v.Signer, v.SignerKnown = res.Signer.String(), res.SignerKnown
	v.Unknown = append(v.Unknown, res.Unknown...)
	for _, w := range res.Cosignatures {
		v.Cosigned = append(v.Cosigned, Cosigned{w.Witness.String(), w.Time})
	}
}

// whole takes a blob that the seal's verifying found whole for read.
func (c *verifier) whole(store string, d cas.Digest) {
	if store == recording.TapeName+".cas" && !c.seen[d] {
		c.seen[d] = true
		c.v.Blobs++
	}
}

func (c *verifier) problemOf(code seal.Code, path string, line int, format string, args ...any) {
	c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: line, Message: fmt.Sprintf(format, args...), Code: string(code)})
}

// sealProblem tells of what a seal found. Of a blob whatever names it tells more, and is asked first: see unsaid.
func (c *verifier) sealProblem(rec *recording.Recording, p *seal.Problem) {
	store := recording.TapeName + ".cas/"
	if d, err := cas.Parse(strings.TrimPrefix(p.Path, store)); err == nil && strings.HasPrefix(p.Path, store) {
		if p.Code == seal.CodeBlob || p.Code == seal.CodeMissing {
			c.blobs = append(c.blobs, sealedBlob{d, *p})
			return
		}
	}
	text := p.Message
	if p.Code == seal.CodeSigner {
		text += "; if you know who that is, name the key: tapedeck verify --key FILE"
	}
	c.problemOf(p.Code, filepath.Join(rec.Dir, filepath.FromSlash(p.Path)), int(p.Line), "%s", text)
}

// A sealedBlob is a blob that is not what was sealed.
type sealedBlob struct {
	digest cas.Digest
	p      seal.Problem
}

// unsaid tells of the blobs that are not what was sealed, but for those that the tape, the tree or the store told of.
func (c *verifier) unsaid(rec *recording.Recording) {
	var said strings.Builder
	for _, p := range c.v.Problems {
		said.WriteString(p.Message)
		said.WriteByte('\n')
	}
	for _, b := range c.blobs {
		if !strings.Contains(said.String(), b.digest.String()) {
			c.problemOf(b.p.Code, filepath.Join(rec.Dir, filepath.FromSlash(b.p.Path)), 0, "%s", b.p.Message)
		}
	}
}
