// Server-side apply: the fields a manager states are its own, and those it no longer states go.
import { decodeObject } from '../objects/decode.ts';
import { type ApiObject, toText } from '../objects/object.ts';
import { apiVersionOf } from '../registry/resource.ts';
import { ownershipContext } from '../objects/ownership.ts';
import { applyConfig } from '../patch/apply.ts';
import type { PatchRefusal } from '../patch/outcome.ts';
import { type Json, type JsonObject, isObject } from '../schema/json.ts';
import { badRequest, failure } from '../status/status.ts';
import type { Call } from './call.ts';
import { type WriteOptions, managerOf } from './options.ts';
import type { Change } from './update.ts';

const checkType = ({ resource }: Call, config: JsonObject): void => {
  const apiVersion = toText(config['apiVersion']);
  if (apiVersion === '' && toText(config['kind']) === '') throw badRequest('invalid object type: /, Kind=');
  if (apiVersion !== apiVersionOf(resource) || config['kind'] === resource.kind) return;
  const shown = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  throw badRequest(`invalid object type: ${shown}, Kind=${toText(config['kind'])}`);
};

/** Faults of the configuration itself are told before it is merged. */
const checkConfig = (call: Call, config: Json): JsonObject => {
  if (isObject(config)) checkType(call, config);
  if (!isObject(config)) throw badRequest('error decoding YAML: the patch must be an object');
  return config;
};

const refusal = ({ code, reason, message, causes = [] }: PatchRefusal) =>
  failure({
    code,
    message,
    ...(reason === '' ? {} : { reason }),
    ...(causes.length === 0 ? {} : { details: { causes: causes as never } }),
  });

export const applyChange = (call: Call, patch: unknown, options: WriteOptions): Change => {
  const config = checkConfig(call, patch as Json);
  return {
    creates: call.path.subresource === '',
    tracksItself: true,
    options,
    build: (live: ApiObject | undefined) => {
      const { api, resource, path } = call;
      const by = { manager: managerOf(call, options), now: api.clock(), subresource: path.subresource };
      const outcome = applyConfig(ownershipContext(resource, by), live as unknown as JsonObject | undefined, config, {
        force: options.force === true,
      });
      if (outcome.kind === 'refused') throw refusal(outcome);
      return decodeObject(outcome.object, resource, { fieldValidation: 'Ignore', warn: () => undefined });
    },
  };
};
