package seal

import "fmt"

// A Code says what does not hold, for programs. Codes stay what they are once released.
type Code string

// The codes of a Problem.
const (
	// Of seal.json and of a proof.
	CodeTooLarge     Code = "too-large"     // larger than a reader takes
	CodeNotJSON      Code = "not-json"      // no JSON, or nested deeper than a reader follows
	CodeDuplicateKey Code = "duplicate-key" // a key stands twice in one object
	CodeMalformed    Code = "malformed"     // JSON, and not the form that it must have
	CodeNotCanonical Code = "not-canonical" // the right members in another form than RFC 8785's
	CodeVersion      Code = "version"       // of a later format

	// Of the checkpoint.
	CodeCheckpoint Code = "checkpoint" // no checkpoint, or one of other streams or another id
	CodeSignature  Code = "signature"  // not signed by the key that the seal names
	CodeSigner     Code = "signer"     // signed by none of the keys asked for
	CodeWitness    Code = "witness"    // a witness that was asked for has not cosigned, or its signature does not hold
	CodeID         Code = "id"         // the seal of another recording

	// Of the files.
	CodeMissing    Code = "missing"     // a sealed file or blob is not there
	CodeUnlisted   Code = "unlisted"    // a file or blob that was not sealed
	CodeNotRegular Code = "not-regular" // a symlink, FIFO, device or socket, or a directory in a file's place
	CodeName       Code = "name"        // a sealed file is there under a name that differs in case or form alone
	CodeChanged    Code = "changed"     // other bytes than those that were sealed
	CodeBlob       Code = "blob"        // a blob's bytes do not hash to its name
	CodeReordered  Code = "reordered"   // the leaves are those that were sealed, in another order
	CodeRemoved    Code = "removed"     // leaves were taken out
	CodeAdded      Code = "added"       // leaves were put in
	CodeCut        Code = "cut"         // the end of a stream is missing
	CodeUnreadable Code = "unreadable"  // it is there and cannot be read
	CodeTiles      Code = "tiles"       // seal.tiles/ does not hold what it must

	// Of a proof.
	CodeProof   Code = "proof"   // a path does not lead to the root that is signed
	CodePayload Code = "payload" // bytes that the leaf does not name
)

// A Problem is one thing that does not hold, with where.
type Problem struct {
	Code    Code   `json:"code"`
	Path    string `json:"path"`           // relative to the recording's directory, with '/'
	Line    int64  `json:"line,omitempty"` // from 1, where a line is meant
	Leaf    int64  `json:"leaf"`           // of the stream's tree, from 0; -1 where none is meant
	Message string `json:"message"`
}

func (p *Problem) Error() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	}
	return p.Path + ": " + p.Message
}

// problem makes one that is about no leaf.
func problem(code Code, path, format string, args ...any) *Problem {
	return &Problem{Code: code, Path: path, Leaf: -1, Message: fmt.Sprintf(format, args...)}
}
