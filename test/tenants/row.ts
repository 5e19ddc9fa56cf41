// One way in which a tenant may try to get access to objects of another user: what they write, and what protects. Sent by tenants.test.ts, shown in
// docs/security.md.
import type { Draft, Loose } from '#test/support/admission.ts';

/** The attacker may edit `tenant`, and nothing in `victim`, where everything is named `loot`. */
export const tenant = 'tenant';
export const victim = 'victim';
export const loot = 'loot';
/** Occurs in everything that belongs to the victim, and nowhere else. */
export const secretWord = 'Geheimnis';

export const outcomes = {
  refused: 'refused at admission for every user',
  asked: 'refused at admission, unless the API server confirms that the author has the permission',
  stripped: 'removed at admission',
  own: 'looked up only in the namespace of the object',
  inert: 'accepted, but without effect',
} as const;
export type Holds = keyof typeof outcomes;

export interface ObjectRow {
  readonly kind: string;
  /** The field, label, annotation, finalizer or owner reference. */
  readonly reference: string;
  readonly attack: string;
  readonly holds: Holds;
  readonly object: Draft;
  /** The object without the attack, where the refusal names this field. */
  readonly without?: (refused: string) => Draft;
  /** Who creates it for them; default: they do. */
  readonly by?: string | undefined;
  /** Existing objects of the tenant. */
  readonly before?: Draft | undefined;
  /** The permission with which it is accepted: `verb resource[/subresource]`. For `asked`. */
  readonly right?: string | undefined;
}

export const draft = (kind: string, apiVersion: string, spec: Loose | undefined, metadata: Loose = {}): Draft => ({
  apiVersion,
  kind,
  metadata: { name: 'mine', namespace: tenant, ...metadata },
  ...(spec === undefined ? {} : { spec }),
});
