package files

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// longFile is the length in bytes from which a content is read, scrubbed and stored piece by piece.
const longFile = 1 << 20

// wholes is held while a long content is in memory as a whole, because it must be: it is compressed, or held a secret before.
var wholes sync.Mutex

// A taker reads contents, takes what is secret out of them, and stores them.
type taker struct {
	store    cas.Store // nil for none
	scrubber Scrubber
	limit    int64 // bytes
	texts    bool  // short texts are wanted
}

// buffers hold contents of at most longFile bytes while they are looked at: a run that writes very many would else wait for the
// garbage collector.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// A taken is what is known of a content.
type taken struct {
	digest cas.Digest // of the stored bytes
	size   int64      // of them
	secret string
	text   *string // the stored bytes where they may stand in a record; nil else, and where texts are not wanted
	length int64   // of what was read
}

// streamer is a Scrubber that scrubs long files piece by piece.
type streamer interface {
	Streams(head []byte) bool
	FileWriter(w io.Writer) *scrub.Writer
	KeyedHash() hash.Hash
}

// take takes what r gives, of the file at path, which should be size bytes. was is what a snapshot has there, nil for nothing:
// a secret file of it that is still the same is taken as it stands there, for this run may not know what makes it one. The error
// says why nothing is taken (see reasonOf), or is the store's.
func (t *taker) take(r io.Reader, size int64, path string, was *Entry) (taken, error) {
	if was != nil && (was.Secret == "" || t.scrubber == nil) {
		was = nil
	}
	if size <= longFile {
		return t.whole(r, size, path, was)
	}
	s, ok := t.scrubber.(streamer)
	if !ok && t.scrubber != nil || was != nil {
		return t.alone(r, size, path, was)
	}
	head := make([]byte, 4096)
	n, err := io.ReadFull(r, head)
	head = head[:n]
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return taken{}, unreadable(err)
	}
	r = io.MultiReader(bytes.NewReader(head), r)
	if isCredential(t.scrubber, path) || ok && !s.Streams(head) {
		return t.alone(r, size, path, nil)
	}
	return t.stream(r, s)
}

// alone is whole for a long content: one at a time.
func (t *taker) alone(r io.Reader, size int64, path string, was *Entry) (taken, error) {
	wholes.Lock()
	defer wholes.Unlock()
	return t.whole(r, size, path, was)
}

// whole takes a content that is held in memory. was, where it is not nil, is a secret file.
func (t *taker) whole(r io.Reader, size int64, path string, was *Entry) (taken, error) {
	buf := buffers.Get().(*[]byte)
	b, err := readInto((*buf)[:0], r, size, t.limit)
	if *buf = b; cap(b) <= 2*longFile {
		defer buffers.Put(buf)
	}
	if err != nil {
		return taken{}, unreadable(err)
	}
	out := taken{length: int64(len(b))}
	if was != nil && t.scrubber.KeyedDigest(b) == was.Secret {
		out.digest, out.size, out.secret = was.Digest, was.Size, was.Secret
		return out, nil
	}
	stored, secret, err := hideContent(t.scrubber, path, b)
	if err != nil {
		return out, err
	}
	out.size, out.secret = int64(len(stored)), secret
	if t.texts && len(stored) <= tape.InlineLimit && utf8.Valid(stored) {
		text := string(stored)
		out.text = &text
	}
	if t.store == nil {
		out.digest = cas.Sum(stored)
	} else if out.digest, err = t.store.Put(stored); err != nil {
		return out, err
	}
	return out, nil
}

// stream takes a content piece by piece; s is nil without a scrubber.
func (t *taker) stream(r io.Reader, s streamer) (out taken, err error) {
	in := &bounded{r: r, left: t.limit}
	r = in
	var scrubbed *scrub.Writer
	var digest hash.Hash
	wait := func() {}
	if s != nil {
		from, to := io.Pipe()
		scrubbed, digest = s.FileWriter(to), s.KeyedHash()
		var copying sync.WaitGroup
		copying.Go(func() {
			_, err := io.Copy(io.MultiWriter(scrubbed, digest), in)
			to.CloseWithError(errors.Join(err, scrubbed.Close()))
		})
		wait = func() {
			from.Close() // a store that fails does not read it all
			copying.Wait()
		}
		r = from
	}
	if t.store == nil {
		h := cas.NewHasher()
		out.size, err = io.Copy(h, r)
		out.digest = h.Sum()
	} else {
		out.digest, out.size, err = t.store.PutReader(r)
	}
	wait()
	if in.err != nil {
		return out, unreadable(in.err) // it is that of the file
	}
	if err == nil && s != nil && scrubbed.Found() {
		out.secret = hex.EncodeToString(digest.Sum(nil))
	}
	out.length = t.limit - in.left
	return out, err
}

