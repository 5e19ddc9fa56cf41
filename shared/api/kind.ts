// How a kind we serve is described: everything a CRD, a client and the docs need, in one object per kind.
import { z } from 'zod';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date' | 'number';
  readonly jsonPath: string;
  readonly description?: string;
  /** Above 0: shown by `-o wide` only. */
  readonly priority?: number;
}

/** One served kind. `spec` and `status` are the schemas of those two fields; `spec` is required, `status` is a subresource. */
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
  /** The field the fault is shown at, from the schema the rule stands on: `.url`. Left out: that schema's own field. */
  readonly fieldPath?: string;
}

/** An optional field that may be neither set, changed nor removed after creation. Stands on the object that has the field. */
export const fixedField = (field: string): CelRule => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: `${field} cannot be changed: create a new image instead`,
  fieldPath: `.${field}`,
});

/** As fixedField, for a field that may still be set once when it was left out at creation. */
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

/** A whole number of bytes or the like, beyond 32 bits. */
export const Int64 = z.int().meta({ format: 'int64' });

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';

/** What can be the name of an object: it becomes part of paths and of other names. Empty: left out, as clients write it. */
export const ObjectName = z
  .string()
  .max(253)
  .regex(
    new RegExp(`^(${label}(\\.${label})*)?$`),
    'must be a name: lower case letters, digits, - and . (DNS-1123 subdomain)',
  );

/** What can be the name of a namespace. Empty: left out. */
export const NamespaceName = z
  .string()
  .max(63)
  .regex(new RegExp(`^(${label})?$`), 'must be a namespace: lower case letters, digits and - (DNS-1123 label)');

/** A Kubernetes quantity: `3Gi`, `1500M`, or a bare number. */
export const QuantityValue = z.union([z.int(), z.string()]).meta({ 'x-kubernetes-int-or-string': true });
