package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/live"
)

// clusterFlags say which cluster a command talks to.
type clusterFlags struct{ kubeconfig, context string }

func (f *clusterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the cluster")
	cmd.Flags().StringVar(&f.context, "context", "", "`NAME` of the context in the kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("context", f.completeContexts)
}

func (f *clusterFlags) loading() *clientcmd.ClientConfigLoadingRules {
	loading := clientcmd.NewDefaultClientConfigLoadingRules()
	loading.ExplicitPath = f.kubeconfig
	return loading
}

// completeContexts completes the contexts of the kubeconfig.
func (f *clusterFlags) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := f.loading().Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// config finds the cluster as kubectl does. An error is one of usage.
func (f *clusterFlags) config() (*rest.Config, error) {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.loading(), overrides).ClientConfig()
	if err != nil {
		return nil, &exitError{exitUsage, f.notFound(err)}
	}
	config.UserAgent = "rectifier/" + versionString()
	return config, nil
}

// notFound says why there is no cluster to be found. clientcmd passes over files
// that do not exist, and speaks of variables of its own instead.
func (f *clusterFlags) notFound(err error) error {
	const finding = "find the cluster (--kubeconfig, $KUBECONFIG, ~/.kube/config)"
	files := f.loading().Precedence
	if f.kubeconfig != "" {
		files = []string{f.kubeconfig}
	}
	var there, absent []string
	for _, file := range files {
		if _, stat := os.Stat(file); errors.Is(stat, fs.ErrNotExist) {
			absent = append(absent, file+" does not exist")
		} else {
			there = append(there, file)
		}
	}
	missing := strings.Join(absent, ", ")
	switch empty := clientcmd.IsEmptyConfig(err); {
	case empty && len(there) > 0:
		return fmt.Errorf("%s: no cluster is named in %s", finding, strings.Join(append([]string{strings.Join(there, ", ")}, absent...), "; "))
	case empty && missing != "":
		return fmt.Errorf("%s: %s", finding, missing)
	case missing != "" && f.kubeconfig == "": // of that one, the error tells
		return fmt.Errorf("%s: %w; %s", finding, err, missing)
	}
	return fmt.Errorf("%s: %w", finding, err)
}

// checkNamespaces refuses what cannot be the name of a namespace.
func checkNamespaces(names ...string) error {
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("--namespace: %q is not the name of a namespace", name)
		}
	}
	return nil
}

// allNamespaces is a flag that is known from kubectl.
const allNamespaces = "all-namespaces"

// addAllNamespaces takes -A, which says what is so anyway: it is not shown.
func addAllNamespaces(cmd *cobra.Command) {
	cmd.Flags().BoolP(allNamespaces, "A", false, "the whole cluster: the default of --cluster")
	_ = cmd.Flags().MarkHidden(allNamespaces)
}

// namespacesTimeout bounds the look at Namespaces: a cluster that does not answer
// is told of by who waits for it.
const namespacesTimeout = 5 * time.Second

// readNamespaces reads the Namespaces of these names, as far as they may be read.
// One that does not exist is an error of usage. What could not be read would look
// as if it had neither labels nor opt-outs: that is an error of the cluster.
func readNamespaces(ctx context.Context, config *rest.Config, names []string) (map[string]map[string]any, error) {
	if len(names) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, namespacesTimeout)
	defer cancel()
	found, err := live.Namespaces(ctx, config, names)
	switch {
	case errors.As(err, new(*live.NoNamespaceError)):
		return nil, &exitError{exitUsage, err}
	case err != nil:
		return nil, &exitError{exitCluster, err}
	}
	return found, nil
}

// clusterError is an error of the cluster, with what helps if a permission is
// missing. command is that which prints it.
func clusterError(err error, command string) error {
	if errors.Is(err, engine.ErrForbidden) || apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w\n%s prints the role that is needed", err, command)
	}
	return &exitError{exitCluster, err}
}

// Commands that print the permissions that are needed.
const (
	printReadRole = "rectifier rbac --read-only"
	printRole     = "rectifier rbac"
)

// getError is clusterError for a single object that is read by its name, which
// no role for rules allows: they list and watch.
func getError(err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w\nexplain needs the right to get the object; diff --cluster does with list and watch", err)
	}
	return &exitError{exitCluster, err}
}
