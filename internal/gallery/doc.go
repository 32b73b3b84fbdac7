// Package gallery puts the examples of the repository onto the API server of a
// test, and compares what became of them: for tests only.
//
// An example is a rule, what is wrong before it, and what is right after it. On a
// server, its objects have fields besides, which the server made: Holds looks at
// those that the example names, and at those that should have gone.
package gallery
