// Package check holds the manifests of deployments against the types of what reads them. It is a
// module of its own, so that nobody who uses Sotto downloads Kubernetes.
package check

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// strictly reads one document into the type of its kind: unknown and doubled fields, and values of
// another type, are errors.
func strictly(doc []byte) (any, error) {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return nil, err
	}
	into := map[metav1.TypeMeta]any{
		{APIVersion: "apps/v1", Kind: "Deployment"}:            &appsv1.Deployment{},
		{APIVersion: "batch/v1", Kind: "Job"}:                  &batchv1.Job{},
		{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}: &policyv1.PodDisruptionBudget{},
		{APIVersion: "v1", Kind: "PersistentVolumeClaim"}:      &corev1.PersistentVolumeClaim{},
		{APIVersion: "v1", Kind: "Secret"}:                     &corev1.Secret{},
		{APIVersion: "v1", Kind: "Service"}:                    &corev1.Service{},
	}[head]
	if into == nil {
		return nil, fmt.Errorf("%v is not known", head)
	}
	return into, yaml.UnmarshalStrict(doc, into)
}

func TestKubernetes(t *testing.T) {
	files, err := filepath.Glob("../kubernetes*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../kubernetes*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, path := range append(files, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range bytes.Split(text, []byte("\n---\n")) {
			got, err := strictly(doc)
			if err != nil {
				t.Errorf("%s, document %d: %v", path, i, err)
				continue
			}
			all[fmt.Sprintf("%T", got)] = got
		}
		// The check can fail.
		broken := bytes.Replace(text, []byte("metadata:"), []byte("metadatum: {}\nmetadata:"), 1)
		if _, err := strictly(bytes.Split(broken, []byte("\n---\n"))[0]); err == nil {
			t.Errorf("%s: a field that there is not passes", path)
		}
	}
	if t.Failed() {
		return
	}
	// What the parts say of each other.
	d, b := all["*v1.Deployment"].(*appsv1.Deployment), all["*v1.PodDisruptionBudget"].(*policyv1.PodDisruptionBudget)
	s, k := all["*v1.Service"].(*corev1.Service), all["*v1.Secret"].(*corev1.Secret)
	labels := d.Spec.Template.Labels
	for name, selector := range map[string]map[string]string{"deployment": d.Spec.Selector.MatchLabels,
		"budget": b.Spec.Selector.MatchLabels, "service": s.Spec.Selector} {
		for key, value := range selector {
			if labels[key] != value || len(selector) == 0 {
				t.Errorf("the %s selects %v, the pods have %v", name, selector, labels)
			}
		}
	}
	if *d.Spec.Replicas != 2 || b.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("%d replicas, %v must be there", *d.Spec.Replicas, b.Spec.MinAvailable)
	}
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for name, p := range map[string]*corev1.Probe{"start": c.StartupProbe, "live": c.LivenessProbe,
		"ready": c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || !ports[p.HTTPGet.Port.StrVal] {
			t.Errorf("%s: %v", name, p)
		}
	}
	if !ports[s.Spec.Ports[0].TargetPort.StrVal] {
		t.Errorf("the service is of port %v", s.Spec.Ports[0].TargetPort)
	}
	mounted := map[string]bool{}
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = true
	}
	for _, v := range pod.Volumes {
		if !mounted[v.Name] {
			t.Errorf("volume %s is not mounted", v.Name)
		}
		if v.Secret == nil {
			continue
		}
		for _, item := range v.Secret.Items {
			if v.Secret.SecretName != k.Name || k.StringData[item.Key] == "" {
				t.Errorf("secret %s has no %s", v.Secret.SecretName, item.Key)
			}
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			if r := e.ValueFrom.SecretKeyRef; r.Name != k.Name || k.StringData[r.Key] == "" {
				t.Errorf("%s is of %s, %s", e.Name, r.Name, r.Key)
			}
		}
	}
	if x := c.SecurityContext; !*pod.SecurityContext.RunAsNonRoot || *x.AllowPrivilegeEscalation ||
		!*x.ReadOnlyRootFilesystem || len(k.StringData["admin.key"]) >= 32 {
		t.Errorf("%v, or a key that would be taken as it is", x)
	}
}

func TestCompose(t *testing.T) {
	text, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	load := func(text []byte, env types.Mapping) (*types.Project, error) {
		return loader.LoadWithContext(context.Background(), types.ConfigDetails{WorkingDir: "..",
			ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}}, Environment: env})
	}
	p, err := load(text, types.Mapping{"SOTTO_DB_PASSWORD": "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sotto-a", "sotto-b"} {
		s, err := p.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		at := s.Environment["SOTTO_ADVERTISE"]
		if at == nil || *at != "http://"+name+":8080" || s.Environment["SOTTO_DATABASE"] == nil ||
			len(s.Secrets) != 1 || !s.ReadOnly {
			t.Errorf("%s: %+v", name, s)
		}
		if _, ok := s.DependsOn["postgres"]; !ok {
			t.Errorf("%s does not wait for its database", name)
		}
	}
	if _, err := load(text, nil); err == nil {
		t.Error("it starts without a password")
	}
	for _, broken := range []string{"restarts: always", "ports: 7"} { // the check can fail
		if _, err := load(bytes.Replace(text, []byte("  sotto-a:\n"), []byte("  sotto-a:\n    "+broken+"\n"), 1),
			types.Mapping{"SOTTO_DB_PASSWORD": "x"}); err == nil {
			t.Errorf("%s passes", broken)
		}
	}
}
