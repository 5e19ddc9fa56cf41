// POST: decode, admit, set defaults, validate, store. Also the last step of a PUT or an apply of a new object.
import { decodeObject } from '../objects/decode.ts';
import { generateName } from '../objects/names.ts';
import { trackOwnership } from '../objects/ownership.ts';
import type { ApiObject } from '../objects/object.ts';
import { crdCollection } from '../registry/registry.ts';
import { present, toStored } from '../registry/resource.ts';
import { respond } from '../http/respond.ts';
import { alreadyExists, failure, forbidden, plainError } from '../status/status.ts';
import { auditBlockedOwners } from '../admission/namespace.ts';
import { checkEscalation } from '../admission/escalation.ts';
import { denied } from '../auth/user.ts';
import { checkNamespace } from '../admission/namespace.ts';
import { shapeResult } from './get.ts';
import { readDocument } from './body.ts';
import { type Call, isDryRun, storeKey } from './call.ts';
import { type WriteOptions, managerOf, parseWriteOptions } from './options.ts';
import { alignWithPath, checkNew, fillSystemFields } from './write.ts';

/** Attempts at a generated name before the caller has to retry. */
const nameTries = 8;

const isGenerated = (object: ApiObject): boolean =>
  (object.metadata.name ?? '') === '' && (object.metadata.generateName ?? '') !== '';

const wipeSystemFields = (object: ApiObject): void => {
  for (const field of ['uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink']) {
    delete object.metadata[field];
  }
};

const save = (call: Call, object: ApiObject, generated: boolean, dryRun: boolean): ApiObject => {
  const { api, resource } = call;
  for (let attempt = 0; attempt < (generated ? nameTries : 1); attempt += 1) {
    if (attempt > 0) object.metadata.name = generateName(object.metadata.generateName ?? '', api.random);
    const key = storeKey(call, object.metadata.name);
    if (dryRun) {
      if (api.store.get(key) === undefined) return object;
      continue;
    }
    const entry = api.store.create(key, toStored(resource, object));
    if (entry !== undefined) return present(resource, entry.object());
  }
  if (generated) throw nameExhausted(call, object);
  const taken = api.store.get(storeKey(call, object.metadata.name))?.object();
  throw alreadyExists(resource, object.metadata.name ?? '', taken?.metadata.deletionTimestamp !== undefined);
};

const nameExhausted = (call: Call, object: ApiObject) =>
  failure({
    code: 409,
    reason: 'AlreadyExists',
    message: `${call.resource.plural} "${object.metadata.name ?? ''}" already exists, the server was not able to generate a unique name for the object`,
    details: { name: object.metadata.name ?? '', kind: call.resource.plural, retryAfterSeconds: 1 },
  });

/** Objects of a definition that is being deleted cannot be created any more. */
const checkDefinition = (call: Call, name: string): void => {
  const { custom } = call.resource;
  const crd = custom === undefined ? undefined : call.api.strategies().find(crdCollection, '', custom.crdName);
  if (crd?.metadata.deletionTimestamp === undefined) return;
  throw forbidden(call.resource, name, 'create not allowed while custom resource definition is terminating');
};

/** A PUT or an apply that creates an object requires the verb create as well. */
const authorizeCreate = (call: Call): void => {
  const action = { ...call.path, verb: 'create' };
  if (!call.api.authorizer.decide(call.user, action).allowed) throw denied(call.user, 'create', call.path);
  call.api.audit?.(call.user, action);
};

/** Stores a new object that is decoded and has managed fields; returns it as stored. */
export const createObject = async (call: Call, object: ApiObject, options: WriteOptions): Promise<ApiObject> => {
  const { api, resource } = call;
  if (call.info.verb !== 'create') authorizeCreate(call);
  checkDefinition(call, object.metadata.name ?? '');
  checkEscalation(call, object);
  auditBlockedOwners(call, object);
  checkNamespace(call, object.metadata.name ?? '');
  const admitted = await api.admission.mutate(call, { operation: 'CREATE', object, old: undefined, options });
  alignWithPath(call, admitted);
  if ((admitted.metadata.resourceVersion ?? '') !== '') {
    throw plainError('resourceVersion should not be set on objects to be created');
  }
  const generated = isGenerated(admitted);
  fillSystemFields(call, admitted);
  if (generated) admitted.metadata.name = generateName(admitted.metadata.generateName ?? '', api.random);
  resource.strategy.prepareCreate?.(admitted, api.strategies());
  checkNew(call, admitted);
  await api.admission.validate(call, { operation: 'CREATE', object: admitted, old: undefined, options });
  checkNamespace(call, admitted.metadata.name ?? '');
  return save(call, admitted, generated, isDryRun(options));
};

export const handleCreate = async (call: Call): Promise<Response> => {
  const document = await readDocument(call.request);
  const options = parseWriteOptions(call);
  const object = decodeObject(document.value, call.resource, {
    strictErrors: document.strictErrors,
    fieldValidation: options.fieldValidation,
    warn: (text) => call.warnings.add(text),
  });
  if (call.resource.namespaced && call.path.namespace === '')
    call = { ...call, path: { ...call.path, namespace: object.metadata.namespace ?? '' } };
  alignWithPath(call, object);
  wipeSystemFields(object);
  const by = { manager: managerOf(call, options), now: call.api.clock(), subresource: '' };
  const created = await createObject(call, trackOwnership(call.resource, undefined, object, by), options);
  return respond(shapeResult(call, created), { code: 201, encoding: call.form.encoding, warnings: [...call.warnings] });
};
