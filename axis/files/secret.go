package files

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

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
		return concealed(s, b), s.KeyedDigest(b), nil
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

// concealed returns the scrubbed form of a file that holds credentials: one placeholder. What in it is secret follows no
// shape (a password of .netrc, a variable of .env), so nothing of it is written; no byte of an empty file is secret.
func concealed(s Scrubber, b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	digest := s.KeyedDigest(b)
	return []byte("td_file_" + digest[:min(len(digest), 12)] + "\n")
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
