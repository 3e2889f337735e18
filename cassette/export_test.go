package cassette

// Codes returns all codes.
func Codes() (all []string) {
	for _, c := range codes {
		all = append(all, c.code)
	}
	return all
}
