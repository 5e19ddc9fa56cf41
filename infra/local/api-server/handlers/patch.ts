// PATCH in its four forms: JSON patch, merge patch, strategic merge patch (built-in kinds only) and apply.
import { parse } from 'yaml';
import { decodeObject } from '../objects/decode.ts';
import type { ApiObject } from '../objects/object.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { applyMergePatch } from '../patch/merge-patch.ts';
import type { PatchOutcome } from '../patch/outcome.ts';
import { applyStrategicMergePatch } from '../patch/strategic-merge.ts';
import type { Resource } from '../registry/resource.ts';
import type { JsonObject } from '../schema/json.ts';
import { badRequest, failure, unsupportedMediaType } from '../status/status.ts';
import { mediaTypeOf, readText } from './body.ts';
import type { Call } from './call.ts';
import { type WriteOptions, parseWriteOptions } from './options.ts';
import { applyChange } from './apply.ts';
import { changeObject, respondChanged } from './update.ts';

const json = 'application/json-patch+json';
const merge = 'application/merge-patch+json';
const strategic = 'application/strategic-merge-patch+json';
export const apply = 'application/apply-patch+yaml';

const acceptedTypes = (resource: Resource): string[] =>
  resource.custom === undefined ? [json, merge, strategic, apply] : [json, merge, apply];

const parsePatch = (text: string, type: string): unknown => {
  try {
    return type === apply ? (parse(text) as unknown) : (JSON.parse(text) as unknown);
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`);
  }
};

const run = (resource: Resource, type: string, live: JsonObject, patch: unknown): PatchOutcome => {
  if (type === json) return applyJsonPatch(live, patch);
  if (type === merge) return applyMergePatch(live, patch);
  return applyStrategicMergePatch(resource.schema() ?? {}, live, patch);
};

const patchObject =
  (call: Call, type: string, patch: unknown, options: WriteOptions) => (live: ApiObject | undefined) => {
    const outcome = run(call.resource, type, live as unknown as JsonObject, patch);
    if (outcome.kind === 'refused') throw failure(outcome);
    return decodeObject(outcome.object, call.resource, {
      fieldValidation: options.fieldValidation,
      warn: (text) => call.warnings.add(text),
      strictErrors: outcome.strictErrors,
    });
  };

export const handlePatch = async (call: Call): Promise<Response> => {
  const type = mediaTypeOf(call.request);
  const accepted = acceptedTypes(call.resource);
  if (!accepted.includes(type)) throw unsupportedMediaType(accepted);
  const options = parseWriteOptions(call, type);
  const patch = parsePatch(await readText(call.request), type);
  const change =
    type === apply
      ? applyChange(call, patch, options)
      : { build: patchObject(call, type, patch, options), creates: false, tracksItself: false, options };
  return respondChanged(call, await changeObject(call, change));
};
