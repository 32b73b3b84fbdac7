// Package install installs Rectifier as people do, on a real API server, and
// lets it work there with just the rights that it was given. It has no code, only
// tests, which `make deploy-test` runs:
//
//   - the chart (deploy/chart): lint, refused values, `helm install`, upgrade and
//     uninstall, with everything on, in namespaces, with rules and their rights
//   - the kustomize base (deploy/kustomize), which is the chart's default
//     rendering: UPDATE=1 writes it
//   - docs/install.md: its commands are run
//
// The cluster is kube-apiserver with its admission (PodSecurity is a part of it)
// and kube-controller-manager, which makes ReplicaSets and Pods. Nothing runs
// pods, so a test starts a kubelet in its own process (kubelet_test.go). It runs
// the real binary with the container's args, the pod's token and its ConfigMaps, probes
// it as the pod says, and ends it as the kubelet would. What differs from a node is
// told there.
package install
