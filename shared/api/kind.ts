// The description of a served kind: everything required for its CRD, clients and docs, in one object.
import { z } from 'zod';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date' | 'number';
  readonly jsonPath: string;
  readonly description?: string;
  /** Above 0: shown only with `-o wide`. */
  readonly priority?: number;
}

/** A served kind. `spec` and `status` are the schemas of those two fields; `spec` is required, `status` is a subresource. */
export interface ServedKind<T extends KubeObject = KubeObject> {
  readonly type: ResourceType<T>;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly description: string;
  readonly spec: z.ZodObject;
  readonly status: z.ZodObject;
  readonly columns: readonly PrinterColumn[];
}

/** A CEL rule of `x-kubernetes-validations`. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  /** The field reported in the error, relative to the schema of the rule: `.url`. Default: the field of that schema itself. */
  readonly fieldPath?: string;
}

/** An optional field that must not be set, changed or removed after creation. Belongs to the object that has the field. */
export const fixedField = (field: string): CelRule => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: `${field} cannot be changed: create a new image instead`,
  fieldPath: `.${field}`,
});

/** Like fixedField, for a field that may still be set once if it was missing at creation. */
export const fixedOnceSet = (field: string): CelRule => ({
  rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
  message: `${field} cannot be changed once it is set`,
  fieldPath: `.${field}`,
});

/** Schema metadata with CEL rules, for `.meta(...)`. */
export const withRules = (
  ...rules: readonly CelRule[]
): { readonly 'x-kubernetes-validations': readonly CelRule[] } => ({
  'x-kubernetes-validations': rules,
});

/** The rule that exactly one of the fields of an object is set, for `withRules`. */
export const exactlyOne = (...fields: readonly string[]): string =>
  `${fields.map((field) => `(has(self.${field}) ? 1 : 0)`).join(' + ')} == 1`;

/** A whole number of bytes or the like, beyond 32 bits. */
export const Int64 = z.int().meta({ format: 'int64' });

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';

/** A valid name of an object: it becomes part of paths and of other names. Empty: not set, as clients write it. */
export const ObjectName = z
  .string()
  .max(253)
  .regex(
    new RegExp(`^(${label}(\\.${label})*)?$`),
    'must be a name: lower case letters, digits, - and . (DNS-1123 subdomain)',
  );

/** A valid name of a namespace. Empty: not set. */
export const NamespaceName = z
  .string()
  .max(63)
  .regex(new RegExp(`^(${label})?$`), 'must be a namespace: lower case letters, digits and - (DNS-1123 label)');

/** A Kubernetes quantity: `3Gi`, `1500M`, or a bare number. */
export const QuantityValue = z.union([z.int(), z.string()]).meta({ 'x-kubernetes-int-or-string': true });
