package engine

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// What is measured is a real heap: objects as they are kept of the API server's JSON,
// in a real store.
func TestUnracedTheSizeOfACacheIsEstimated(t *testing.T) {
	for name, object := range map[string]func(i int) string{
		"small ConfigMaps": func(i int) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d","namespace":"ns-%d","uid":"0000-%d","resourceVersion":"%d"},"data":{"key":"value-%d"}}`, i, i%50, i, i, i)
		},
		"ConfigMaps with 2 KiB": func(i int) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d","namespace":"ns-%d"},"data":{"key":"%2048d"}}`, i, i%50, i)
		},
		"Deployments": deploymentJSON,
		"many labels": func(i int) string {
			labels := ""
			for l := range i % 40 {
				labels += fmt.Sprintf(`"example.io/label-%d":"value-%d",`, l, i)
			}
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s-%d","namespace":"ns-%d","labels":{%s"last":"one"}}}`, i, i%50, labels)
		},
	} {
		for kept, fields := range map[string]projection.Fields{
			"whole": projection.Whole(), "labels": {Set: fieldset.Of("metadata", "labels")}, "names": {},
		} {
			t.Run(name+", "+kept, func(t *testing.T) {
				const objects = 4000
				estimated, measured := fillStore(t, objects, object, fields)
				ratio := estimated / measured
				t.Logf("%d objects: estimated %.0f bytes each, measured %.0f: %.2f", objects, estimated, measured, ratio)
				if ratio < 1/1.3 || ratio > 1.3 {
					t.Errorf("the estimate is %.2f times what is measured", ratio)
				}
			})
		}
	}
}

func deploymentJSON(i int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%[1]d","namespace":"ns-%[2]d","uid":"8c3f9a52-0000-0000-0000-%012[1]d",
"resourceVersion":"%[1]d","generation":%[1]d,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web-%[1]d","team":"a"},"annotations":{"deployment.kubernetes.io/revision":"1"}},
"spec":{"replicas":3,"progressDeadlineSeconds":600,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"web-%[1]d"}},
"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%%","maxUnavailable":"25%%"}},
"template":{"metadata":{"labels":{"app":"web-%[1]d"}},"spec":{"containers":[{"name":"web","image":"registry.example/web:%[1]d","imagePullPolicy":"IfNotPresent",
"ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"A","value":"%[1]d"},{"name":"B","value":"b"}],
"resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],
"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}},
"status":{"observedGeneration":1,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,
"conditions":[{"type":"Available","status":"True","lastUpdateTime":"2026-01-02T03:04:05Z","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}]}}`, i, i%50)
}

func TestTheSampleIsBounded(t *testing.T) {
	if got := meanBytes(nil); got != 0 {
		t.Errorf("an empty store has objects of %v bytes", got)
	}
	if got := meanBytes([]int{1, 2, 6}); got != 3 {
		t.Errorf("the mean is %v", got)
	}
}

// fillStore fills a store as that of an informer, and returns what an object
// takes in it: estimated, and measured.
func fillStore(t *testing.T, objects int, object func(i int) string, fields projection.Fields) (estimated, measured float64) {
	t.Helper()
	before := heap()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(object(i))); err != nil {
			t.Fatal(err)
		}
		o, err := projection.Of(u, fields)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	measured = float64(heap()-before) / float64(objects)
	var sample []int
	for i, obj := range store.List() {
		if i < sampledObjects {
			sample = append(sample, obj.(*projection.Object).Bytes())
		}
	}
	return meanBytes(sample), measured
}
