// The way of an image in one line: its steps, and when each began or ended, as far as the cluster knows it. No time is guessed.
import { html } from 'hono/html';
import type { Job } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { labels } from '#shared/api/names.ts';
import { type Found, readyOf } from '#shared/catalogue/image.ts';
import { type Story, timeOf } from '#shared/catalogue/story.ts';
import type { Markup } from '#shared/console/markup.ts';
import { type ImagePhase, imagePhases } from '#shared/populate/filled.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';
import { toAge } from '#shared/runtime/age.ts';

const isPhase = (phase: string | undefined): phase is ImagePhase => imagePhases.some((one) => one === phase);

/** Steps that every import takes; the others are shown while they last. */
const usualSteps: readonly ImagePhase[] = ['Pending', 'Downloading', 'Converting', 'Verifying', 'Available'];

/** What was begun before it failed: phases of the attempts are gone by then, but not what the last one reported. */
const begunBefore = ({ image }: Found): readonly ImagePhase[] => {
  const { phase = 'Pending', receivedBytes = 0 } = image.status?.transfer ?? {};
  const reached = receivedBytes > 0 && usualSteps.some((step) => step === phase) ? phase : 'Pending';
  return usualSteps.slice(0, usualSteps.findIndex((step) => step === reached) + 1);
};

interface Step {
  readonly name: ImagePhase;
  readonly mark: '✓' | '▲' | '●' | '○';
  readonly isNow: boolean;
  readonly isAhead: boolean;
}

const waysOf = (found: Found, phase: ImagePhase): readonly Step[] => {
  if (phase === 'Failed') {
    const begun = begunBefore(found);
    const past = begun.map((name, index): Step => ({
      name,
      mark: index === 0 || index < begun.length - 1 ? '✓' : '○',
      isNow: false,
      isAhead: false,
    }));
    return [...past, { name: 'Failed', mark: '▲', isNow: true, isAhead: false }];
  }
  const steps = imagePhases.filter((step) => usualSteps.includes(step) || step === phase);
  const at = steps.indexOf(phase);
  return steps.map((name, index) => ({
    name,
    mark: index < at ? '✓' : index === at ? '●' : '○',
    isNow: index === at,
    isAhead: index > at,
  }));
};

/** `ended`: of a step whose beginning nobody recorded. */
interface Times {
  readonly begun?: string | undefined;
  readonly ended?: string | undefined;
}

/** The Job that moves the bytes; one that looks at the source first belongs to no step of its own. */
const isMover = ({ kind, metadata }: KubeObject): boolean =>
  kind === 'Job' && ['import', 'export'].includes(metadata.labels?.[labels.role] ?? '');

const createdOf = ({ children }: Story, kind: string): string | undefined =>
  children.find((child) => child.kind === kind)?.metadata.creationTimestamp;

/** Ready is False from the first pass on: that a failure is new, only its Event says, or the last change of the text. */
const failureTime = ({ found, events }: Story): string | undefined => {
  const ready = readyOf(found);
  const about = events.filter(
    ({ type, reason, involvedObject }) =>
      type === 'Warning' && reason === ready?.reason && involvedObject.uid === found.image.metadata.uid,
  );
  const { lastUpdateTime, lastHeartbeatTime } = (ready ?? {}) as Readonly<Record<string, string | undefined>>;
  return about.map(timeOf).toSorted().at(-1) ?? lastUpdateTime ?? lastHeartbeatTime;
};

const timesOf = (story: Story): Partial<Readonly<Record<ImagePhase, Times>>> => {
  const { found, children } = story;
  const { metadata, status } = found.image;
  const job = children.find(isMover) as Job | undefined;
  const ready = readyOf(found);
  const moved: Times = { begun: job?.status?.startTime ?? status?.transfer?.startedAt };
  return {
    Pending: { begun: metadata.creationTimestamp },
    Downloading: moved,
    Exporting: moved,
    Verifying: { ended: job?.status?.completionTime },
    Snapshotting: { begun: createdOf(story, 'VolumeSnapshot') },
    Available: { begun: ready?.status === 'True' ? ready.lastTransitionTime : undefined },
    Failed: { begun: failureTime(story) },
  };
};

const timeIn = ({ begun, ended }: Times, isAhead: boolean, now: Date): Markup | '' => {
  const time = begun ?? ended;
  // A step that is still to come may have a time of the run before.
  if (isAhead || time === undefined || Number.isNaN(Date.parse(time))) return '';
  const word = begun === undefined ? 'ended ' : '';
  return html`<small><time datetime="${time}">${word}${toAge(time, now)} ago</time></small>`;
};

/** Nothing for other kinds than those that are filled. */
export const stepsOf = (story: Story, now: Date): Markup | '' => {
  const { image } = story.found;
  const resource = reconcilerOf(image)?.read(image) as { readonly state?: { readonly phase?: string } } | undefined;
  const phase = resource?.state?.phase;
  if (!isPhase(phase) || phase === 'Terminating') return '';
  const times = timesOf(story);
  return html`<ol class="steps" aria-label="Steps">
    ${waysOf(story.found, phase).map(
      ({ name, mark, isNow, isAhead }) =>
        html`<li class="${mark === '✓' ? 'past' : ''}" ${isNow ? html`aria-current="step"` : ''}>
          <span aria-hidden="true">${mark}</span> ${name} ${timeIn(times[name] ?? {}, isAhead, now)}
        </li>`,
    )}
  </ol>`;
};
