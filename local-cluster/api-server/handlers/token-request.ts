// POST to serviceaccounts/<name>/token: a signed token for the account.
import { type ApiObject, type Fields, fieldsAt, isFields, numberAt, textAt } from '../objects/object.ts';
import { trackOwnership } from '../objects/ownership.ts';
import { respond } from '../http/respond.ts';
import { type Subresource, groupVersion } from '../registry/resource.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { invalid as invalidCause } from '../schema/cause.ts';
import { conflict, invalid, notFound } from '../status/status.ts';
import { type Call, timestamp } from './call.ts';
import { getObject } from './get.ts';
import { type WriteOptions, managerOf, parseWriteOptions } from './options.ts';
import { readAs } from './body.ts';

/** The pod or secret that a token is bound to; throws a 404 or 409 when it does not exist or has another UID. */
const boundObject = (call: Call, reference: unknown) => {
  if (!isFields(reference)) return undefined;
  const kind = textAt(reference, 'kind') === 'Pod' ? 'Pod' : 'Secret';
  const plural = `${kind.toLowerCase()}s`;
  const name = textAt(reference, 'name') ?? '';
  const object = call.api.strategies().find(plural, call.path.namespace, name);
  if (object === undefined) throw notFound({ group: '', plural }, name);
  const uid = object.metadata.uid ?? '';
  const wanted = textAt(reference, 'uid') ?? uid;
  if (wanted !== uid) {
    throw conflict(
      { group: '', plural },
      name,
      `the UID in the bound object reference (${wanted}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  return { kind, name, uid } as const;
};

/** managedFields of a token request, which are tracked although it is never stored. */
const ownersOf = (call: Call, body: Fields, options: WriteOptions): Fields => {
  const kind = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' };
  const schema = () => builtinSchema(kind.group, kind.version, kind.kind);
  const request: ApiObject = {
    apiVersion: groupVersion(kind.group, kind.version),
    kind: kind.kind,
    metadata: {},
    spec: body['spec'],
  };
  const by = { manager: managerOf(call, options), now: call.api.clock(), subresource: 'token' };
  const { managedFields } = trackOwnership({ ...call.resource, ...kind, schema }, undefined, request, by).metadata;
  return managedFields === undefined ? {} : { managedFields };
};

const minSeconds = 600;
const maxSeconds = 2 ** 32;
const defaultSeconds = 3600;

export const handleTokenRequest = async (call: Call, sub: Subresource): Promise<Response> => {
  const options = parseWriteOptions(call);
  const body = await readAs(call, sub, options);
  const account = getObject(call);
  const spec = fieldsAt(body, 'spec');
  const seconds = numberAt(spec, 'expirationSeconds') ?? defaultSeconds;
  const field = 'spec.expirationSeconds';
  const causes = [
    ...(seconds < minSeconds ? [invalidCause(field, seconds, 'may not specify a duration less than 10 minutes')] : []),
    ...(seconds > maxSeconds
      ? [invalidCause(field, seconds, 'may not specify a duration larger than 2^32 seconds')]
      : []),
  ];
  if (causes.length > 0) throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', causes);
  const { namespace = '', name = '', uid = '' } = account.metadata;
  const asked = Array.isArray(spec['audiences']) ? spec['audiences'].map(String) : [];
  const audiences = asked.length === 0 ? call.api.tokens.audiences : asked;
  const bound = boundObject(call, spec['boundObjectRef']);
  const issued = call.api.tokens.issue({
    namespace,
    name,
    uid,
    audiences,
    expirationSeconds: seconds,
    ...(bound === undefined ? {} : { bound }),
  });
  const answer = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: {
      name,
      namespace,
      uid,
      creationTimestamp: timestamp(call.api.clock()),
      ...ownersOf(call, body, options),
    },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: spec['boundObjectRef'] ?? null },
    status: { token: issued.token, expirationTimestamp: timestamp(issued.expires) },
  };
  return respond(answer, { code: 201 });
};
