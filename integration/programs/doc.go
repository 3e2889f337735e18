// Package programs records and replays programs that no agent is: curl, git over HTTPS, Python, Node, and static
// programs in Go and Rust.
//
// Its tests run with the build tag programs, against upstreams on the loopback that are gone when the replay begins.
// A program that the machine lacks skips its tests with the reason.
package programs
