// Package sdk records and replays programs that use the providers' official SDKs, in Go and for Node, unmodified: their
// own base URLs and host names, TLS, HTTP/2, retries. It is a module of its own, so that nobody who uses tapedeck as a
// library inherits an SDK.
//
// Each client under clients/ and each script under node/ plays the same scenes. A test records one against the scripted
// endpoint, stops the endpoint, replays, and wants the same bytes on stdout; then it replays with one word of the prompt
// changed and wants both words named.
//
// Package bench beside this one has the same SDKs speak to a testbench, in one process.
//
// The tests need Linux with user namespaces. Those for Node need the packages of node/package-lock.json: run.sh installs
// them and runs everything.
package sdk
