// Command judge says what Knative's own webhooks would say of manifests: it reads one object in JSON a line and writes one line of JSON for each. What the
// cluster's ConfigMaps `config-features` switch on is its argument: {"eventing":{"name":"enabled"},"serving":{"name":"enabled"}}.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	class "knative.dev/eventing/pkg/apis/eventing"
	eventing "knative.dev/eventing/pkg/apis/eventing/v1"
	policies "knative.dev/eventing/pkg/apis/eventing/v1alpha1"
	"knative.dev/eventing/pkg/apis/feature"
	sources "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"
	"knative.dev/serving/pkg/apis/config"
	serving "knative.dev/serving/pkg/apis/serving/v1"
)

type judged interface {
	apis.Defaultable
	apis.Validatable
}

type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

type answer struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Fault string `json:"fault"`
}

func emptyOf(kind header) judged {
	switch kind.APIVersion + " " + kind.Kind {
	case "eventing.knative.dev/v1 Broker":
		return &eventing.Broker{}
	case "eventing.knative.dev/v1 Trigger":
		return &eventing.Trigger{}
	case "eventing.knative.dev/v1alpha1 EventPolicy":
		return &policies.EventPolicy{}
	case "sources.knative.dev/v1 ApiServerSource":
		return &sources.ApiServerSource{}
	case "sources.knative.dev/v1 PingSource":
		return &sources.PingSource{}
	case "sources.knative.dev/v1 SinkBinding":
		return &sources.SinkBinding{}
	case "serving.knative.dev/v1 Service":
		return &serving.Service{}
	}
	return nil
}

// judge decodes strictly, fills in defaults and validates, as the webhooks do for an object that is created.
func judge(ctx context.Context, kind header, line []byte) string {
	object := emptyOf(kind)
	if object == nil {
		return "is of no kind that is known here"
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		return err.Error()
	}
	object.SetDefaults(ctx)
	if broker, ok := object.(*eventing.Broker); ok && broker.Annotations[class.BrokerClassKey] == "" {
		// What the ConfigMap `config-br-defaults` says where Eventing is installed.
		broker.SetAnnotations(map[string]string{class.BrokerClassKey: class.MTChannelBrokerClassValue})
	}
	if fault := object.Validate(ctx); fault != nil {
		return fault.Error()
	}
	return ""
}

func contextWith(argument string) (context.Context, error) {
	var enabled struct {
		Eventing map[string]string `json:"eventing"`
		Serving  map[string]string `json:"serving"`
	}
	if err := json.Unmarshal([]byte(argument), &enabled); err != nil {
		return nil, fmt.Errorf("the argument is no JSON of features: %w", err)
	}
	flags, err := feature.NewFlagsConfigFromMap(enabled.Eventing)
	if err != nil {
		return nil, err
	}
	features, err := config.NewFeaturesConfigFromMap(enabled.Serving)
	if err != nil {
		return nil, err
	}
	ctx := feature.ToContext(context.Background(), flags)
	return apis.WithinCreate(config.ToContext(ctx, config.FromContextOrDefaults(config.ToContext(ctx, &config.Config{Features: features})))), nil
}

func run() error {
	argument := "{}"
	if len(os.Args) > 1 {
		argument = os.Args[1]
	}
	ctx, err := contextWith(argument)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var kind header
		if err := json.Unmarshal(lines.Bytes(), &kind); err != nil {
			return err
		}
		if err := out.Encode(answer{kind.Kind, kind.Metadata.Name, judge(ctx, kind, lines.Bytes())}); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}
