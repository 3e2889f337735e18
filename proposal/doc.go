// Package proposal runs the actions of a proposal: their order, their preconditions, what their failure comes to.
package proposal
