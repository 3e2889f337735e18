// Package commands records and replays everyday shell commands as an agent runs them: a small program asks a model, runs the one
// command that the model wants, and posts what it printed back. What a command prints in another way on a replay is then another
// request.
//
// Its tests run with the build tag commands. Each command is recorded once and replayed three times, as the caller and as an
// unprivileged user, and is a row of the table that the test prints. A command that the machine lacks is left out with the reason.
// TAPEDECK_LONG=1 tries all of them, else a handful.
package commands
