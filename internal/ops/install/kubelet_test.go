package install

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// kubelet runs the pods of one namespace as processes of the real binary. It
// differs from a node's in this:
//
//   - there is no image and no container: the process sees this machine's files
//   - a port of the pod is another one, of 127.0.0.1, so that pods do not meet;
//     that of metrics is one of all addresses, as in a pod: 127.0.0.1 asks nobody
//   - the token and the API server's address come by $KUBECONFIG, whose context
//     names the pod's namespace, as in a pod the mounted files do
//
// Everything else is the pod's: args, environment, token, ConfigMaps that follow
// their object, probes, restarts, grace period.
type kubelet struct {
	*testing.T
	client    *kubernetes.Clientset
	namespace string
	node      string
	ctx       context.Context

	mu   sync.Mutex
	pods map[types.UID]*podProcess
	ends sync.WaitGroup // pods that are being stopped
	logs syncBuffer     // of all pods
}

// syncBuffer can be read while it is written.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startKubelet runs what is in a namespace until the test ends.
func startKubelet(t *testing.T, namespace string) *kubelet {
	t.Helper()
	client, _ := clients(t)
	k := &kubelet{T: t, client: client, namespace: namespace, node: "node-" + namespace, pods: map[types.UID]*podProcess{}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}} // pods of a node that is not there are collected
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.ctx = ctx
	var loop sync.WaitGroup
	loop.Go(k.loop)
	t.Cleanup(func() {
		cancel()
		loop.Wait()
		k.ends.Wait()
		for _, p := range k.pods {
			p.kill()
		}
		k.cleanUp()
		if t.Failed() {
			t.Log(k.logs.String())
		}
	})
	return k
}

// cleanUp lets go what nobody runs any more, so that the namespace can be deleted.
func (k *kubelet) cleanUp() {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := k.client.CoreV1().Pods(k.namespace).DeleteCollection(context.Background(), now, metav1.ListOptions{}); err != nil {
		k.Errorf("kubelet: delete the pods: %v", err)
	}
	if err := k.client.CoreV1().Nodes().Delete(context.Background(), k.node, now); err != nil {
		k.Errorf("kubelet: delete the node: %v", err)
	}
}

// loop looks at the pods again and again: a test is no place for informers.
func (k *kubelet) loop() {
	for k.ctx.Err() == nil {
		list, err := k.client.CoreV1().Pods(k.namespace).List(k.ctx, metav1.ListOptions{})
		if err == nil {
			for i := range list.Items {
				k.sync(&list.Items[i])
			}
		}
		select {
		case <-k.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (k *kubelet) sync(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: k.node}}
		k.told(k.client.CoreV1().Pods(k.namespace).Bind(k.ctx, binding, metav1.CreateOptions{}))
		return
	}
	k.mu.Lock()
	p := k.pods[pod.UID]
	if p == nil && pod.DeletionTimestamp == nil {
		p = &podProcess{kubelet: k, name: pod.Name, dir: k.TempDir(), ports: map[int32]string{}}
		k.pods[pod.UID] = p
	}
	k.mu.Unlock()
	switch {
	case p == nil:
		k.told(k.client.CoreV1().Pods(k.namespace).Delete(k.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	case pod.DeletionTimestamp != nil:
		p.end(pod)
	default:
		p.keepRunning(pod)
	}
}

// told reports what cannot be: pods that go meanwhile are no error.
func (k *kubelet) told(err error) {
	if err != nil && k.ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.Errorf("kubelet: %v", err)
	}
}

// podProcess is one pod.
type podProcess struct {
	*kubelet
	name, dir string
	ports     map[int32]string // where a port of the pod is
	volumes   map[string]string
	versions  map[string]string // of the ConfigMaps, as they were last written

	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
	log     syncBuffer
	ending  bool
	ready   bool
	starts  int
	codes   []int         // with which it ended
	stopped time.Duration // how long the graceful stop took
}

func (p *podProcess) keepRunning(pod *corev1.Pod) {
	p.updateConfigMaps(pod)
	if p.cmd == nil || p.hasEnded() {
		p.start(pod)
	}
	probe := pod.Spec.Containers[0].ReadinessProbe.HTTPGet
	port := probe.Port.IntVal
	for _, named := range pod.Spec.Containers[0].Ports {
		if named.Name == probe.Port.StrVal {
			port = named.ContainerPort
		}
	}
	ready := get(strings.ToLower(string(probe.Scheme)), p.ports[port], probe.Path)
	if ready == p.ready && pod.Status.Phase == corev1.PodRunning {
		return
	}
	p.ready = ready
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "127.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()},
		{Type: corev1.ContainersReady, Status: status, LastTransitionTime: metav1.Now()},
	}
	_, err := p.client.CoreV1().Pods(p.namespace).UpdateStatus(p.ctx, pod, metav1.UpdateOptions{})
	p.told(err)
}

