package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Who named a kubeconfig that is not there, or that says nothing, is told which.
func TestAKubeconfigThatNamesNoCluster(t *testing.T) {
	dir := t.TempDir()
	rule, empty, absent, other := dir+"/rule.yaml", dir+"/empty", dir+"/absent", dir+"/other"
	write(t, rule, []byte(labelRule("label", "configmaps", "a: b")))
	write(t, empty, []byte("apiVersion: v1\nkind: Config\n"))
	for _, tc := range []struct {
		name, env string
		args      []string
		want      string
	}{
		{"absent", absent, nil, ": " + absent + " does not exist\n"},
		{"two absent ones", absent + string(filepath.ListSeparator) + other, nil, ": " + absent + " does not exist, " + other + " does not exist\n"},
		{"empty", empty, nil, ": no cluster is named in " + empty + "\n"},
		{"an empty and an absent one", empty + string(filepath.ListSeparator) + absent, nil, ": no cluster is named in " + empty + "; " + absent + " does not exist\n"},
		{"by the flag", "", []string{"--kubeconfig", absent}, "stat " + absent + ": no such file or directory\n"},
		{"an empty one by the flag", absent, []string{"--kubeconfig", empty}, ": no cluster is named in " + empty + "\n"},
		{"a context of an absent one", absent, []string{"--context", "prod"}, `context "prod" does not exist; ` + absent + " does not exist\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.env)
			t.Setenv("HOME", dir)
			code, out, told := invoke(t, append([]string{"diff", "--cluster", "--rules", rule, "--builtin", "none"}, tc.args...)...)
			if code != exitUsage || out != "" || !strings.HasPrefix(told, "rectifier: find the cluster (") || !strings.HasSuffix(told, tc.want) || strings.Contains(told, "KUBERNETES_MASTER") {
				t.Errorf("exit code %d, want at its end %q\n%s%s", code, tc.want, out, told)
			}
		})
	}
}
