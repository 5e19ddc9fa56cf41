// What a version must show when it is used: `spec.verify.checks` and `spec.verify.boot` of a policy for golden images.
import { z } from 'zod';
import { ObjectName, QuantityValue } from '#shared/api/kind.ts';

const Quantities = z.record(z.string(), QuantityValue);
const KeyRef = z.object({
  name: ObjectName.min(1).describe('name of the object, in this namespace'),
  key: z.string().min(1).max(253).describe('which of its entries'),
});

const Variable = z.object({
  name: z.string().min(1).max(253).describe('name of the variable'),
  value: z.string().max(4096).optional().describe('its value'),
  valueFrom: z
    .object({
      secretKeyRef: KeyRef.optional().describe('an entry of a Secret'),
      configMapKeyRef: KeyRef.optional().describe('an entry of a ConfigMap'),
    })
    .optional()
    .describe('where its value is, in place of value'),
});

export const Check = z.object({
  name: ObjectName.min(1).max(63).describe('name of the check; neither signature nor boot'),
  image: z.string().min(1).max(1024).describe('image of its container'),
  command: z.array(z.string().max(8192)).max(64).optional().describe('what it runs; default: that of the image'),
  args: z.array(z.string().max(8192)).max(64).optional().describe('its arguments'),
  env: z
    .array(Variable)
    .max(64)
    .optional()
    .describe(
      'its environment. BULLION_DISK is the path of the disk: a file or a device. BULLION_VERSION and BULLION_DIGEST say what it holds',
    ),
  resources: z
    .object({ requests: Quantities.optional(), limits: Quantities.optional() })
    .optional()
    .describe('CPU and memory, as in a pod'),
  imagePullSecrets: z
    .array(z.object({ name: ObjectName.min(1).describe('name of a Secret of this namespace') }))
    .max(8)
    .optional()
    .describe('credentials for its image, beside those of the account default of the namespace'),
  timeout: z.string().optional().describe('the time it has once its pod is on a node, such as 90s or 1h; default: 10m'),
});
export type Check = z.infer<typeof Check>;

export const Boot = z
  .object({
    until: z
      .enum(['AgentConnected', 'Running'])
      .optional()
      .describe(
        'the sign that it has started. AgentConnected: its guest agent answers; Running: the machine runs for the time of runningFor. Default: AgentConnected',
      ),
    timeout: z.string().optional().describe('the time it has once the machine runs, such as 90s or 10m; default: 5m'),
    runningFor: z.string().optional().describe('with Running: how long the machine must run; default: 1m'),
    memory: QuantityValue.optional().describe('memory of the machine; default: 1Gi'),
    firmware: z.enum(['bios', 'efi']).optional().describe('what it starts by; default: bios'),
  })
  .describe(
    'it must start: a VirtualMachineInstance without a network, on a throw-away clone. Needs KubeVirt in the cluster',
  );
export type Boot = z.infer<typeof Boot>;
