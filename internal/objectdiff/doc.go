// Package objectdiff shows what changes of Kubernetes objects as unified diffs, without showing what is secret.
//
// Data flow: a Mask is made for each state of an object that changes; it says which values are not to be seen. The mask is laid over the
// object (Mask.Object), over a JSON patch (Mask.Ops), or over the text of the manifest that holds it (Manifest). Unified then
// compares two texts, and Colour adds escape sequences for terminals.
//
// What is secret: all values of data and stringData of a Secret, copies of them elsewhere in it (Values: encoded or decoded, alone or within a longer
// text), the annotation in which `kubectl apply` repeats them, the comments between
// them; and what a rule that reads Secrets changes elsewhere. Shown are the length of such a value and whether it changes: no hash, because it could be
// tried out.
//
// All functions are pure. What they return shares nothing that they modify later.
package objectdiff
