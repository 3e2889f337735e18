// Package recording is the directory of a recording: its manifest, the paths in it, who is at work on it, the masks and the key
// that it was made with. Package deck makes recordings; the packages beside this one list, seal, verify, follow them.
//
// The life of a recording:
//
//	recording.json {"state":"recording"}      written first
//	tree.json, blobs                          the work tree, before the program starts
//	run.tape, run.tape.cas/, run.tape.part/   as the run goes
//	terminal/                                 as the run goes, where the program has a terminal
//	workspace.diff, found-*.json              after the program has ended
//	tree.json, run.tape, again                where a secret became known after it was written
//	session.jsonl                             derived from the tape, where a model was called
//	recording.json {"state":"finished"}       replaces the first one atomically: the recording is whole, and unsealed
//	seal.tiles/, seal.json                    over all of that and the recording.json to come, unless NoSeal
//	recording.json {"sealed":true}            replaces it atomically, last
//	run.seed                                  where it was packed with that: 64 hex digits, the seed of its random numbers
//
// found-*.json have the form of tree.json (package files): what the run found at the paths that it changed in HOME, the temporary
// directory and other places that it may write to, and at those of the work tree that Git ignores. They are partial: what they do
// not name was not changed, and a replay shows it as it is then.
//
// A recorder that is killed at any moment leaves what stands above that moment, each file whole or, the tape, whole up
// to its last record. A tape is never found without its header. So a recording is unfinished, or finished and says that it is not
// sealed, or sealed; package verify passes each of these, and package sealing seals the second. A sealing that fails leaves the second.
//
// What lies in temporary directories (layers, certificates, what is unpacked to be looked at) is locked by the process that made
// it, and goes with the next command where that was killed (library.Sweep).
//
// recording.json is a Manifest. Of its keys these may be absent:
//
//	scrub_key    names the project's key, under which placeholders and the digests of files with secrets were made, and tells
//	             nothing else of it; absent: an older recorder's
//	scrub_rules  version of the shapes that secrets were found by (scrub.Rules), which a replay uses; absent: 1
//	secret_names names of variables, headers and fields whose values are secrets, of tapedeck.yaml, which a replay uses; absent: there
//	             were none
//	secrets      placeholder and shape of each secret that the traffic or a file brought, 4,096 at most: a replay that lacks
//	             it makes up another, and recognises one that is "late", which stood somewhere before it was known; absent: none
//	             was found, or the recorder was killed or older, and the program of a replay gets placeholders
//	scrub_late   true: what became known as a secret late was taken out of what was written before, so a replay does the
//	             same; absent: it was not (an older or a killed recorder), and a replay does not either
//	arg_secrets  the same as env has, for argv: "argv.N", its text, the shapes of the secrets in it; absent: argv holds none
//	raw          base64 of the bytes, scrubbed, of each "argv.N" and "env.NAME" that is no UTF-8; absent: all of them are
//	umask        the umask that the run began with, which a replay has too; absent: not known, a replay has the caller's
//	host.proc    files of /proc, by their names there, as the run found them and a replay does; absent: an older recorder's, or outside the jail
//	writable     directories that the run could change beside the roots; absent: none
//	ports        TCP ports that a replay serves beside 80 and 443; absent: none
//	loopback     true: an upstream answered for an address of the loopback; absent: none did
//	proxy        true: recorded outside the jail, through a proxy; absent: in the jail
//	mcp          the tool servers that the program talked with, and how often (MCPSeen); absent: there was none, or the recorder was
//	             killed or older
//	wrapped      true: holds what was said with one MCP server and nothing else, recorded by WrapMCP; absent: a run
//	tty.modes    how the caller's terminal treated input and output (terminal.Modes); absent: as it is made
//	tty.width    and tty.height: its size in pixels; absent: unknown
//	tty.keys     base64 of what was typed beside a stdin that was no terminal, scrubbed; absent: nothing
//	tty.typed    of its members: idle_ms, for how long nothing had been printed; rows, cols, width, height: a new size
//	long_files   files that the run left and that are too large to keep, by path: how many bytes they have, and a keyed digest of them; absent: none
//	seed         id of the recording that the random bytes of the run are of, which was replayed; absent: its own
//	masks        how often each mask was used; absent: none was, or the recorder was killed
//	session_rules  version of the rules by which session.jsonl was derived (SessionRules), with which alone verify derives it
//	             again; absent: there is none, or it was made elsewhere
//	session_hidden  the lines of session.jsonl, from 1, in which a secret was hidden that stands on the tape in pieces; absent:
//	             none
//	daemon       the daemon that the run was told to, and what the run is called there (DaemonRun); absent: none
//	fork         where and how it left its parent (Fork); absent: it is no fork
//	again        upstreams, passed-through hosts and isolation, for recording the run once more (Again); absent: nobody kept them
//	redacted     id of the recording that it was made of without what a person named, and the names of the rules (Redacted); absent: it was recorded
//	totals       what it comes to: models, turns, tools, tokens, cost (Totals); absent: the recorder was killed or older, and package account
//	             adds it up
//	masking      masks of tapedeck.yaml, which a replay uses; absent: there were none
//
// A key that is not known here is passed by.
//
// Goals: whoever opens a recording trusts nothing that it says; nothing of a tape is held in memory. Not goals: making recordings,
// judging them.
package recording
