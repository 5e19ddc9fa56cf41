// `bullion verify <source>`: who signed an image, as a policy would find it out. Needs no cluster: files stand for the ConfigMaps and the Secret.
import { createHostHealth } from '#shared/clients/http/health.ts';
import { readFile } from 'node:fs/promises';
import {
  type CommandLine,
  type PlainCommand,
  type Surroundings,
  type Values,
  exitCodes,
  listOf,
  textOf,
} from '#cli/command.ts';
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { SignatureRule } from '#shared/api/bullion/verify.ts';
import { isDigest } from '#shared/clients/registry/reference.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { type ObserveOptions, createObserver } from '#shared/golden/poll/observe.ts';
import { placeOf } from '#shared/golden/signature/files.ts';
import { type SignatureDeps, verifySignature } from '#shared/golden/signature/verify.ts';
import { type CronSource, readCronSource } from '#shared/golden/source.ts';
import { InvalidInput, NotFound, Unavailable, messageOf } from '#shared/runtime/errors.ts';

/** Who calls may connect anywhere from here. */
const everywhere = ['0.0.0.0/0', '::/0'];

/** What the files of --key are called where a policy names a ConfigMap. */
const keysName = 'keys';

const rootName = 'root';

const isFile = (source: string): boolean => /^https?:\/\//.test(source);

const read = async (option: string, path: string): Promise<Buffer> => {
  try {
    return await readFile(path);
  } catch (error) {
    throw new InvalidInput(`--${option} ${path} cannot be read: ${messageOf(error)}`, [], { cause: error });
  }
};

const base64Of = async (option: string, paths: readonly string[]): Promise<Readonly<Record<string, string>>> => {
  const contents = await Promise.all(paths.map((path) => read(option, path)));
  return Object.fromEntries(contents.map((bytes, index) => [`file-${index}`, bytes.toString('base64')]));
};

/** What a policy and its cron would name, read from files. */
const kubeOf = async (values: Values): Promise<ObserveOptions['kube']> => {
  const one = (option: string) => [textOf(values, option)].filter((path) => path !== undefined);
  const [ca] = await Promise.all(one('ca').map((path) => read('ca', path)));
  const [login] = await Promise.all(one('registry-config').map((path) => read('registry-config', path)));
  const objects: Readonly<Record<string, object | undefined>> = {
    [keysName]: { binaryData: await base64Of('key', listOf(values, 'key')) },
    [rootName]: { binaryData: await base64Of('trust-root', one('trust-root')) },
    ca: { data: { 'ca.pem': ca?.toString() ?? '' } },
    login: { data: { '.dockerconfigjson': (login ?? Buffer.from('{}')).toString('base64') } },
  };
  return {
    get: <T extends KubeObject>(_: ResourceType<T>, { name }: ObjectKey) =>
      Promise.resolve(objects[name] as T | undefined),
    create: ({ kind }) => Promise.reject(new Unavailable(`there is no cluster that creates a ${kind}`)),
  };
};

const sourceOf = (text: string, values: Values): CronSource => {
  const checksums = textOf(values, 'checksums');
  const access = {
    ...(values['ca'] === undefined ? {} : { certConfigMap: 'ca' }),
    ...(values['registry-config'] === undefined ? {} : { secretRef: 'login' }),
  };
  const checksumURL = checksums !== undefined && isFile(text) ? placeOf(checksums, new URL(text))?.href : undefined;
  const source = isFile(text)
    ? { http: { url: text, ...(checksumURL === undefined ? {} : { checksumURL }), ...access } }
    : { registry: { url: text, platform: { architecture: textOf(values, 'arch') ?? 'amd64' }, ...access } };
  const found = readCronSource({ schedule: '', managedDataSource: 'verify', source });
  if ('value' in found) return found.value;
  throw new InvalidInput(`${text} is not a source: it ${found.faults.map(({ message }) => message).join('; ')}`);
};

/** What minisign and signify begin their keys with. */
const untrusted = /^untrusted comment:/;

const attestationsOf = (values: Values): { readonly attestations?: string[] } => {
  const wanted = listOf(values, 'attestation');
  return wanted.length === 0 ? {} : { attestations: [...wanted] };
};

const identityOf = (values: Values): SignatureRule => {
  const [issuer, subject] = [textOf(values, 'issuer'), textOf(values, 'subject')];
  if (issuer === undefined || subject === undefined)
    throw new InvalidInput('--trust-root requires --issuer and --subject, which name the signer');
  return {
    cosign: { identities: [{ issuer, subject }], trustRoot: { configMap: rootName }, ...attestationsOf(values) },
  };
};

const ruleOf = async (source: CronSource, values: Values): Promise<SignatureRule> => {
  const [first] = listOf(values, 'key');
  if (first === undefined && source.type === 'registry' && values['trust-root'] !== undefined)
    return identityOf(values);
  if (first === undefined) throw new InvalidInput('--key is missing: the public key that must have signed');
  const keys = { configMap: keysName };
  if (source.type === 'registry') return { cosign: { keys, ...attestationsOf(values) } };
  const signature = textOf(values, 'signature');
  const places = signature === undefined ? { keys } : { keys, signature };
  const text = (await read('key', first)).toString('latin1');
  return untrusted.test(text) ? { minisign: places } : { gpg: places };
};

