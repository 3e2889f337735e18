// Package token keeps the tokens of a daemon in files and finds them by the daemon's address.
//
// A daemon makes two tokens at each start, 32 random bytes each, in base64url without padding (43 characters): one for agents,
// one for the host role. Before it lets anybody in it puts them where their owner's other programs find them:
//
//	$XDG_RUNTIME_DIR (else the XDG config directory)/tapedeck/daemon-<address>/token
//	                                                                         /host-token
//
// the directory with mode 0700, the files with 0600, both owned by who runs the daemon; a directory that belongs to
// somebody else, or is a symbolic link, is refused on both sides. <address> is HOST-PORT for TCP, with localhost as 127.0.0.1,
// a wildcard as "any" (found under loopback addresses alone) and the colons of IPv6 as "_"; for a Unix socket it is the hash of its absolute path. A daemon that is
// reached in several ways leaves its tokens under each.
//
// Files are put in place whole (package durable). Those of a daemon that was killed are replaced by the next one on that
// address, which could not listen there if the first were alive. A clean stop removes the files, if they are still its own.
//
// Tokens are compared in constant time, whatever their lengths.
package token
