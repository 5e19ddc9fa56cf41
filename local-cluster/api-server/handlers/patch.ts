// PATCH in its four forms: JSON patch, merge patch, strategic merge patch (built-in kinds only) and apply.
import { decodeObject } from '../objects/decode.ts';
import { type ApiObject, toJson, type Fields, inGoOrder, isFields, toText } from '../objects/object.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { applyMergePatch } from '../patch/outcome.ts';
import type { PatchOutcome, PatchRefusal } from '../patch/outcome.ts';
import { applyStrategicMergePatch } from '../patch/strategic-merge.ts';
import { type Resource, apiVersionOf } from '../registry/resource.ts';
import { type JsonObject, stableJson, type Json, isObject } from '../schema/json.ts';
import { badRequest, failure, unsupportedMediaType } from '../status/status.ts';
import { mediaTypeOf, parseYaml, readText } from './body.ts';
import type { Call } from './call.ts';
import { type WriteOptions, parseWriteOptions, managerOf } from './options.ts';
import { changeObject, respondChanged, type Change } from './update.ts';
import { ownershipContext } from '../objects/ownership.ts';
import { applyConfig } from '../patch/apply.ts';

const json = 'application/json-patch+json';
const merge = 'application/merge-patch+json';
const strategic = 'application/strategic-merge-patch+json';
export const apply = 'application/apply-patch+yaml';

const acceptedTypes = (resource: Resource): string[] =>
  resource.custom === undefined ? [json, merge, strategic, apply] : [json, merge, apply];

const isPatchType = (type: string): boolean => [json, merge, strategic, apply].includes(type);

const mediaTypeUnknown = () =>
  failure({ code: 415, reason: 'UnsupportedMediaType', message: '415: Unsupported Media Type', details: {} });

const parsePatch = (text: string, type: string): unknown => {
  try {
    return type === apply ? parseYaml(text) : (JSON.parse(text) as unknown);
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`);
  }
};

const run = (resource: Resource, type: string, live: JsonObject, patch: unknown): PatchOutcome => {
  if (type === json) return applyJsonPatch(live, patch);
  if (type === merge) return applyMergePatch(live, patch);
  return applyStrategicMergePatch(resource.schema() ?? {}, live, patch);
};

const sorted = (object: Fields): Fields =>
  Object.fromEntries(Object.entries(object).toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** Whether a patch contains metadata, which is then serialized again. */
const changesMetadata = (patch: unknown): boolean =>
  Array.isArray(patch)
    ? patch.some((operation) => isFields(operation) && toText(operation['path']).startsWith('/metadata'))
    : isFields(patch) && patch['metadata'] !== undefined;

/** The patched object in the field order of the server: parts that the patch contains are sorted, the others are in the order of Go structs. */
const patchedText = (resource: Resource, object: Fields, patch: unknown): string => {
  if (resource.custom !== undefined) return stableJson(object as JsonObject);
  const metadata = isFields(object['metadata']) ? object['metadata'] : {};
  const shown = changesMetadata(patch) ? sorted(metadata) : inGoOrder(metadata);
  return JSON.stringify(sorted({ ...object, metadata: shown }));
};

const patchObject =
  (call: Call, type: string, patch: unknown, options: WriteOptions) => (live: ApiObject | undefined) => {
    const outcome = run(call.resource, type, toJson(live as ApiObject), patch);
    if (outcome.kind === 'refused') throw failure(outcome.code === 422 ? { ...outcome, details: {} } : outcome);
    return decodeObject(outcome.object, call.resource, {
      fieldValidation: options.fieldValidation,
      warn: (text) => call.warnings.add(text),
      strictErrors: outcome.strictErrors,
      patched: patchedText(call.resource, outcome.object as Fields, patch),
    });
  };

export const handlePatch = async (call: Call): Promise<Response> => {
  const type = mediaTypeOf(call.request);
  const accepted = acceptedTypes(call.resource);
  if (!accepted.includes(type)) throw isPatchType(type) ? unsupportedMediaType(accepted) : mediaTypeUnknown();
  const options = parseWriteOptions(call, type);
  const patch = parsePatch(await readText(call.request), type);
  const change =
    type === apply
      ? applyChange(call, patch, options)
      : { build: patchObject(call, type, patch, options), creates: false, tracksItself: false, options };
  return respondChanged(call, await changeObject(call, change));
};

/** Server-side apply: a manager owns the fields that it applies, and fields that it no longer applies are removed. */
const checkType = ({ resource }: Call, config: JsonObject): void => {
  const apiVersion = toText(config['apiVersion']);
  if (apiVersion === '' && toText(config['kind']) === '') throw badRequest('invalid object type: /, Kind=');
  if (apiVersion !== apiVersionOf(resource) || config['kind'] === resource.kind) return;
  const shown = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  throw badRequest(`invalid object type: ${shown}, Kind=${toText(config['kind'])}`);
};

/** Errors of the configuration itself are reported before it is merged. */
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

const applyChange = (call: Call, patch: unknown, options: WriteOptions): Change => {
  const config = checkConfig(call, patch as Json);
  return {
    creates: call.path.subresource === '',
    tracksItself: true,
    options,
    build: (live: ApiObject | undefined) => {
      const { api, resource, path } = call;
      const by = { manager: managerOf(call, options), now: api.clock(), subresource: path.subresource };
      const outcome = applyConfig(ownershipContext(resource, by), live && toJson(live), config, {
        force: options.force === true,
      });
      if (outcome.kind === 'refused') throw refusal(outcome);
      return decodeObject(outcome.object, resource, { fieldValidation: 'Ignore', warn: () => undefined });
    },
  };
};
