package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"sort"
)

// controllerManagerUser is the identity that the API server's bootstrap roles
// are bound to.
const controllerManagerUser = "system:kube-controller-manager"

// startControllerManager starts kube-controller-manager and waits until one of
// its controllers has done its work. It serves nothing, not even on loopback,
// and there are no nodes: what is about nodes or clouds is off.
func (c *ControlPlane) startControllerManager(ctx context.Context, launcher string, overrides map[string]string) error {
	kubeconfig := c.path("controller-manager.kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, controllerManagerUser); err != nil {
		return err
	}
	flags := map[string]string{
		"kubeconfig":                            kubeconfig,
		"secure-port":                           "0",
		"leader-elect":                          "false",
		"controllers":                           "*,-nodeipam,-nodelifecycle",
		"use-service-account-credentials":       "true", // the audit log then says which controller wrote
		"service-account-private-key-file":      filepath.Join(c.plane.APIServer.CertDir, "sa-signer.key"),
		"horizontal-pod-autoscaler-sync-period": "1s", // tests wait for it; the default is 15 s
		"kube-api-qps":                          "500",
		"kube-api-burst":                        "1000",
	}
	for name, value := range overrides {
		flags[name] = value
	}
	args := make([]string, 0, len(flags))
	for name, value := range flags {
		args = append(args, "--"+name+"="+value)
	}
	sort.Strings(args)
	log := c.logs[controllerManager]
	manager, err := startProcess(launcher, args, log)
	if err != nil {
		return fmt.Errorf("starting %s: %w", controllerManager, err)
	}
	c.manager = manager

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-manager.done:
			cancel() // it will not become ready any more
		case <-ctx.Done():
		}
	}()
	if err := c.waitFor(ctx, "/api/v1/namespaces/default/serviceaccounts/default"); err != nil {
		return fmt.Errorf("%s did not start working: %w\n%s", controllerManager, err, log.lastLines(controllerManager))
	}
	return nil
}
