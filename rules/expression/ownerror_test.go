package expression

import "testing"

// What an expression says when it stops is told without CEL's words, and what CEL
// says of keys that are missing is told with them.
func TestOwnMessages(t *testing.T) {
	env, err := NewEnv().Declare("object", Dyn)
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"{}['size must be s or m: ' + object.size]":                                   "size must be s or m: huge",
		"object.size == 's' ? 1 : {'': 0}['size must be s or m, not ' + object.size]": "size must be s or m, not huge",
		"[1].map(x, {}['no size at all'])":                                            "no size at all",
		"{}['huge']":                                                                  "no such key: huge",
		"{'s': 1, 'm': 2}[object.words]":                                              "no such key: two words",
		"{'s': 1}[object.words]":                                                      "no such key: two words",
		"object[object.words]":                                                        "no such key: two words",
		"object.x":                                                                    "no such key: x",
		"int(object.size) + {'': 0}['no size at all']":                                "type conversion error from 'string' to 'int'",
	} {
		p, issues := env.Compile(source)
		if issues != nil {
			t.Fatalf("%s: %v", source, issues[0])
		}
		read := names{"object": map[string]any{"size": "huge", "words": "two words"}}
		if _, err := p.Eval(read); err == nil || err.Error() != want {
			t.Errorf("%s fails with %v, not %s", source, err, want)
		}
		if x := p.Explain(read); x.Err == nil || x.Err.Error() != want {
			t.Errorf("%s is explained with %v, not %s", source, x.Err, want)
		}
	}
}
