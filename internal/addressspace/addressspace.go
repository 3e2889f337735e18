// Package addressspace ends a command that makes a jail at its start where it was given too little address space (ulimit -v), with one line.
//
// A Go program reserves more than it uses, and its runtime ends with a dump of all its stacks where that fails, in the recorder
// or in a stage of the jail, at any later moment. So the limit is looked at before most packages are initialized: this one
// imports nothing but the standard library, and those come in the order of their paths. An init of a jail may have been started by then
// (package early), and ends with the command. Who imports it has the effect.
//
// Below some 650 MB the runtime does not come as far as this.
package addressspace
