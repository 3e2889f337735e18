// Package tapeview shows a tape to people: a record in a line or two of a timeline, its fields one a line, what its calls of models used.
//
// Goals: who reads a timeline sees what was asked and what came. Of a call of a model, whichever provider's and streamed or not, a row has
// the first words of what was said last, those of the answer, the tools that it asks for, tokens, cost and time; of a call of a tool server
// the tool, its arguments and the result; a testbench's rows and a recording's read alike. Nothing that a tape holds steers the terminal
// of who looks at it: all text of others is written by package visible.
//
// Memory is that of an account (package account) of the calls that were heard; of a payload no more is read than it takes to say what it
// holds, but for those of models.
//
// Not goals: which records are shown (package follow), terminals, pages.
package tapeview
