// Command screen holds the screen model (internal/vt) beside @xterm/headless: how many of the shared conformance cases each passes,
// whether a row of the shared recordings is wrong where two other emulators agree, and how fast both are. run.sh installs the
// npm packages and starts it. It exits with 1 where ours passes fewer cases, a row is wrong, or ours is slower than it must be.
package main
