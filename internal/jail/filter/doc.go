// Package filter writes and installs the filter of system calls that a jail's program and all that it starts run under.
//
// A Rule decides a call by its number and its arguments: let through, refused with an error that needs nobody to answer, or notified to
// the recorder. Rules are tried in their order, and what none of them decides is let through. What confines is in Always; who wants to hear of
// more calls brings rules of its own.
//
// The kernel runs no filter for a call whose number alone lets it pass (since Linux 5.11 it knows those), so only calls
// whose arguments count pay for it: rules of reads of a clock and of opens come first.
//
// Not goals: answering what is notified. On systems other than Linux there is nothing here.
package filter
