package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// leaseFlags say by which Lease instances agree on the one that works.
type leaseFlags struct {
	elect bool
	name  string
}

// leaseName is the flag, and defaultLease its value.
const (
	leaseName    = "lease-name"
	defaultLease = "rectifier"
)

func (f *leaseFlags) add(cmd *cobra.Command, elect string) {
	cmd.Flags().BoolVar(&f.elect, "leader-elect", false, elect)
	cmd.Flags().StringVar(&f.name, leaseName, defaultLease, "`[NAMESPACE/]NAME` of the Lease of --leader-elect; the namespace is by default that of the pod, or of the kubeconfig's context")
}

// validate refuses what cannot be a Lease.
func (f *leaseFlags) validate(cmd *cobra.Command) error {
	if cmd.Flags().Changed(leaseName) && !f.elect {
		return errors.New("--lease-name goes with --leader-elect")
	}
	namespace, name := f.split()
	if len(validation.IsDNS1123Subdomain(name)) > 0 || strings.Contains(f.name, "/") && len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("--lease-name must be NAME or NAMESPACE/NAME, not %q", f.name)
	}
	return nil
}

func (f *leaseFlags) split() (namespace, name string) {
	if namespace, name, ok := strings.Cut(f.name, "/"); ok {
		return namespace, name
	}
	return "", f.name
}

// lease is the Lease that is meant; the zero value without --leader-elect.
// namespace is for a flag that names none; empty: where the command runs.
func (f *leaseFlags) lease(cluster *clusterFlags, namespace string) (types.NamespacedName, error) {
	if !f.elect {
		return types.NamespacedName{}, nil
	}
	given, name := f.split()
	namespace = cmp.Or(given, namespace, cluster.ownNamespace())
	if namespace == "" {
		return types.NamespacedName{}, fmt.Errorf("the namespace of the lease is not known: this is no pod, and the context names none: give --lease-name NAMESPACE/%s", name)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// podNamespaceFile is where a pod finds the name of its namespace.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownNamespace is the namespace of the pod or else of the kubeconfig's context;
// empty if neither names one. A kubeconfig that is named may be of another
// cluster than the pod.
func (f *clusterFlags) ownNamespace() string {
	if f.kubeconfig == "" {
		if data, err := os.ReadFile(podNamespaceFile); err == nil {
			return strings.TrimSpace(string(data))
		}
	}
	config, err := f.loading().Load()
	if err != nil {
		return "" // what needs the cluster tells of it
	}
	if context := config.Contexts[cmp.Or(f.context, config.CurrentContext)]; context != nil {
		return context.Namespace
	}
	return ""
}
