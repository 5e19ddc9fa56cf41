// Converts a change of an object into the CloudEvent that Knative's ApiServerSource sends for it. Called by stream.ts.
import { subjectOf } from '#events/build.ts';
import type { CloudEvent } from '#events/event.ts';
import type { KubeObject } from '#shared/api/object.ts';

export type Verb = 'add' | 'update' | 'delete';

/** `Resource` sends the whole object, `Reference` only a reference to it. */
export type ForwardMode = 'Resource' | 'Reference';

export interface ConvertOptions {
  readonly mode: ForwardMode;
  /** The URL of the API server, verbatim. */
  readonly source: string;
  /** Added to every event (`ceOverrides`). */
  readonly extensions: Readonly<Record<string, string>>;
  /** A random UUID; a retry keeps it. */
  readonly newId: () => string;
  readonly now: () => Date;
}

export const toObjectEvent = (verb: Verb, object: KubeObject, options: ConvertOptions): CloudEvent => {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace = '' } = metadata;
  return {
    id: options.newId(),
    source: options.source,
    type: `dev.knative.apiserver.${options.mode === 'Resource' ? 'resource' : 'ref'}.${verb}`,
    subject: subjectOf({ apiVersion, kind, namespace, name }),
    time: options.now().toISOString(),
    datacontenttype: 'application/json',
    extensions: { apiversion: apiVersion, kind, name, namespace, ...options.extensions },
    data: options.mode === 'Resource' ? object : toReference(object),
  };
};

/** Cluster-scoped objects have no namespace here, though the extension exists with an empty value. */
const toReference = ({ apiVersion, kind, metadata: { name, namespace } }: KubeObject) => ({
  kind,
  ...(namespace === undefined ? {} : { namespace }),
  name,
  apiVersion,
});