interface Version {
  readonly digest: string;
  readonly sourceDigest?: string | undefined;
}

/** What the source has now, or what the command line says. */
const versionOf = async (
  deps: SignatureDeps & ObserveOptions,
  source: CronSource,
  values: Values,
): Promise<Version> => {
  const given = textOf(values, 'digest');
  if (given !== undefined && !isDigest(given)) throw new InvalidInput(`--digest is sha256:… or sha512:…, not ${given}`);
  if (given !== undefined) return { digest: given };
  if (source.type === 'http' && source.checksumUrl === undefined)
    throw new InvalidInput('--checksums is missing: of a file, its checksum file is signed');
  const observe = createObserver(deps);
  const observed = await observe({ source, namespace: '', known: {} });
  if (observed.is === 'found') return { digest: observed.digest, sourceDigest: observed.memory.sourceDigest };
  const isAbsent = observed.is === 'failed' && /^(ImageNotFound|FileNotFound|ChecksumMissing)$/.test(observed.reason);
  throw new (isAbsent ? NotFound : Unavailable)(`the digest to verify cannot be determined: ${observed.message}`);
};

const runPlain = async ({ positionals, values, terminal, signal }: CommandLine & Surroundings) => {
  const text = positionals[0] ?? '';
  const source = sourceOf(text, values);
  const rule = await ruleOf(source, values);
  const now = () => terminal.now().getTime();
  const plain = values['plain-http'] === true && source.type === 'registry' ? [source.image.host] : [];
  const deps = {
    architecture: 'amd64',
    kube: await kubeOf(values),
    allowedAddresses: everywhere,
    registries: () => Promise.resolve({ plainRegistries: plain }),
    pace: createRegistryPace(now),
    health: createHostHealth(now),
    now,
  };
  const version = await versionOf(deps, source, values);
  const outcome = await verifySignature(deps, { source, namespace: '', rule, signal, ...version });
  switch (outcome.is) {
    case 'verified':
      terminal.out(`verified: ${outcome.message}\n`);
      for (const { predicateType, digest, by } of outcome.attestations ?? [])
        terminal.out(`attested: ${predicateType} by ${by} (${digest})\n`);
      return exitCodes.done;
    case 'refused':
      terminal.out(
        `refused: ${outcome.reason}: ${outcome.message.replaceAll(`ConfigMap ${keysName}`, '--key').replaceAll(`ConfigMap ${rootName}`, '--trust-root')}\n`,
      );
      return exitCodes.failed;
    case 'unreachable':
      terminal.err(`bullion: not decided: ${outcome.message}\n`);
      return exitCodes.failed;
  }
};

export const verifyCommand: PlainCommand = {
  name: 'verify',
  arguments: '<source>',
  summary: 'Shows who signed an image in a registry or a file on the web, or why the signature is not valid.',
  more:
    'As a policy for golden images would decide it; needs no cluster. An image is docker://host/repository:tag, signed with cosign. A file is an\n' +
    'http or https URL, whose checksum file is signed with gpg, minisign or signify. The exit code is 0 only where exactly these bytes are signed.\n\n' +
    '  bullion verify docker://quay.io/example/fedora:40 --key cosign.pub\n' +
    '  bullion verify https://example.org/40/fedora.qcow2 --checksums CHECKSUM --key fedora.asc\n' +
    '  bullion verify https://example.org/12/debian.qcow2 --checksums SHA512SUMS --signature .sign --key debian.asc',
  options: {
    key: { type: 'string', value: 'FILE', help: 'public key that may have signed; may be repeated', multiple: true },
    'trust-root': {
      type: 'string',
      value: 'FILE',
      help: 'trusted_root.json, for an image that was signed without a key; needs --issuer and --subject',
    },
    issuer: { type: 'string', value: 'URL', help: 'OpenID Connect provider of the signer, as in the certificate' },
    subject: { type: 'string', value: 'TEXT', help: 'the signer: an address, or the URL of a workflow' },
    attestation: {
      type: 'string',
      value: 'TYPE',
      help: 'predicate type that the same signer must attest, such as https://slsa.dev/provenance/v1; may be repeated',
      multiple: true,
    },
    digest: {
      type: 'string',
      value: 'DIGEST',
      help: 'sha256:… or sha512:… that must be signed (what the source has now)',
    },
    arch: { type: 'string', value: 'ARCH', help: 'which image of an index (amd64)' },
    checksums: {
      type: 'string',
      value: 'PLACE',
      help: 'checksum file: a URL, a name beside the image, or a suffix of it such as .sha256',
    },
    signature: {
      type: 'string',
      value: 'PLACE',
      help: 'signature of the checksum file, likewise (within it, or beside it with a usual suffix)',
    },
    ca: { type: 'string', value: 'FILE', help: 'certificates to trust besides the well-known ones' },
    'registry-config': { type: 'string', value: 'FILE', help: 'credentials, as in ~/.docker/config.json' },
    'plain-http': { type: 'boolean', help: 'reach the registry without TLS' },
  },
  runPlain,
};
