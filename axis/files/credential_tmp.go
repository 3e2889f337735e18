package files

func isCredential(path string) bool { return baseOf(path) == ".env" }
