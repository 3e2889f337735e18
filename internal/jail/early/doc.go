// Package early starts the init of a jail at the start of a command that makes one (record, replay), before most packages are initialized: what
// the init does until it is told what its jail is to be, it does while they are, and while the command makes itself ready.
//
// Who imports it has the effect. It imports nothing but package launch, so that its turn comes first.
package early
