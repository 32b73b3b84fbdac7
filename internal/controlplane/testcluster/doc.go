// Package testcluster gives the tests of one package one real control plane,
// started at the first call of Start and stopped when the package's tests have
// ended, failed or panicked.
//
//	func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := testcluster.Start(t)
//		namespace := testcluster.Namespace(t)
//		…
//	}
//
// The control plane is shared: tests keep apart by their own namespaces, and
// by their own names for what is not namespaced. It has an audit log, in which a
// test filters by namespace or user. Nothing in it is deleted between tests; no
// controller manager runs, so a deleted namespace would not go away anyhow.
//
// `go test -short` skips the tests that call Start, with the reason. Without
// -short and without the servers' binaries they fail and say how to build them.
//
// A test that needs other options, or kills a server, calls controlplane.Start
// itself. All functions may be called from parallel tests.
package testcluster
