// Package sessionlog reads and writes session event logs, and folds them into audit snapshots.
//
// A session log explains what an agent did, for people who must show it afterwards; it never restores the state of one.
package sessionlog
