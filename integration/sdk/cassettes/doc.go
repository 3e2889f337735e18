// Package cassettes holds httptape/foreign to the programs whose recordings it reads: go-vcr 1, 3 and 4 record a server here, the
// tape that is made of it answers in its place, and every answer must be, byte for byte, the server's and what go-vcr itself
// replays.
//
// make.sh makes the fixtures of httptape/foreign/testdata anew, with vcrpy, VCR, Playwright and mitmproxy.
package cassettes
