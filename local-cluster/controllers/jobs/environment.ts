// The environment of a container, as the kubelet would set it.
import { type Container, type EnvVar, type Pod, configMaps, secrets } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Obstacle } from '#local-cluster/controllers/jobs/mounts.ts';
import { createHash } from 'node:crypto';

export type Environment = Readonly<Record<string, string>>;

/** Values by name in the specified order, with `$(NAME)` of earlier ones expanded; or what is missing. */
export const resolveEnvironment = async (
  kube: KubeClient,
  pod: Pod,
  container: Container,
): Promise<{ readonly values: Environment } | Obstacle> => {
  const values: Record<string, string> = {};
  for (const variable of container.env ?? []) {
    const value = await resolveVariable(kube, pod, variable);
    if (typeof value === 'object') return value;
    if (value !== undefined) values[variable.name] = expandReferences(value, values);
  }
  return { values };
};

/** `$(NAME)` becomes its value, `$$(NAME)` the text `$(NAME)`; unknown names are unchanged. */
export const expandReferences = (text: string, values: Environment): string =>
  text.replaceAll(/\$(\$?)\(([A-Za-z_][\w.-]*)\)/g, (whole, escape: string, name: string) =>
    escape === '$' ? whole.slice(1) : (values[name] ?? whole),
  );

const resolveVariable = async (
  kube: KubeClient,
  pod: Pod,
  { value, valueFrom }: EnvVar,
): Promise<string | undefined | Obstacle> => {
  if (valueFrom === undefined) return value ?? '';
  if (valueFrom.fieldRef !== undefined) return fieldOf(pod, valueFrom.fieldRef.fieldPath);
  const reference = valueFrom.secretKeyRef ?? valueFrom.configMapKeyRef;
  if (reference === undefined) return { reason: 'CreateContainerConfigError', message: 'unknown kind of valueFrom' };
  const found = await valueOfKey(kube, pod.metadata.namespace ?? 'default', valueFrom);
  if (found !== undefined || reference.optional === true) return found;
  const kind = valueFrom.secretKeyRef === undefined ? 'configmap' : 'secret';
  return {
    reason: 'CreateContainerConfigError',
    message: `${kind} "${reference.name}" has no key "${reference.key}" or does not exist`,
  };
};

const valueOfKey = async (
  kube: KubeClient,
  namespace: string,
  { secretKeyRef, configMapKeyRef }: NonNullable<EnvVar['valueFrom']>,
): Promise<string | undefined> => {
  if (secretKeyRef !== undefined) {
    const secret = await kube.get(secrets, { namespace, name: secretKeyRef.name });
    const encoded = secret?.data?.[secretKeyRef.key];
    return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString();
  }
  const configMap = await kube.get(configMaps, { namespace, name: configMapKeyRef?.name ?? '' });
  return configMap?.data?.[configMapKeyRef?.key ?? ''];
};

const fieldOf = (pod: Pod, path: string): string => {
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (keyed !== null) return pod.metadata[keyed[1] as 'labels' | 'annotations']?.[keyed[2] ?? ''] ?? '';
  const simple: Readonly<Record<string, string | undefined>> = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace,
    'metadata.uid': pod.metadata.uid,
    'spec.nodeName': pod.spec.nodeName,
    'spec.serviceAccountName': pod.spec.serviceAccountName,
    'status.podIP': podAddressOf(pod),
    'status.hostIP': '127.0.0.1',
  };
  return simple[path] ?? '';
};

// The address of a pod: one of the loopback network, so that pods which listen on the same port do not conflict.

/** Only Linux supports all of 127.0.0.0/8: elsewhere pods share one address, and only one of them at a time can listen on a port. */
const hasWideLoopback = process.platform === 'linux';

/** Constant for the lifetime of a pod: derived from its UID, in 127.64.0.0/10. */
export const podAddressOf = ({ metadata: { uid = '' } }: Pod): string => {
  if (!hasWideLoopback) return '127.0.0.1';
  const [a = 0, b = 0, c = 0] = createHash('sha256').update(uid).digest();
  return `127.${64 + (a % 64)}.${b}.${1 + (c % 254)}`;
};
