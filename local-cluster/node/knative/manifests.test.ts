import { expect, it } from 'vitest';
import { arrange } from '#local-cluster/node/knative/manifests.ts';
import type { KubeObject } from '#shared/api/object.ts';

const object = (kind: string, name: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  ...more,
});

const deployment = (name: string, source: string): KubeObject =>
  object('Deployment', name, {
    spec: {
      template: {
        spec: {
          containers: [
            {
              image: `ko://knative.dev/${source}`,
              env: [
                { name: 'OTHER', value: 'ko://knative.dev/serving/cmd/queue' },
                { name: 'IMAGE', valueFrom: { configMapKeyRef: { name: 'images', key: 'some' } } },
              ],
              resources: { requests: { cpu: '100m', memory: '50Mi' }, limits: { cpu: '200m' } },
            },
          ],
        },
      },
    },
  });

it('what runs on the node has its images, and reserves no processor', () => {
  const { objects } = arrange([deployment('webhook', 'eventing/cmd/webhook')], {});
  expect(objects).toMatchObject([
    {
      spec: {
        template: {
          spec: {
            containers: [
              {
                image: 'docker.io/bullion/knative-eventing-webhook:node',
                env: [
                  { value: 'docker.io/bullion/knative-serving-queue:node' },
                  { valueFrom: { configMapKeyRef: { name: 'images', optional: true } } },
                ],
                resources: { requests: { memory: '50Mi' } },
              },
            ],
          },
        },
      },
    },
  ]);
  expect(JSON.stringify(objects)).not.toContain('cpu');
});

it('programs that are not built, and autoscalers that nothing measures for, are left out', () => {
  const found = [deployment('job-sink', 'eventing/cmd/jobsink'), object('HorizontalPodAutoscaler', 'webhook')];
  expect(arrange(found, {}).objects).toEqual([]);
});

it('webhooks come last, and settings are added to what a ConfigMap has', () => {
  const found = [
    object('ValidatingWebhookConfiguration', 'config'),
    object('ConfigMap', 'config-network', { data: { _example: 'text' } }),
    object('CustomResourceDefinition', 'services'),
    object('Namespace', 'knative-serving'),
  ];
  expect(arrange(found, { 'config-network': { 'ingress-class': 'ours' } })).toEqual({
    namespaces: [found[3]],
    definitions: [found[2]],
    objects: [object('ConfigMap', 'config-network', { data: { _example: 'text', 'ingress-class': 'ours' } })],
    webhooks: [found[0]],
  });
});
