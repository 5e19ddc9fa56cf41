// What the actions of a plan would do, as rows for people. Quotas are asked with the rights of who plans; nothing is written. Called by foresee.ts.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { serverMessageOf } from '#shared/clients/kube/wire.ts';
import type { Action } from '#shared/populate/actions.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { isPrimed } from '#shared/populate/volume/prime.ts';
import { AppError, InvalidInput } from '#shared/runtime/errors.ts';

/** A heading and a sentence each. */
export type Rows = readonly (readonly [string, string])[];

/** The API server repeats each fault in its message. */
export const detailOf = (error: AppError): string => {
  const said = serverMessageOf(error);
  const faults = error instanceof InvalidInput ? error.faults.filter(({ message }) => !said.includes(message)) : [];
  return [said, ...faults.map(({ field, message }) => `${field} ${message}`)].join('; ');
};

/** What a step throws that is about the object or the rights of who asks is a row. */
export const orRow = async (heading: string, step: () => Promise<Rows>): Promise<Rows> => {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return [[heading, detailOf(error)]];
  }
};

const refOf = ({ kind }: ResourceType, name: string): string => `${kind} ${name}`;

export const rowsOf = async (kube: KubeClient, action: Action): Promise<Rows> => {
  const { type } = action;
  if (action.do !== 'create') return [[action.do === 'patch' ? 'changes' : 'deletes', refOf(type, action.key.name)]];
  const { object } = action;
  if (type.plural !== persistentVolumeClaims.plural) {
    const role = object.metadata.labels?.[labels.role];
    return [['makes', `${refOf(type, object.metadata.name)}${role === undefined ? '' : ` (${role})`}`]];
  }
  // Quotas and limits of the namespace, asked with the rights of who plans.
  const quota = await orRow('fails', async () => {
    await kube.create(type, object, { dryRun: true });
    return [];
  });
  return [...claimRows(object as PersistentVolumeClaim), ...quota];
};

export const claimRows = (claim: PersistentVolumeClaim): Rows => {
  const {
    storageClassName,
    volumeMode = 'Filesystem',
    accessModes = [],
    resources,
    dataSource,
    dataSourceRef,
  } = claim.spec;
  const size = resources?.requests?.['storage'] ?? 'no size';
  const from = isPrimed(claim) ? undefined : (dataSource ?? dataSourceRef);
  const record = recordOf(claim);
  return [
    [
      'makes',
      `PersistentVolumeClaim ${claim.metadata.name}: ${size} of class ${storageClassName ?? '(the default)'}, ${volumeMode}, ${accessModes.join(', ')}${
        from === undefined ? '' : `, from ${from.kind} ${from.name}`
      }`,
    ],
    ...(record === undefined ? [] : [['clone', `${record.strategy}: ${record.because}`] as const]),
  ];
};
