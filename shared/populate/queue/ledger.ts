// What passes have let begin, recorded in a Lease: of two passes that decide at once, one gets a conflict.
import type { z } from 'zod';
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** `schema` accepts `{}`, which a Lease without a valid record stands for. */
export const readLedger = <T>(schema: z.ZodType<T>, lease: Lease | undefined): T =>
  parseJsonAs(schema, lease?.metadata.annotations?.[annotations.admitted]) ?? schema.parse({});

interface Written {
  readonly key: { readonly namespace: string; readonly name: string };
  /** As it was read. */
  readonly lease: Lease | undefined;
  readonly ledger: object;
}

/** Throws Conflict if another pass was first. */
export const writeLedger = async (kube: KubeClient, { key, lease, ledger }: Written): Promise<void> => {
  const text = JSON.stringify(ledger);
  if (lease?.metadata.annotations?.[annotations.admitted] === text) return;
  const metadata = { ...key, ...lease?.metadata, annotations: { [annotations.admitted]: text } };
  const next: Lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: lease?.spec ?? {} };
  await (lease === undefined ? kube.create(leases, next) : kube.replace(leases, next));
};
