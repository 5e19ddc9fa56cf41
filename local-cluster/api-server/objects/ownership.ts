// managedFields: who last set which field. The algorithm is in ../patch; this file is its caller in writes.
import { type WriteContext, resetFieldsOf, trackUpdate } from '../patch/apply.ts';
import { type Resource, apiVersionOf } from '../registry/resource.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { fullSchema } from './decode.ts';
import { type ApiObject, fromJson, toJson } from './object.ts';

export interface Ownership {
  readonly manager: string;
  readonly now: Date;
  readonly subresource: string;
}

const anything: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

export const ownershipContext = (resource: Resource, { manager, now, subresource }: Ownership): WriteContext => ({
  schema: fullSchema(resource.schema() ?? anything),
  manager,
  apiVersion: apiVersionOf(resource),
  subresource,
  now,
  resetFields: resetFieldsOf({
    custom: resource.custom !== undefined,
    hasStatus: resource.strategy.hasStatus,
    subresource,
  }),
});

/** The object with managedFields that record what this write changed compared with `before`. */
export const trackOwnership = (
  resource: Resource,
  before: ApiObject | undefined,
  after: ApiObject,
  by: Ownership,
): ApiObject =>
  structuredClone(fromJson(trackUpdate(ownershipContext(resource, by), before && toJson(before), toJson(after))));
