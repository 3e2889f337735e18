package terminal

// awaitExit cannot wait without reaping here.
func awaitExit(int) bool { return false }
