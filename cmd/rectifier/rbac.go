package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules/builtin"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

type rbacFlags struct {
	rules      ruleFlags
	cluster    clusterFlags
	lease      leaseFlags
	output     outputFlag
	crds       []string
	namespaces []string
	name       string
	account    string
	configMap  string
	authorize  bool
	readOnly   bool
	check      bool
	as         string
}

func newRBAC(s streams) *cobra.Command {
	var f rbacFlags
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Print the least permissions that rules need, or check them",
		Long: `Rbac prints the ClusterRole that ` + "`rectifier run`" + ` needs for these rules, and
nothing beyond: list and watch on what rules are about and look up, patch on the
very resource or subresource that they write. Comments name the rules that need
an entry, and what is lost without an optional one. With --namespace it prints a
Role for each namespace instead. A rule that needs more than Roles can grant is
named on standard error and left out, and the exit code is 1.

With --check it asks the cluster what of this the identity of the kubeconfig
lacks, and prints that. The exit code is 1 if rules cannot work. The rights that
are optional are told too, but count for nothing. Only questions are sent, which
every identity may ask.

The built-in rules are those that run would use: name the same --builtin.

With -o helm it prints values for the Helm chart: the rule files, and the rights
that they need. The chart refuses rules that no rights were made for.`,
		Example: `  rectifier rbac --rules rules/ --service-account rectifier/rectifier | kubectl apply -f -
  rectifier rbac --rules rules/ --builtin none --namespace team-a,team-b
  rectifier rbac --rules rules/ -o helm | helm upgrade --install rectifier deploy/chart --namespace rectifier -f -
  rectifier rbac --rules rules/ --check --as system:serviceaccount:rectifier:rectifier`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.check && !cmd.Flags().Changed("output") {
				f.output.value = "text"
			}
			err := f.run(cmd, s)
			if err != nil && strings.EqualFold(f.output.value, "helm") {
				return helmFailure(s, err)
			}
			return err
		},
	}
	f.rules.add(cmd, []string{builtin.Default})
	f.cluster.add(cmd)
	f.output.add(cmd, "yaml", "json", "text", "helm")
	output := cmd.Flags().Lookup("output")
	output.Usage, output.DefValue = output.Usage+" (default yaml; with --check: text)", ""
	flags := cmd.Flags()
	flags.StringArrayVar(&f.crds, "crds", nil, "`PATH` of CRD manifests: which custom resources are cluster-scoped")
	flags.StringSliceVarP(&f.namespaces, "namespace", "n", nil, "the `NAME`s that run is limited to by its own --namespace: Roles instead of a ClusterRole")
	flags.StringVar(&f.name, "name", "rectifier", "`NAME` of the roles and bindings")
	flags.StringVar(&f.account, "service-account", "", "bind the roles to this `NAMESPACE/NAME`")
	f.lease.add(cmd, "also what run needs with its own --leader-elect")
	flags.Lookup(leaseName).Usage = "`[NAMESPACE/]NAME` of that Lease; the namespace is by default that of the ServiceAccount in --service-account or --as, or else what run takes"
	flags.StringVar(&f.configMap, configMapFlag, "", "with -o helm, the `NAME` of the ConfigMap that holds the rules: it is named in the values instead of their text")
	flags.BoolVar(&f.authorize, "authorize", false, "also what run needs with its own --authorize")
	flags.BoolVar(&f.readOnly, "read-only", false, "only what is read: enough for run --dry-run and diff --cluster")
	flags.BoolVar(&f.check, "check", false, "ask the cluster what the current identity lacks, instead of printing roles")
	flags.StringVar(&f.as, "as", "", "with --check, the `USER` to ask for, such as system:serviceaccount:NAMESPACE:NAME: the identity must be allowed to impersonate it")
	return cmd
}

