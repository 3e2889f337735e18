package files

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// hideContent returns what may be stored of a file and, where that is not its true bytes or the file holds credentials
// by its name, the keyed digest of these. Without a scrubber a file that holds credentials is not covered: it cannot be
// told what in it is secret.
func hideContent(s Scrubber, path string, b []byte) (stored []byte, secret string, err error) {
	credential := scrub.IsCredentialFile(path)
	if s == nil {
		if credential {
			return nil, "", &errSkipped{SecretName}
		}
		return b, "", nil
	}
	out, found := s.Bytes(b)
	if found || credential {
		return out, s.KeyedDigest(b), nil
	}
	return b, "", nil
}

// hideNames drops the entries whose path, or the target of whose link, holds a secret, and lists them by their scrubbed
// path. All names are scanned at once, because hardly any tree has such a name.
func hideNames(t *Tree, s Scrubber) {
	if s == nil {
		return
	}
	var all strings.Builder
	for i := range t.Entries {
		all.WriteString(t.Entries[i].Path + "\n" + t.Entries[i].Target + "\n")
	}
	for _, n := range t.NotCovered {
		all.WriteString(n.Path + "\n")
	}
	if _, found := s.Bytes([]byte(all.String())); !found {
		return
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
}