// A bounded reads a file of which no more than left bytes may come.
type bounded struct {
	r    io.Reader
	left int64
	err  error // of r, or that it is too long
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		n, err = 0, errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// borrowBlob returns a blob, of size bytes as far as is known, until done is called: a short one lies in a buffer that is used
// again.
func borrowBlob(store cas.Store, d cas.Digest, size int64) (b []byte, done func(), err error) {
	buf := buffers.Get().(*[]byte)
	done = func() {
		if cap(*buf) <= 2*longFile {
			buffers.Put(buf)
		}
	}
	*buf, err = blobInto((*buf)[:0], store, d, size)
	if err != nil {
		done()
		return nil, func() {}, err
	}
	return *buf, done, nil
}

// blobInto reads a blob into an empty b where that has room.
func blobInto(b []byte, store cas.Store, d cas.Digest, size int64) ([]byte, error) {
	if s, ok := store.(*Staging); ok {
		if at, ok := s.find(d); ok {
			return s.read(b, d, at)
		}
	}
	r, err := store.Open(d)
	if err != nil {
		return b, err
	}
	defer r.Close()
	return readInto(b, r, size, max(size, 2*longFile))
}

// hideContent returns what may be stored of a file and, where that is not its true bytes or the file holds credentials
// by its name, the keyed digest of these. Without a scrubber a file that holds credentials is not covered: it cannot be
// told what in it is secret.
func hideContent(s Scrubber, path string, b []byte) (stored []byte, secret string, err error) {
	credential := isCredential(s, path)
	if s == nil {
		if credential {
			return nil, "", &errSkipped{SecretName}
		}
		return b, "", nil
	}
	if credential {
		// What in it is secret follows no shape (a password of .netrc, a variable of .env), so nothing of it is written.
		secret, stored = s.KeyedDigest(b), b
		if len(b) > 0 {
			stored = []byte("td_file_" + secret[:min(len(secret), 12)] + "\n")
		}
		return stored, secret, nil
	}
	out, found := s.Bytes(b)
	if found {
		return out, s.KeyedDigest(b), nil
	}
	return b, "", nil
}

// isCredential tells whether a file holds credentials by its name: by the rules of s, where there is one.
func isCredential(s Scrubber, path string) bool {
	if s == nil {
		return names.IsCredentialFile(path)
	}
	return s.CredentialFile(path)
}

// hideNames drops the entries and absent paths whose path, or the target of whose link, holds a secret, and lists them by their
// scrubbed path; it reports whether there was one. All names are scanned at once, because hardly any tree has such a name.
func hideNames(t *Tree, s Scrubber) bool {
	if s == nil {
		return false
	}
	var all strings.Builder
	for i := range t.Entries {
		all.WriteString(t.Entries[i].Path + "\n" + t.Entries[i].Target + "\n")
	}
	for _, n := range t.NotCovered {
		all.WriteString(n.Path + "\n")
	}
	for _, p := range slices.Concat(t.Absent, t.Moved) {
		all.WriteString(p + "\n")
	}
	if _, found := s.Bytes([]byte(all.String())); !found {
		return false
	}
	for i := range t.NotCovered {
		out, _ := s.Bytes([]byte(t.NotCovered[i].Path))
		t.NotCovered[i].Path = string(out)
	}
	t.Entries = slices.DeleteFunc(t.Entries, func(e Entry) bool {
		path, inPath := s.Bytes([]byte(e.Path))
		_, inTarget := s.Bytes([]byte(e.Target))
		if inPath || inTarget {
			t.NotCovered = append(t.NotCovered, NotCovered{Path: string(path), Reason: SecretName})
		}
		return inPath || inTarget
	})
	t.Moved = slices.DeleteFunc(t.Moved, func(p string) bool {
		_, found := s.Bytes([]byte(p))
		return found
	})
	t.Absent = slices.DeleteFunc(t.Absent, func(p string) bool {
		path, found := s.Bytes([]byte(p))
		if found {
			t.NotCovered = append(t.NotCovered, NotCovered{Path: string(path), Reason: SecretName})
		}
		return found
	})
	return true
}
