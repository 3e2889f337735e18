package openfiles

const prlimit64 = 302
