package files

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Masker gives the digest of content that two recordings compare, with volatile parts masked; *masks.Masker is one.
type Masker interface {
	Digest(b []byte) cas.Digest
}

// RecordOptions says how changes become records. Nil and zero work.
type RecordOptions struct {
	// Masker gives content_digest; nil leaves it out.
	Masker Masker
	// Prefix stands before each path: "" for the work tree, "~/" for HOME, "$TMP/" for the temporary directory.
	Prefix string
}

// place returns the path of a record. One of the work tree that would read as another root's gets "./" before it.
func (o *RecordOptions) place(path string) string {
	if o.Prefix == "" && elsewhere(path) {
		return "./" + path
	}
	return o.Prefix + path
}

// elsewhere reports whether the path of a record lies outside the work tree.
func elsewhere(path string) bool {
	return strings.HasPrefix(path, "~/") || strings.HasPrefix(path, "$TMP/") || strings.HasPrefix(path, "/")
}

// Records turns changes into records of the kinds file_write and file_delete, in the same order, one a path; only Kind
// and Raw are set. A change of mode or attributes alone is a file_write with the same content. The content of a symbolic link is
// its target, that of a directory or FIFO is empty, and a file_delete of one has its mode. A record of a secret file
// has the further key "secret", the keyed digest of the true bytes, one of a path with extended attributes has "xattrs".
//
// The contents are in store, where both snapshots put them. The first error of the store ends the sequence.
func Records(changes []Change, store cas.Store, opts *RecordOptions) iter.Seq2[tape.Record, error] {
	r := &recorder{store: store}
	if opts != nil {
		r.opts = *opts
	}
	return func(yield func(tape.Record, error) bool) {
		for i := range changes {
			c := &changes[i]
			rec, err := r.between(c.Path, c.Before, c.After)
			if err != nil {
				yield(tape.Record{}, fmt.Errorf("files: record of %s: %w", c.Path, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

type recorder struct {
	store cas.Store
	opts  RecordOptions
	hand  inHand
}

// inHand is what is known of one content without asking the store.
type inHand struct {
	digest cas.Digest
	text   []byte     // nil where it is not at hand
	masked cas.Digest // what the Masker gives; zero where it was not asked
}

// between returns the record of a path at which stood before and stands after, each nil for nothing, not both.
func (r *recorder) between(path string, before, after *Entry) (rec tape.Record, err error) {
	var f tape.File
	var raw []byte
	f.Path, raw = tape.SafeString(r.opts.place(path))
	if raw != nil {
		rec.Raw = []tape.RawBytes{{Key: "path", Bytes: raw}}
	}
	if before != nil && !before.isPlace() {
		if f.Before, err = r.payload(before); err != nil {
			return rec, err
		}
	}
	if after == nil {
		f.Extra = secretField(before)
		if before != nil && before.isPlace() {
			f.Mode = before.Mode.Taped()
		}
		rec.Kind = &tape.FileDelete{File: f}
		return rec, nil
	}
	if err := r.content(&f, after); err != nil {
		return rec, err
	}
	rec.Kind = &tape.FileWrite{File: f}
	return rec, nil
}

// content fills in what a file_write says about the new state.
func (r *recorder) content(f *tape.File, e *Entry) error {
	p, err := r.payload(e)
	if err != nil {
		return err
	}
	f.Content, f.ContentHash, f.LenBytes = p, p.Hash, p.Len
	f.Mode = e.Mode.Taped()
	f.Extra = secretField(e)
	if e.Attrs != "" {
		f.Extra = append(f.Extra, tape.Field{Name: attrsKey, Value: []byte(e.Attrs)})
	}
	if r.opts.Masker == nil || f.IsPlace() {
		return nil
	}
	if e.Mode.IsRegular() && r.hand.digest == e.Digest && !r.hand.masked.IsZero() {
		f.ContentDigest = r.hand.masked
		return nil
	}
	if e.Mode.IsLink() {
		f.ContentDigest = r.opts.Masker.Digest([]byte(e.Target))
		return nil
	}
	f.ContentDigest, err = maskedDigest(r.opts.Masker, r.store, e.Digest, e.Size)
	return err
}

// bytesOf returns the content of a file or link.
func (r *recorder) bytesOf(e *Entry) ([]byte, error) {
	if e.Mode.IsRegular() && r.hand.text != nil && r.hand.digest == e.Digest {
		return r.hand.text, nil
	}
	return contentOf(e, r.store)
}

// maskedDigest returns what m gives for a content.
func maskedDigest(m Masker, store cas.Store, d cas.Digest, size int64) (cas.Digest, error) {
	if long, ok := m.(interface {
		DigestReader(r io.Reader) (cas.Digest, error)
	}); ok && size > longFile {
		r, err := store.Open(d)
		if err != nil {
			return cas.Digest{}, err
		}
		defer r.Close()
		return long.DigestReader(r)
	}
	b, done, err := borrowBlob(store, d, size)
	if err != nil {
		return cas.Digest{}, err
	}
	defer done()
	return m.Digest(b), nil
}

// payload returns the payload of a file or link. Only what may stand in the record itself is read.
func (r *recorder) payload(e *Entry) (*tape.Payload, error) {
	switch {
	case e.isPlace():
		return tape.MakePayload(r.store, nil)
	case e.Mode.IsRegular() && e.Size > tape.InlineLimit:
		return &tape.Payload{Hash: e.Digest, Len: e.Size}, nil
	}
	b, err := r.bytesOf(e)
	if err != nil {
		return nil, err
	}
	p := &tape.Payload{Hash: e.Digest, Len: int64(len(b))}
	if e.Mode.IsLink() {
		if p.Hash, err = r.store.Put(b); err != nil {
			return nil, err
		}
	}
	if len(b) <= tape.InlineLimit && utf8.Valid(b) {
		p.Text, p.Inline = string(b), true
	}
	return p, nil
}

const (
	// attrsKey is the key of a file record that has the extended attributes, as Entry.Attrs.
	attrsKey = "xattrs"
	// secretKey is the key of a file record that marks a secret file.
	secretKey = "secret"
	// ignoredKey is that of a path which lies in the work tree but is none of its snapshot's: After, Holds and a patch pass it
	// over, and what records said before of it counts no more.
	ignoredKey = "ignored"
)

// ConversationKey is the key of a file record that numbers the conversation with a server which changed the file.
const ConversationKey = "conversation"

// ConversationOf returns that number; 0 where the program itself made the change, and for other kinds.
func ConversationOf(k tape.Kind) uint64 {
	f := tape.ChangedFile(k)
	if f == nil {
		return 0
	}
	n, err := strconv.ParseUint(string(tape.FieldValue(f.Extra, ConversationKey)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func secretField(e *Entry) []tape.Field {
	if e == nil || e.Secret == "" {
		return nil
	}
	v, err := json.Marshal(e.Secret)
	if err != nil {
		return nil // a string always has a JSON form
	}
	return []tape.Field{{Name: secretKey, Value: v}}
}
