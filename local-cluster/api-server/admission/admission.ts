// The admission chain as the handlers see it: mutate before, validate after an object has its final form.
import type { Call } from '../handlers/call.ts';
import type { ApiObject, Fields } from '../objects/object.ts';

export interface Attributes {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  /** Absent for deletions. */
  readonly object: ApiObject | undefined;
  /** Absent for creations. */
  readonly old: ApiObject | undefined;
  readonly options: {
    readonly dryRun?: readonly string[];
    readonly raw?: Fields;
    readonly fieldManager?: string | undefined;
  };
}

export interface Admission {
  /** The object after all mutating webhooks; throws a Status when one refuses. */
  readonly mutate: (call: Call, attributes: Attributes & { readonly object: ApiObject }) => Promise<ApiObject>;
  /** Mutating webhooks are asked about deletions too, though there is nothing to change. */
  readonly mutateDelete: (call: Call, attributes: Attributes) => Promise<void>;
  readonly validate: (call: Call, attributes: Attributes) => Promise<void>;
}
