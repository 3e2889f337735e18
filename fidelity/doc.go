// Package fidelity compares two event tapes and says where they differ.
//
// Bare tapes compare by position, recordings lane by lane; the mode says what must match (byte-identical, semantic,
// outcome, phase-aware). The result is a Report: stable order, a code for every divergence, text that a person
// understands at a glance, and JSON whose keys are a contract.
//
// Comparing never hashes payloads again and runs no program. Two tapes are read side by side, so memory does not grow
// with their length when they compare by position.
//
// Not goals: reading recordings from a directory (package deck), deciding exit statuses (the command line).
package fidelity
