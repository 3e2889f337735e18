// Package policy decides whether a proposed action may run: rules, compiled into sets, and verdicts.
package policy
