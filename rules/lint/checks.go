package lint

// Checks are all checks, in the order in which they run. Each has a file of its
// own, and a page in docs/lint.
var Checks = []*Check{
	loads,
}
