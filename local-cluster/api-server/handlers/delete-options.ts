// DeleteOptions, from the body or the query of a DELETE.
import { isFields, type Fields } from '../objects/object.ts';
import { forbidden, notSupported, type Cause } from '../schema/cause.ts';
import { badRequest, invalid } from '../status/status.ts';
import { readBody } from './body.ts';
import type { Call } from './call.ts';

export type Propagation = 'Background' | 'Foreground' | 'Orphan';

export interface DeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagation: Propagation | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly dryRun: readonly string[];
  /** As sent to a webhook. */
  readonly raw: Fields;
}

const policies: readonly Propagation[] = ['Foreground', 'Background', 'Orphan'];

const fromQuery = (query: URLSearchParams): Fields => ({
  ...(query.has('gracePeriodSeconds') ? { gracePeriodSeconds: Number(query.get('gracePeriodSeconds')) } : {}),
  ...(query.has('propagationPolicy') ? { propagationPolicy: query.get('propagationPolicy') } : {}),
  ...(query.has('orphanDependents') ? { orphanDependents: query.get('orphanDependents') === 'true' } : {}),
  ...(query.has('dryRun') ? { dryRun: query.getAll('dryRun') } : {}),
});

const propagationOf = (raw: Fields): Propagation | undefined => {
  if (raw['orphanDependents'] !== undefined && raw['orphanDependents'] !== null) {
    return raw['orphanDependents'] === true ? 'Orphan' : 'Background';
  }
  return policies.find((policy) => policy === raw['propagationPolicy']);
};

const causesOf = (raw: Fields): Cause[] => {
  const policy = raw['propagationPolicy'];
  const causes: Cause[] = [];
  if (
    policy !== undefined &&
    policy !== null &&
    raw['orphanDependents'] !== undefined &&
    raw['orphanDependents'] !== null
  ) {
    causes.push(forbidden('propagationPolicy', 'orphanDependents and deletionPropagation cannot be both set'));
  }
  if (typeof policy === 'string' && !policies.some((known) => known === policy)) {
    causes.push(notSupported('propagationPolicy', policy, [...policies, 'nil']));
  }
  const dryRun = Array.isArray(raw['dryRun']) ? raw['dryRun'].map(String) : [];
  if (dryRun.some((value) => value !== 'All')) causes.push(notSupported('dryRun', dryRun as never, ['All']));
  return causes;
};

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Parses and validates the options; throws a 400 or 422. */
export const readDeleteOptions = async (call: Call): Promise<DeleteOptions> => {
  const body = await readBody(call.request);
  if (body !== undefined && !isFields(body)) throw badRequest('the body must be an object of kind DeleteOptions');
  if (body?.['kind'] !== undefined && body['kind'] !== 'DeleteOptions' && body['kind'] !== '') {
    throw badRequest(`decoded object cannot be converted to DeleteOptions`);
  }
  const raw: Fields = body ?? fromQuery(call.info.query);
  const causes = causesOf(raw);
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', causes);
  const preconditions = isFields(raw['preconditions']) ? raw['preconditions'] : {};
  return {
    gracePeriodSeconds: typeof raw['gracePeriodSeconds'] === 'number' ? raw['gracePeriodSeconds'] : undefined,
    propagation: propagationOf(raw),
    uid: text(preconditions['uid']),
    resourceVersion: text(preconditions['resourceVersion']),
    dryRun: Array.isArray(raw['dryRun']) ? raw['dryRun'].map(String) : [],
    raw,
  };
};
