package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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
		return nil, &exitError{exitUsage, fmt.Errorf("find the cluster (--kubeconfig, $KUBECONFIG, ~/.kube/config): %w", err)}
	}
	config.UserAgent = "rectifier/" + versionString()
	return config, nil
}
