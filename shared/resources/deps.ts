// Dependencies of a reconciling function, created once and passed in; and one object under reconciliation.
import type { TemplateSettings } from '#shared/resources/templates/ask.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { BackendRegistry } from '#shared/backends/registry.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import type { TrustLook } from '#shared/resources/network-settings.ts';
import type { ConfigLook } from '#shared/resources/cdi-config/look.ts';
import type { Logger } from '#shared/runtime/log.ts';
import type { LimitsLook } from '#shared/resources/tenant-limit/applied.ts';
import type { Announce } from '#shared/resources/announcer.ts';
import type { Observe } from '#shared/golden/poll/observe.ts';
import type { Send } from '#events/sender.ts';
import type { VerifySignature, WhyUnusable } from '#shared/golden/signature/outcome.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { Reconciler, Resource } from '#shared/resources/reconciler.ts';

export interface ReconcileDeps {
  readonly kube: KubeClient;
  readonly backends: BackendRegistry;
  readonly settings: PopulateSettings;
  /** Whether a CDI is installed. */
  readonly cdi: CdiLook;
  /** Certificate authorities to trust besides the default ones. */
  readonly trust: TrustLook;
  /** Settings in objects of the cluster. */
  readonly config: ConfigLook;
  /** Limits of tenants. Default: there are none. */
  readonly limits?: LimitsLook | undefined;
  /** Handling of templates of HyperConverged and SSP. */
  readonly templates: TemplateSettings;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Logger;
  /** Announces that an image is ready or has failed. Default: no announcements. */
  readonly announce?: Announce | undefined;
  /** Polls the sources of crons. Default: no polls, as in Workers, which open no sockets of their own. */
  readonly observe?: Observe | undefined;
  /** Inspects files that another program will fetch. Default: they wait for a function that can. */
  readonly look?: LookAtFile | undefined;
  /** Verifies who signed a version. Default: versions that must be signed wait for a function that can. */
  readonly verify?: VerifySignature | undefined;
  /** Reads the keys of a rule. Default: keys that exist count as usable. */
  readonly whyUnusable?: WhyUnusable | undefined;
  /** Sends events to other functions. Default: their work is done here. */
  readonly send?: Send | undefined;
}

/** Additional dependencies of the tick. */
export interface TickDeps extends ReconcileDeps {
  /** URL of the transfer function, as users reach it. Default: not published. */
  readonly publicUrl?: string | undefined;
}

/** One object that is being reconciled. */
export interface Reconciliation {
  readonly deps: ReconcileDeps;
  readonly reconciler: Reconciler;
  readonly object: KubeObject;
  readonly resource: Resource;
}
