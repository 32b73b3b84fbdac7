// Package manifest reads Kubernetes manifests and writes them back with changes, everything that was not changed byte for byte the same.
//
// Data flow: Parse reads a file through internal/yamldoc and lists the objects in it, those within List kinds too. The caller computes
// new content for some (with the rules) and records it with Update. Bytes then works out, document by document, which values differ, and
// changes the text there and nowhere else:
//
//	old value, new value ──editor──▶ text edits ──▶ new text ──parse──▶ value == wanted?
//
// The last step is what makes the editor safe: it may guess about notations, because a guess that went wrong shows when the new text
// is parsed. Then the edit is repeated more coarsely, replacing ever larger blocks, at last the document through the encoder of yaml.v3. If even that does
// not give the wanted value, the object stays as it was and Bytes returns an error. Wrong output is never returned.
//
// A Reader reads a stream document by document. Each is a File of its own, and done with when the next one is read; a large list comes item by item.
//
// Files: manifest.go (files, objects), reader.go and splitlist.go (streams), refuse.go (what is no manifest), object.go (what is an object), write.go (trying and verifying), editor.go, mapping.go, list.go and flow.go (edits), render.go and
// scalar.go (new text), rebuild.go (the last resort), value.go (comparing values).
//
// A File and its objects are not safe for concurrent use while Update is called; different files are independent.
package manifest
