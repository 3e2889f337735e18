// Package seal signs a recording, so that anyone with the public key can tell that no bit of it was changed since, and can
// check one record without the rest.
//
// A seal is the root of a Merkle tree over every file of a recording's directory, in a checkpoint that is signed. Seal makes
// one, Verify computes it again from what lies there, Prove cuts out of a sealed recording what proves one leaf, VerifyProof
// checks that with nothing but the public key. docs/reference/seal.md is the same for auditors, with the checks in other languages.
//
// # Streams and leaves
//
// Every regular file below the directory belongs to exactly one stream, by its name alone, but for what is outside the seal:
// at the top of the directory seal.json, everything in seal.tiles/, run.tape.annotations.jsonl (people's notes, which are
// written after it) and run.seed (which a packed recording has only where its receiver is to draw the run's random numbers). A directory counts by the files in it. Anything that is neither file nor directory cannot be sealed.
//
//	kind    which files                             a leaf                                  the stream's path
//	lines   NAME.tape, NAME.jsonl                   a line with its \n; what follows the    the file's
//	                                                last \n is one too
//	chunks  NAME.raw beside a NAME.jsonl that cuts  the bytes of one chunk                  the file's
//	        it: each line that is not blank is an
//	        object with one "offset" and one
//	        "length", without gap or overlap from
//	        0 to the end; at most 1 MiB long
//	blobs   DIR.cas/<64 lowercase hex digits>       <name> " " <length> "\n", by name;      the directory's
//	                                                the name is the BLAKE3 of the bytes
//	files   every other one                         {"blake3":…,"path":…,"size":…}, by path "."
//
// Paths are relative to the directory, with '/', in UTF-8, sorted by their bytes. A file of a later version thus has a home
// already. Each stream is an RFC 6962 tree over its leaves (SHA-256). The leaves of the root tree are the streams themselves,
// as they stand in seal.json, by path.
//
// # seal.json
//
// RFC 8785 JSON, nothing before or behind it; a text in any other form is refused, for two texts of one meaning would be two
// seals of one recording. Hashes are 64 lowercase hex digits, integers are below 2^53.
//
//	seal    = {"checkpoint":note,"files":[file…],"format":1,"id":text,"key":vkey,"streams":[stream…]}
//	file    = {"blake3":hex,"path":text,"size":bytes}
//	stream  = {"bytes":n,"kind":"lines"|"chunks"|"blobs"|"files","leaves":n,"path":text,"root":hex}
//	note    = C2SP checkpoint: origin "\n" streams "\n" base64 of the root "\n" "\n" signature…
//	origin  = key name "/recording/" id
//	vkey    = key name "+" key id "+" base64 of 0x01 and the Ed25519 public key
//
// Everything in it is signed or follows from what is signed: id and key name by the origin, files by their stream, streams by
// the root. The note may carry cosignatures of witnesses (C2SP tlog-cosignature, Ed25519); lines of unknown keys are kept and
// named, and prove nothing.
//
// # seal.tiles/
//
// The hashes of each tree, so that a proof does not read the recording: seal.tiles/<stream>.<L> has the tiles of level L
// (C2SP tlog-tiles, height 8) one behind another, tile N at byte 8192·N, the partial one last. "files" stands for ".".
// seal.tiles/<stream>.offsets has, for every 256th leaf of a stream of lines or chunks, where it begins, 8 bytes big endian;
// seal.tiles/<stream>.names the leaves of a stream of blobs. All of it follows from the recording, and Verify holds it
// against what it computes.
//
// # proof.json
//
// RFC 8785 as above. A text is in "text" where it is UTF-8, else in "base64".
//
//	proof   = {"checkpoint":note,"format":1,"id":text,"key":vkey,"leaf":{"at":n,"path":[hex…],"text":t|"base64":b},
//	           "payloads":[{"blake3":hex,"text":t|"base64":b}…],"stream":stream,"streamAt":n,"streamPath":[hex…]}
//
// leaf.path leads from the leaf to the stream's root, streamPath from the stream to the root in the checkpoint (RFC 6962,
// 2.1.1, from the leaf up). A payload is bytes that the leaf names by their BLAKE3: as the whole of a JSON string, or in the
// leaf of a blob or file.
//
// # What it proves, and what not
//
// Who holds the private key said at some time: these are the bytes. Nobody without it can change, add, leave out, reorder or
// exchange any of them unseen. Not proved: that the recorder saw what happened (who holds the key can seal anything), when it
// was sealed (a witness's cosignature bounds that), that this is the only recording or the only seal of it (a log of
// recordings does: package recordlog), and file modes, times and empty directories. A seal hides nothing: leaves are not
// salted, so who has a proof can test guesses of its neighbours' text.
//
// # Durability
//
// Seal writes the tiles to a temporary directory, gives it its name, and writes seal.json last, atomically. Killed at any
// moment it leaves no seal.json or a whole one; sealing again takes away what it left. A recording.json that says of itself that
// it is sealed (Options.Manifest) is put in place behind that. One Seal at a time works on a directory,
// and nobody else writes there: its caller sees to that.
//
// Memory does not grow with the recording, but for 40 bytes a blob and the list of files.
//
// Goals: an auditor needs the public key, SHA-256, BLAKE3 and Ed25519, and no code of ours. Not goals: secrecy, a public log,
// key distribution, what is in the files.
package seal
