package files

import (
	"errors"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// HideLateRecord brings a file_write or file_delete into the form that it would have if what became known since had been
// known before, as HideLate does with trees; masker, which may be nil, gives the new content_digest. A record whose path or
// link holds a secret keeps neither, and says that it is ignored, for no tree has the path any more.
//
// The errors are those of the store; a content that is not there has nothing to hide.
func HideLateRecord(rec *tape.Record, o *LateOptions, masker Masker) error {
	h := &recordHider{LateOptions: o, masker: masker}
	switch k := rec.Kind.(type) {
	case *tape.FileWrite:
		return errors.Join(h.content(&k.File), h.before(&k.File), h.names(rec, &k.File))
	case *tape.FileDelete:
		return errors.Join(h.before(&k.File), h.names(rec, &k.File))
	}
	return nil
}

type recordHider struct {
	*LateOptions
	masker Masker
}

// content hides what a file_write left.
func (h *recordHider) content(f *tape.File) error {
	p := f.Content
	if p == nil {
		p = &tape.Payload{Hash: f.ContentHash, Len: f.LenBytes}
	}
	stored, truth, err := h.hidden(p)
	if stored == nil || err != nil {
		return err
	}
	if f.Content, err = tape.MakePayload(h.Store, stored); err != nil {
		return err
	}
	f.ContentHash, f.LenBytes = f.Content.Hash, f.Content.Len
	if h.masker != nil {
		f.ContentDigest = h.masker.Digest(stored)
	}
	h.markSecret(f, truth)
	return nil
}

// before hides what stood there before.
func (h *recordHider) before(f *tape.File) error {
	if f.Before == nil {
		return nil
	}
	stored, truth, err := h.hidden(f.Before)
	if stored == nil || err != nil {
		return err
	}
	if f.Before, err = tape.MakePayload(h.Store, stored); err == nil && f.ContentHash == (cas.Digest{}) {
		h.markSecret(f, truth)
	}
	return err
}

// hidden returns the form of a payload without secrets, and its bytes as they are; nil where it holds none.
func (h *recordHider) hidden(p *tape.Payload) (stored, truth []byte, err error) {
	b, err := p.Bytes(h.Store)
	var missing *cas.MissingError
	if errors.As(err, &missing) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if _, found := h.Late.Bytes(b); !found {
		return nil, nil, nil
	}
	stored, _ = h.All.Bytes(b)
	return stored, b, nil
}

// markSecret marks f, unless it was marked when it was taken: the keyed digest is that of the true bytes.
func (h *recordHider) markSecret(f *tape.File, truth []byte) {
	if secretOf(f) == "" {
		f.Extra = append(f.Extra, secretField(&Entry{Secret: h.All.KeyedDigest(truth)})...)
	}
}

// names hides a path, and sees to it that no tree is made of the record then.
func (h *recordHider) names(rec *tape.Record, f *tape.File) error {
	path, found := h.Late.Bytes([]byte(f.Path))
	link := f.Mode == Link.Git()
	if !found && (!link || secretOf(f) == "") {
		return nil
	}
	f.Path = string(path)
	rec.Raw = slices.DeleteFunc(rec.Raw, func(r tape.RawBytes) bool { return r.Key == "path" })
	if tape.FieldValue(f.Extra, ignoredKey) == nil {
		f.Extra = append(f.Extra, tape.Field{Name: ignoredKey, Value: []byte("true")})
	}
	return nil
}

// InTree reports whether a record is about a file of the work tree that its patch covers.
func InTree(f *tape.File) bool {
	return !elsewhere(f.Path) && tape.FieldValue(f.Extra, ignoredKey) == nil
}
