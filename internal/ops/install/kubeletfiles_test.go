package install

import (
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig has a token that is bound to the pod, and nothing else.
func (p *podProcess) kubeconfig(pod *corev1.Pod) string {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}}}
	if pod.Spec.AutomountServiceAccountToken != nil && !*pod.Spec.AutomountServiceAccountToken {
		p.Errorf("the pod %s gets no token", pod.Name)
	}
	token, err := p.client.CoreV1().ServiceAccounts(p.namespace).CreateToken(p.ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		p.told(err)
		return os.DevNull
	}
	path := filepath.Join(p.dir, "kubeconfig")
	writeKubeconfig(p.T, path, p.namespace, token.Status.Token)
	return path
}

func writeKubeconfig(t *testing.T, path, namespace, token string) {
	admin := world.cluster.AdminConfig()
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: admin.Host, CertificateAuthorityData: admin.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: namespace}},
		CurrentContext: "x",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Errorf("write a kubeconfig: %v", err)
	}
}

// updateConfigMaps writes volumes as a kubelet does: a folder whose files are links
// through ..data, which changes at once.
func (p *podProcess) updateConfigMaps(pod *corev1.Pod) {
	if p.volumes == nil {
		p.volumes, p.versions = map[string]string{}, map[string]string{}
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue // the token, which comes by the kubeconfig
		}
		object, err := p.client.CoreV1().ConfigMaps(p.namespace).Get(p.ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			p.told(err)
			continue
		}
		if p.versions[volume.Name] == object.ResourceVersion {
			continue
		}
		path := filepath.Join(p.dir, volume.Name)
		p.volumes[volume.Name], p.versions[volume.Name] = path, object.ResourceVersion
		if err := project(path, object.ResourceVersion, object.Data); err != nil {
			p.Errorf("write the ConfigMap %s: %v", object.Name, err)
		}
	}
}

func project(path, version string, data map[string]string) error {
	folder := "..version_" + version
	if err := os.MkdirAll(filepath.Join(path, folder), 0o755); err != nil {
		return err
	}
	for name, text := range data {
		if err := os.WriteFile(filepath.Join(path, folder, name), []byte(text), 0o644); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(path, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	if err := os.Symlink(folder, filepath.Join(path, "..data_tmp")); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(path, "..data_tmp"), filepath.Join(path, "..data")); err != nil {
		return err
	}
	links, err := filepath.Glob(filepath.Join(path, "[^.]*"))
	for _, link := range links {
		if _, ok := data[filepath.Base(link)]; !ok {
			err = os.Remove(link)
		}
	}
	return err
}
