// `bullion plan -f FILE`: what would come of the objects of a file, before anything is applied.
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { alignColumns } from '#cli/output.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { foresee, servedTypeOf } from '#shared/catalogue/foresee.ts';
import { createObserver } from '#shared/golden/poll/observe.ts';
import { createVerifier } from '#shared/golden/signature/verify.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';
import { createFileLook } from '#shared/transfer/file-look.ts';

/** Who calls may connect anywhere from here. */
const everywhere = ['0.0.0.0/0', '::/0'];

const contentOf = async (path: string): Promise<string> => {
  try {
    return path === '-' ? await text(process.stdin) : await readFile(path, 'utf8');
  } catch (error) {
    throw new InvalidInput(`-f ${path} cannot be read: ${messageOf(error)}`, [], { cause: error });
  }
};

const isObject = (value: unknown): value is KubeObject => {
  const { apiVersion, kind, metadata } = (value ?? {}) as Partial<KubeObject>;
  return typeof apiVersion === 'string' && typeof kind === 'string' && typeof metadata?.name === 'string';
};

/** Each document, and each item of a List. */
const objectsIn = (content: string, path: string): readonly KubeObject[] => {
  const documents = parseAllDocuments(content);
  const values = ('empty' in documents ? [] : documents).flatMap((document): readonly unknown[] => {
    const [error] = document.errors;
    if (error !== undefined) throw new InvalidInput(`-f ${path} is not YAML: ${error.message}`);
    const value = document.toJS() as { readonly kind?: string; readonly items?: readonly unknown[] } | null;
    if (value === null) return [];
    return value.kind === 'List' ? (value.items ?? []) : [value];
  });
  return values.map((value, index) => {
    if (isObject(value)) return value;
    throw new InvalidInput(
      `document ${index + 1} of ${path} is not an object: it needs apiVersion, kind and metadata.name`,
    );
  });
};

const inNamespace = (object: KubeObject, namespace: string): KubeObject =>
  servedTypeOf(object)?.namespaced === false ? object : { ...object, metadata: { namespace, ...object.metadata } };

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, values, terminal } = call;
  const path = textOf(values, 'filename');
  if (path === undefined) throw new InvalidInput('name a file: -f FILE, or -f - for standard input');
  const objects = objectsIn(await contentOf(path), path);
  const now = (): number => terminal.now().getTime();
  const registries = () => Promise.resolve({ plainRegistries: textOf(values, 'plain-registry')?.split(',') ?? [] });
  const reach = { kube, allowedAddresses: everywhere, registries, now };
  const tools = {
    kube,
    look: createFileLook(() => Promise.resolve({ allowedAddresses: everywhere })),
    observe: createObserver({ ...reach, architecture: 'amd64' }),
    verify: createVerifier(reach),
    now: now(),
  };
  let code: ExitCode = exitCodes.done;
  for (const object of objects) {
    // One after the other: what is printed is in the order of the file.
    const { verdict, rows } = await foresee(tools, inNamespace(object, namespace));
    if (verdict === 'would be refused' || rows.some(([heading]) => heading === 'fails')) code = exitCodes.failed;
    terminal.out(`${object.kind.toLowerCase()}/${object.metadata.name} ${verdict}\n`);
    for (const line of alignColumns(rows)) terminal.out(`  ${line}\n`);
  }
  return code;
};

export const planCommand: ClusterCommand = {
  name: 'plan',
  arguments: '',
  summary: 'Shows what would happen if a file were applied. Nothing is created.',
  more:
    'Of images, DataImportCrons, DataVolumes, volumes, claims and GoldenImagePolicies: whether the cluster accepts them, what their source is like, and what would be created first and why; of policies, who signed the newest versions, and which versions would be removed.\n' +
    'Sources are asked from here, without the Secrets of headers; the cluster may reach others. The exit code is 1 where something would be refused or fail.\n\n  bullion plan -f disks.yaml -n vms',
  options: {
    filename: { type: 'string', short: 'f', value: 'FILE', help: 'YAML or JSON; - is standard input' },
    'plain-registry': {
      type: 'string',
      value: 'HOSTS',
      help: 'registries without TLS, as host:port, separated by commas',
    },
  },
  run,
};
