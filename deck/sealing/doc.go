// Package sealing gives a recording its seal, tells whose it is, and keeps the log of sealed recordings. The seal itself is package
// seal's, the log's form package recordlog's.
//
// Goals: whoever is killed while a recording is sealed leaves no lie; a recording whose seal does not hold gets no other unless it
// is asked for.
package sealing