// validate refuses what would print a role that cannot be applied.
func (f *rbacFlags) validate(cmd *cobra.Command) (account types.NamespacedName, err error) {
	switch {
	case cmd.Flags().Changed("namespace") && (len(f.namespaces) == 0 || slices.Contains(f.namespaces, "")):
		return account, errors.New("--namespace is empty: is a variable not set? Leave it out for the whole cluster")
	case f.as != "" && !f.check:
		return account, errors.New("--as goes with --check")
	case f.check && f.account != "":
		return account, errors.New("--service-account is for printing roles: to check what a ServiceAccount may do, use --as system:serviceaccount:NAMESPACE:NAME")
	case !f.check && f.output.value == "text":
		return account, errors.New("--output text goes with --check: roles are yaml or json")
	case f.name == "" || len(content.IsPathSegmentName(f.name)) > 0:
		return account, fmt.Errorf("--name %q cannot be the name of a role", f.name)
	}
	if err := cmp.Or(checkNamespaces(f.namespaces...), f.validateHelm(cmd)); err != nil {
		return account, err
	}
	if err := f.lease.validate(cmd); err != nil {
		return account, err
	}
	return namespacedName("service-account", f.account)
}

// leaseNamespace is where the ServiceAccount's pods look for their Lease; empty
// if no ServiceAccount is named.
func (f *rbacFlags) leaseNamespace(account types.NamespacedName) string {
	if namespace, _, err := serviceaccount.SplitUsername(f.as); err == nil {
		return namespace
	}
	return account.Namespace
}

// namespacedName reads a flag of the form NAMESPACE/NAME; empty is allowed.
func namespacedName(flag, value string) (types.NamespacedName, error) {
	if value == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("--%s must be NAMESPACE/NAME, not %q", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func (f *rbacFlags) run(cmd *cobra.Command, s streams) error {
	if err := f.output.check(); err != nil {
		return err
	}
	account, err := f.validate(cmd)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if err := oneStdin(f.rules.paths, f.crds); err != nil {
		return err
	}
	sources, err := f.rules.sources(s)
	if err != nil {
		return err
	}
	set, definitions, problems, err := f.rules.compile(s, sources)
	if err != nil {
		return err
	}
	known, err := f.known(s)
	if err != nil {
		return err
	}
	lease, err := f.lease.lease(&f.cluster, f.leaseNamespace(account))
	if err != nil {
		return err
	}
	options := rbac.Options{Namespaces: f.namespaces, ReadOnly: f.readOnly, Lease: lease, Authorize: f.authorize, Known: known}
	complete := false
	switch {
	case f.check:
		complete, err = f.ask(cmd.Context(), s, set, options)
	case f.output.value == "helm":
		complete, err = f.printHelm(s, sources, definitions, problems, rbac.For(set, options))
	default:
		complete, err = f.print(s, rbac.For(set, options), account)
	}
	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		return &exitError{exitUsage, fmt.Errorf("%s: not all rights that are needed are known", doNotCompile(problems))}
	case !complete:
		return &exitError{code: exitFindings}
	}
	return nil
}

// known tells which resources are cluster-scoped, by the CRDs that were given
// and the kinds of Kubernetes itself.
func (f *rbacFlags) known(s streams) (func(schema.GroupVersionResource) rbac.Resource, error) {
	catalog, _, err := readCatalog(f.crds, s)
	if err != nil {
		return nil, err
	}
	kubernetes, err := gvr.NewCatalog()
	if err != nil {
		return nil, err
	}
	return func(resource schema.GroupVersionResource) rbac.Resource {
		out := rbac.Resource{Builtin: len(kubernetes.Kinds(resource)) > 0}
		for _, kind := range catalog.Kinds(resource) {
			for _, info := range catalog.Info(resource.GroupVersion().WithKind(kind)) {
				out.ClusterScoped = out.ClusterScoped || !info.Namespaced
			}
		}
		return out
	}, nil
}

// print prints the roles; it is not complete if rules had to be left out.
func (f *rbacFlags) print(s streams, needs rbac.Needs, account types.NamespacedName) (complete bool, err error) {
	for _, warning := range needs.Warnings() {
		fmt.Fprintln(s.err, "warning:", warning)
	}
	complete = tellParked(s, needs)
	roles := rbac.Roles(needs, f.name, account)
	if f.output.value == "json" {
		list, err := rbac.List(roles)
		if err != nil {
			return complete, err
		}
		return complete, printData(s, f.output.value, list)
	}
	text, err := rbac.YAML(roles)
	if err != nil {
		return complete, err
	}
	if _, err := s.out.Write(text); err != nil {
		return complete, fmt.Errorf("print the roles: %w", err)
	}
	return complete, nil
}

// tellParked tells which rules are left out; true: none.
func tellParked(s streams, needs rbac.Needs) bool {
	for _, p := range needs.Parked {
		fmt.Fprintln(s.err, p)
	}
	return len(needs.Parked) == 0
}
