package main

import (
	"fmt"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
)

// lookAround tells a person what to try on the running demo.
func lookAround(kubeconfig string, r *rectifier) string {
	kubectl := "kubectl"
	if path, err := binaries.Find("kubectl"); err == nil {
		kubectl = path
	}
	return fmt.Sprintf(`In another terminal (no kubectl? "make kubectl" builds one and prints its path):

  export KUBECONFIG=%[1]s
  alias k='%[2]s --namespace %[3]s'

  k get deployments,backups
  k scale deployment cart --replicas=9           # watch it go back
  k annotate deployment cart %[4]s=7 --overwrite
  k patch backup audit-log --type=merge -p '{"spec":{"retentionDays":1}}'
  k describe deployment cart                     # the Events at the end
  k get deployment cart -o yaml --show-managed-fields

  curl http://%[5]s/readyz
  tail -f %[6]s

Rectifier does not fight for ever: after %[7]d times in %[8]d minutes that the same change is set back, the
rule gives way for that object, for a minute at first. The object tells so (Contended, with the name of
who set it back), and so does /readyz; after the hold, Rectifier tries again.

`, kubeconfig, kubectl, namespace, expected, r.address, r.log(),
		engine.DefaultContentionCount, int(engine.DefaultContentionWindow.Minutes()))
}
