// `bullion bundle load`: all of a bundle is compared before anything is made of it, wherever it goes.
import { stringify } from 'yaml';
import { readOptionFiles } from '#cli/bundle/access.ts';
import { openArchive } from '#cli/bundle/archive.ts';
import { type ReadBundle, checkBundle, readBundle } from '#cli/bundle/check.ts';
import { refusal } from '#cli/bundle/layout.ts';
import { applyObject, objectsFor } from '#cli/bundle/objects.ts';
import { checkSignatures } from '#cli/bundle/signatures.ts';
import { openState } from '#cli/bundle/state.ts';
import { isBucketTarget, loadToBucket } from '#cli/bundle/to-bucket.ts';
import { loadToCluster } from '#cli/bundle/to-cluster.ts';
import { type RegistryLoad, isRegistryTarget, loadToRegistry } from '#cli/bundle/to-registry.ts';
import { type Call, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { type Line, countBytes } from '#cli/line.ts';
import { timeoutOf } from '#cli/wait.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

export const withBundle = async (path: string, work: (bundle: ReadBundle) => Promise<ExitCode>): Promise<ExitCode> => {
  const archive = await openArchive(path);
  try {
    return await work(await readBundle(archive));
  } finally {
    await archive.close();
  }
};

/** Every byte of it, before anything is made of it. */
export const checkAll = async (bundle: ReadBundle, line: Line, signal: AbortSignal): Promise<void> => {
  const whole = [...bundle.archive.blobs.values()].reduce((sum, { size }) => sum + size, 0);
  const show = (done: number): void => countBytes(line, `checking ${bundle.archive.path}`, done, whole);
  await checkBundle(bundle, { signal, onProgress: show });
  // What was compared before, and the ends of layers, are not counted on the way.
  show(whole);
};

/** Crons and policies: made with --apply, else printed for kubectl. */
const bringObjects = async (call: Call, { document }: ReadBundle, target: string): Promise<void> => {
  const { kube, namespace, values, terminal } = call;
  const [secretRef, certConfigMap] = [textOf(values, 'secret'), textOf(values, 'cert-config-map')];
  const registry = target.replace(/^oci:/, 'docker:');
  const objects = objectsFor(document, { registry, namespace, secretRef, certConfigMap });
  if (values['apply'] !== true) {
    if (objects.length > 0) terminal.out(objects.map((object) => stringify(object)).join('---\n'));
    return;
  }
  for (const object of objects) {
    const isMade = await applyObject(kube, object);
    terminal.out(`${object.kind.toLowerCase()}/${object.metadata.name} ${isMade ? 'created' : 'unchanged'}\n`);
  }
};

const verify = async (call: Call, bundle: ReadBundle, hasCluster: boolean, line: Line): Promise<void> => {
  const { kube, namespace, values } = call;
  const keys = await readOptionFiles(values, 'key');
  if (values['skip-signatures'] === true) {
    if (keys.length > 0) throw new InvalidInput('--key and --skip-signatures contradict each other: give one of them');
    return;
  }
  const { lines, isWhole } = await checkSignatures(bundle, {
    keys,
    cluster: hasCluster ? { kube, namespace } : undefined,
  });
  for (const text of lines) line.show(`signed: ${text}`);
  if (values['apply'] === true && keys.length > 0 && !isWhole && bundle.document.objects.length > 0)
    throw refusal(
      'the images are signed by --key, and crons and policies are not: save the bundle with --sign-with, or load it without --apply, and read what is printed',
    );
};

const targetOf = ({ values }: Call): string | undefined => {
  const target = textOf(values, 'to');
  if (target !== undefined && !isRegistryTarget(target) && !isBucketTarget(target))
    throw new InvalidInput(`--to is oci://<registry>[/<prefix>] or s3://<bucket>[/<prefix>], not ${target}`);
  if (values['apply'] === true && (target === undefined || isBucketTarget(target)))
    throw new InvalidInput('--apply is for --to oci://…: crons follow a registry');
  return target;
};

const intoCluster = async (call: Call, bundle: ReadBundle, line: Line): Promise<void> => {
  const { terminal, values } = call;
  const made = await loadToCluster(call, { bundle, line, timeoutMs: timeoutOf(values) });
  line.end();
  terminal.out(made.map((one) => `${one}\n`).join(''));
  const left = bundle.document.objects.filter(({ kind }) => kind !== 'DataSource').length;
  if (left > 0)
    terminal.err(
      `crons and policies not created: ${left}; load the bundle into a registry that they can follow: --to oci://… --apply\n`,
    );
};

const toTarget = async (call: Call, bundle: ReadBundle, target: string, line: Line): Promise<void> => {
  const { values, signal, terminal } = call;
  const state = await openState(bundle.archive.path, target);
  const say = (text: string): void => line.show(text);
  const request: RegistryLoad = {
    bundle,
    target,
    values,
    state,
    signal,
    say,
    onProgress: (name, ...bytes) => countBytes(line, `uploading ${name}`, ...bytes),
  };
  const made = await (isBucketTarget(target) ? loadToBucket(request) : loadToRegistry(request));
  line.end();
  const text = made.map((one) => `${one}\n`).join('');
  if (isBucketTarget(target)) return terminal.out(text);
  // Objects for kubectl go to standard output, and nothing else does.
  terminal.err(text);
  return bringObjects(call, bundle, target);
};

export const load = async (call: Call, line: Line, path: string): Promise<ExitCode> => {
  const target = targetOf(call);
  timeoutOf(call.values);
  return withBundle(path, async (bundle) => {
    await checkAll(bundle, line, call.signal);
    await verify(call, bundle, target === undefined || call.values['apply'] === true, line);
    if (target === undefined) await intoCluster(call, bundle, line);
    else await toTarget(call, bundle, target, line);
    return exitCodes.done;
  });
};