// get probes as a kubelet does, which checks no certificate.
func get(scheme, address, path string) bool {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Get(cmp.Or(scheme, "http") + "://" + address + path)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode >= 200 && response.StatusCode < 400
}

func (p *podProcess) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// hostname runs a command (its arguments from the third on) on a host that is named
// as a pod is (the second), if the system lets it: the Lease names the host.
var hostname = []string{"unshare", "--uts", "--map-root-user", "sh", "-c", `hostname "$0" && exec "$@"`}

func (p *podProcess) start(pod *corev1.Pod) {
	container := pod.Spec.Containers[0]
	if p.starts++; p.starts > 20 {
		return
	}
	args := p.mapped(container)
	cmd := exec.Command(hostname[0], slices.Concat(hostname[1:], []string{p.name, filepath.Join(world.programs, "rectifier")}, args)...)
	cmd.Dir = p.dir
	cmd.Env = []string{"KUBECONFIG=" + p.kubeconfig(pod)}
	for _, env := range container.Env {
		cmd.Env = append(cmd.Env, env.Name+"="+env.Value)
	}
	cmd.Stderr = io.MultiWriter(&p.log, &p.logs)
	p.cmd, p.done = cmd, make(chan struct{})
	if err := cmd.Start(); err != nil {
		p.Errorf("start the pod %s: %v", p.name, err)
		close(p.done)
		return
	}
	done := p.done
	go func() {
		_ = cmd.Wait()
		p.mu.Lock()
		p.codes = append(p.codes, cmd.ProcessState.ExitCode())
		p.mu.Unlock()
		fmt.Fprintf(&p.logs, "pod %s ended with code %d\n", p.name, cmd.ProcessState.ExitCode())
		close(done)
	}()
}

// mapped are the container's args with paths and ports as they are here.
func (p *podProcess) mapped(container corev1.Container) []string {
	var args []string
	for _, arg := range container.Args {
		flag, value, ok := strings.Cut(arg, "=")
		for _, mount := range container.VolumeMounts {
			if rest, within := strings.CutPrefix(value, mount.MountPath); ok && within {
				arg = flag + "=" + p.volumes[mount.Name] + rest
			}
		}
		if _, port, err := net.SplitHostPort(value); ok && err == nil && strings.HasSuffix(flag, "-address") {
			arg = flag + "=" + p.port(port)
			if flag == "--metrics-address" {
				arg = strings.Replace(arg, "127.0.0.1", "", 1)
			}
		}
		args = append(args, arg)
	}
	return args
}

// port gives a port of the pod a free one.
func (p *podProcess) port(port string) string {
	var number int32
	_, _ = fmt.Sscan(port, &number)
	for p.ports[number] == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			p.Errorf("find a port: %v", err)
			return ""
		}
		address := listener.Addr().String()
		listener.Close()
		if _, taken := usedPorts.LoadOrStore(address, true); !taken {
			p.ports[number] = address
		}
	}
	return p.ports[number]
}

// usedPorts are those that were given to a pod: a port that is free now may be
// that of a pod which is about to start.
var usedPorts sync.Map

// end stops the process as a node does, and then lets the pod go.
func (p *podProcess) end(pod *corev1.Pod) {
	if p.ending {
		return
	}
	p.ending = true
	p.ends.Go(func() {
		grace, begin := time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second, time.Now()
		if p.cmd != nil && p.cmd.Process != nil {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-p.done:
			case <-time.After(grace):
				p.Errorf("the pod %s did not end within %s", p.name, grace)
				p.kill()
			}
		}
		p.mu.Lock()
		p.stopped = time.Since(begin)
		p.mu.Unlock()
		p.told(p.client.CoreV1().Pods(p.namespace).Delete(p.ctx, p.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	})
}

func (p *podProcess) kill() {
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
