// What a function that reconciles works with, made once at its edge and passed in; and one object under reconciliation.
import type { TemplateSettings } from '#shared/resources/templates/ask.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { BackendRegistry } from '#shared/backends/registry.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import type { TrustLook } from '#shared/resources/trust.ts';
import type { ConfigLook } from '#shared/resources/cdi-config/look.ts';
import type { Logger } from '#shared/runtime/log.ts';
import type { Announce } from '#shared/resources/announcer.ts';
import type { Observe } from '#shared/golden/poll/observe.ts';
import type { Send } from '#events/sender.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { Resource } from '#shared/resources/reconciler.ts';

export interface ReconcileDeps {
  readonly kube: KubeClient;
  readonly backends: BackendRegistry;
  readonly settings: PopulateSettings;
  /** Left out: our own. */
  readonly cdi?: CdiLook | undefined;
  /** Left out: the well-known authorities alone are trusted. */
  readonly trust?: TrustLook | undefined;
  /** Left out: settings of the functions alone count. */
  readonly config?: ConfigLook | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Logger;
  /** Left out: nobody is told. */
  readonly announce?: Announce | undefined;
  /** How templates of HyperConverged and SSP are treated; left out: they are not looked at. */
  readonly templates?: TemplateSettings | undefined;
  /** Looks at sources that crons follow; left out: nobody polls. */
  readonly observe?: Observe | undefined;
  /** Where people reach the transfer function; left out: nobody is told. */
  readonly publicUrl?: string | undefined;
  /** Sends events to other functions; left out: their work is done here. */
  readonly send?: Send | undefined;
}

/** One object under the hand of one pass. */
export interface Reconciliation {
  readonly deps: ReconcileDeps;
  readonly reconciler: Reconciler;
  readonly object: KubeObject;
  readonly resource: Resource;
}
