package packed

import (
	"fmt"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

const (
	maxName  = 100 // bytes: the name field of a header
	maxDepth = 8   // components: a seal of later versions keeps tiles some seven deep
)

// blobSuffix is what the name of a directory of blobs ends in.
const blobSuffix = ".cas"

// CheckName returns an error that wraps ErrName for what may not be the name of an entry.
func CheckName(name string) error {
	parts := strings.Split(name, "/")
	if len(name) > maxName || len(parts) > maxDepth || name == indexName {
		return fmt.Errorf("%w: %.120q", ErrName, name)
	}
	for _, p := range parts {
		if !component(p) {
			return fmt.Errorf("%w: %.120q", ErrName, name)
		}
	}
	if _, err := BlobOf(name); err != nil {
		return fmt.Errorf("%w: %.120q stands among blobs", ErrName, name)
	}
	return nil
}

// component reports whether s may stand between two slashes. What no letter or digit ends would lose its end on Windows;
// what none begins is hidden, an option of some command, or leads up.
func component(s string) bool {
	if s == "" || !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func alnum(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// BlobOf returns the digest that the content of the entry name must have, the zero Digest where it is no blob. The error
// is that of a name among blobs that is no digest.
func BlobOf(name string) (cas.Digest, error) {
	dir, base := path.Split(name)
	if !strings.HasSuffix(dir, blobSuffix+"/") {
		return cas.Digest{}, nil
	}
	return cas.Parse(base)
}
