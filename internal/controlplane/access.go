package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// AdminConfig returns a config for a member of system:masters, without a client
// side rate limit. The caller owns it.
func (c *ControlPlane) AdminConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// User returns a config for a user with a fresh certificate, without a client
// side rate limit. RBAC is on: a user may do nothing that no binding grants,
// beyond discovery. The caller owns the config.
func (c *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	user, err := c.addUser(name, groups)
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// WriteKubeconfig writes a kubeconfig for such a user, readable by the caller only.
func (c *ControlPlane) WriteKubeconfig(path, user string, groups ...string) error {
	authenticated, err := c.addUser(user, groups)
	if err != nil {
		return err
	}
	content, err := authenticated.KubeConfig()
	if err != nil {
		return fmt.Errorf("making a kubeconfig for %s: %w", user, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig for %s: %w", user, err)
	}
	return nil
}

// KubeconfigFile returns the path of the administrator's kubeconfig, which
// goes with Stop.
func (c *ControlPlane) KubeconfigFile() string { return c.path("kubeconfig") }

func (c *ControlPlane) addUser(name string, groups []string) (*envtest.AuthenticatedUser, error) {
	c.users.Lock()
	defer c.users.Unlock()
	user, err := c.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", name, err)
	}
	return user, nil
}

// waitFor polls until a GET of the path succeeds.
func (c *ControlPlane) waitFor(ctx context.Context, path string) error {
	client, err := rest.HTTPClientFor(c.admin)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := get(ctx, client, strings.TrimSuffix(c.admin.Host, "/")+path)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", path, err)
		case <-ticker.C:
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", response.Status)
	}
	return nil
}
