package host

import "slices"

// table is what a program may call, in the order of the documentation.
var table = slices.Concat(clockFunctions, modelFunctions, fileFunctions, processFunctions, mcpFunctions, httpFunctions, randomFunctions, envFunctions)
