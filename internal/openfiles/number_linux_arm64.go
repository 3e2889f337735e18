package openfiles

const prlimit64 = 261
